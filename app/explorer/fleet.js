// The fleet: whether it gets better, and who needs coaching first, in a week or month.

import { fetchJson } from "./api.js";
import * as format from "./format.js";
import { chart, findPage, listStarts, scrollTo } from "./score-chart.js";
import * as ui from "./ui.js";

const { el } = ui;
// As many drivers as an aggregate takes.
const LIMIT = 20;
// As many as a page has: when the fleet drove last is found among them.
const DRIVERS_LIMIT = 100;
const MAX_MILES = 999_999;
// What a driver has to have driven, unless the address says otherwise: one event in three miles costs as many points as
// a behaviour can cost.
const LEAST_MILES = 10;
const SUMMARY = "fm_score,fm_grade,trip_count,distance_miles,duration_seconds,events_summary";
const DRIVER = "driver_id,first_name,last_name,alias";
const MASK = `{count,next_page,drivers{rank,driver_info{${DRIVER}},driving_summary{${SUMMARY}}}}`;
const AGGREGATES = { week: "weekly", month: "monthly" };
// How many weeks or months the chart shows.
const COLUMNS = 12;

export async function show({ parameters, settle, render }) {
  const choices = readChoices(parameters), { period, start, order, behaviour, miles, page } = choices;
  const settled = settle(choices);
  const link = (changed) => format.address("fleet", undefined, { ...settled, page: undefined, ...changed });
  const query = { period, start_date: start, order, min_distance_miles: miles, limit: LIMIT, page };
  if (behaviour) query.behaviour = behaviour;
  const overTime = { start_date: format.oldestStart(period), interval: period };
  const [{ count, next_page: next, drivers }, { count: total }, { series }] = await Promise.all([
    fetchJson(["ranking"], query, { mask: MASK }), fetchJson(["drivers"], { limit: 1 }, { mask: "{count}" }),
    fetchJson(["fleet-aggregate"], overTime, { mask: format.FLEET_MASK })]);
  const infos = drivers.map((entry) => entry.driver_info);
  const before = await fetchScoresById(period, format.shift(period, start, -1), infos);
  const drove = series.find(({ start_date }) => start_date === start)?.fleet_summary.driver_count ?? 0;
  const rows = drivers.map((entry) => row(entry, before.get(entry.driver_info.driver_id), choices));
  render(ui.heading(order === "worst" ? "Who needs coaching first" : "Who drives best"),
    total > 0 && [el("p", { class: "lead" }, describe(count, drove, total, choices, link)),
      el("p", {}, el("a", { href: "#/reports" }, "Weekly reports"))],
    fleetOverTime(series, choices, link), controls(choices, link),
    rows.length ? [!series.length && ui.behaviourLegend(), ui.table("ranking", ["#", "Driver", "Score", "Why"], rows)]
      : await noDrivers(choices, drove, link),
    ui.pages(page, count, LIMIT, (other) => link({ page: other }), next));
  scrollTo(findPage(listStarts(period), start, COLUMNS).starts, start);
}

/** Returns the fleet in the period, against the one before, and its score over time. */
function fleetOverTime(series, { period, start, behaviour }, link) {
  const byStart = format.fleetByStart(series);
  const summary = byStart.get(start), before = byStart.get(format.shift(period, start, -1));
  const { starts, previous, next } = findPage(listStarts(period), start, COLUMNS);
  if (!byStart.size) return undefined;
  return el("section", { class: "over-time" }, el("div", { class: "head" }, el("h2", {}, "The fleet over time"),
    ui.stepper(`${COLUMNS} ${period}s`, "", previous && link({ start: previous }), next && link({ start: next }))),
  ui.behaviourLegend(summary?.behaviours, ["distance", "Distance"]), chart(period, starts, byStart, start, (to) => link({ start: to.at })),
  summary && [ui.tiles(["Score of the fleet", ui.grade(summary)],
    [`Against the ${period} before`, ui.change(summary.fm_score, before?.fm_score)],
    ["Distance", format.distance(summary.distance_miles), el("small", {}, format.count(summary.trip_count, "trip"))],
    ["Driving", format.duration(summary.duration_seconds)],
    ["At night", format.share(summary.night_driving_seconds, summary.duration_seconds), el("small", {}, "of the time")]),
  el("ul", { class: "grades", "aria-label": "Drivers by grade" }, Object.entries(summary.drivers_by_grade).map(
    ([grade, count]) => el("li", {}, el("span", { class: `grade ${grade}` }, el("b", {}, format.number(count)),
      ` ${grade}`)))),
  coaching(summary, behaviour, link)]);
}

/** Returns how many drivers to coach by each behaviour; choosing one orders the list by it. */
function coaching({ drivers_by_focus_area: toCoach }, chosen, link) {
  const counts = format.settings.behaviours.map(({ name, focus_flag: flag }) =>
    [`${format.LABELS[name]}: ${format.number(toCoach[flag])}`, name]);
  return el("div", { class: "to-coach" }, el("b", {}, "Drivers to coach"), ui.choice("To coach by",
    [["All", undefined], ...counts].map(([text, behaviour]) => [text, link({ behaviour }), behaviour === chosen])));
}

/** Returns the period, and its first date, that the address has: by default those of the last full week. */
export function readPeriod(parameters) {
  const period = parameters.period === "month" ? "month" : "week";
  return { period, start: format.nearestStart(period, parameters.start) ?? format.lastWholeStart(period) };
}

function readChoices(parameters) {
  const order = parameters.order === "best" ? "best" : "worst", miles = Number(parameters.miles || NaN);
  const behaviour = Object.hasOwn(format.LABELS, parameters.behaviour) ? parameters.behaviour : undefined;
  return { ...readPeriod(parameters), order, behaviour, page: format.readPage(parameters),
    miles: Number.isNaN(miles) ? leastMiles() : Math.min(MAX_MILES, Math.max(0, round(miles, 3))) };
}

const round = (value, digits) => Number(value.toFixed(digits));
/** Returns miles as they are typed in, in the units of the page. */
const inBox = (miles) => round(format.inUnits(miles), 2);
const leastMiles = () => round(Math.round(format.inUnits(LEAST_MILES)) / format.inUnits(1), 3);

/** Returns how many drivers the list has, and which others there are. */
function describe(count, drove, total, { period, start, miles }, link) {
  const far = miles ? ` at least ${inBox(miles).toLocaleString("en")} ${format.unitsName}` : "";
  const which = start === format.lastWholeStart(period) ? `, the last full ${period}` : "";
  const soFar = format.shift(period, start, 1) > format.today() ? " so far" : "";
  const all = `${format.number(count)} of ${format.count(total, "driver")}`;
  const others = [[drove - count, "drove less", link({ miles: 0 }), miles === leastMiles() && ", too little to judge"],
    [total - drove, "did not drive", format.address("idle", undefined, { period, start })]];
  return [`${all} drove${far} in ${format.period(period, start)}${which}${soFar}.`,
    others.filter(([number]) => number > 0).map(([number, what, href, why]) =>
      [" ", el("a", { href }, `${format.number(number)} ${what}`), why, "."])];
}

/** Returns the scores, by id, of those drivers who drove in a period. */
export async function fetchScoresById(period, start, drivers) {
  if (start < format.oldestStart(period)) return new Map();
  const mask = "{data{driver_info{driver_id},driving_summary{fm_score}}}";
  const ids = drivers.map(({ driver_id: id }) => id), parts = [];
  while (ids.length) parts.push(ids.splice(0, LIMIT));
  const pages = await Promise.all(parts.map((part) =>
    fetchJson(["driver-aggregate", AGGREGATES[period]], { start_date: start, driver_id: part }, { mask })));
  return new Map(pages.flatMap(({ data }) =>
    data.map((element) => [element.driver_info.driver_id, element.driving_summary?.fm_score])));
}

function controls({ period, start, order, miles }, link) {
  const stepTo = (count) => {
    const other = format.shift(period, start, count);
    return other === format.nearestStart(period, other) && link({ start: other });
  };
  const input = el("input", { id: "miles", type: "number", min: 0, max: Math.floor(format.inUnits(MAX_MILES)),
    step: "any", value: inBox(miles), onchange: setMiles });
  function setMiles() {
    if (input.reportValidity()) location.hash = link({ miles: round(Number(input.value) / format.inUnits(1), 3) });
  }
  return el("div", { class: "controls" },
    ui.choice("Period", [["Week", "week"], ["Month", "month"]].map(([label, other]) =>
      [label, link({ period: other, start: undefined }), other === period])),
    ui.stepper(period, format.period(period, start), stepTo(-1), stepTo(1)),
    ui.choice("Order", [["Worst first", "worst"], ["Best first", "best"]].map(([label, other]) =>
      [label, link({ order: other }), other === order])),
    el("label", { class: "inline" }, "At least ", input, ` ${format.unitsName}`));
}

function row({ rank, driver_info: driver, driving_summary: summary }, before, { period, start, behaviour: chosen }) {
  const behaviours = format.explain(summary), losses = format.findLosses(behaviours);
  const main = chosen ? losses.find(({ behaviour }) => behaviour === chosen) : losses[0];
  const href = format.address("driver", driver.driver_id, { interval: period, at: start });
  return el("tr", {}, el("td", { class: "rank" }, format.number(rank)),
    el("th", { scope: "row" }, el("a", { href }, ui.name(driver)), el("small", {}, ui.aliases(driver)),
      el("small", {}, `${format.distance(summary.distance_miles)} · ${format.count(summary.trip_count, "trip")} · `,
        el("a", { href: format.address("compare", driver.driver_id, { interval: period, at: start }),
          "aria-label": `Compare ${format.driverName(driver)}` }, "Compare"))),
    el("td", {}, ui.grade(summary), ui.change(summary.fm_score, before)),
    el("td", { class: "why" }, main ? [
      el("span", { class: "loss-bar", role: "img", "aria-label": ui.describeLosses(behaviours) },
        losses.map(({ behaviour, points_lost }) => ui.bar(behaviour, points_lost))),
      el("b", {}, format.LABELS[main.behaviour]), ` −${format.score(main.points_lost)}`,
      el("small", {}, [ui.extent(main), ...ui.describeLosses(losses.filter((loss) => loss !== main), "−")].join(" · ")),
    ] : chosen ? "This cost no points" : "Nothing cost points"));
}

/** Returns why there are no drivers, and a link to some. */
async function noDrivers({ period, start, page }, drove, link) {
  if (page > 1) return ui.empty("This page is past the end. ", el("a", { href: link({}) }, "Go to the first page"));
  if (drove) return ui.empty("Nobody drove that far. ", el("a", { href: link({ miles: 0 }) }, "Show all who drove"));
  const mask = "{count,drivers{last_travel_date}}";
  const { count, drivers } = await fetchJson(["drivers"], { limit: DRIVERS_LIMIT }, { mask });
  const last = drivers.map((driver) => driver.last_travel_date || "").sort().at(-1);
  if (!last) return ui.empty(count ? "Nobody has driven yet." : "No drivers and trips are stored yet.");
  const other = format.nearestStart(period, last);
  return ui.empty(`Nobody drove in this time. The last trip ${format.wasOn(last)}. `,
    other !== start && other === format.startOf(period, last)
      && el("a", { href: link({ start: other }) }, `Look at ${format.period(period, other)}`));
}
