// The fleet: who needs coaching first, in a week or month.

import { ApiError, fetchJson } from "./api.js";
import * as format from "./format.js";
import * as ui from "./ui.js";

const { el } = ui;
// As many drivers as an aggregate takes.
const LIMIT = 20;
// As many as a page has: when the fleet drove last is found among them.
const DRIVERS_LIMIT = 100;
const MAX_MILES = 999_999;
const SUMMARY = "fm_score,fm_grade,trip_count,distance_miles,duration_seconds,events_summary";
const DRIVER = "driver_id,first_name,last_name,alias";
const MASK = `{count,next_page,drivers{rank,driver_info{${DRIVER}},driving_summary{${SUMMARY}}}}`;
const AGGREGATES = { week: "weekly", month: "monthly" };
// The report of the last full week may not be built yet.
const REPORT_DAYS = 14;

export async function show({ parameters, settle, render }) {
  const choices = readChoices(parameters), { period, start, order, miles, page } = choices;
  const settled = settle(choices);
  const link = (changed) => format.address("fleet", undefined, { ...settled, page: undefined, ...changed });
  const query = { period, start_date: start, order, min_distance_miles: miles, limit: LIMIT, page };
  const [{ count, next_page: next, drivers }, { count: total }] = await Promise.all([
    fetchJson(["ranking"], query, { mask: MASK }), fetchJson(["drivers"], { limit: 1 }, { mask: "{count}" })]);
  const before = await fetchScores(period, format.shift(period, start, -1), drivers);
  const rows = drivers.map((entry) => row(entry, before.get(entry.driver_info.driver_id), choices));
  render(ui.heading(order === "worst" ? "Who needs coaching first" : "Who drives best"),
    total > 0 && [el("p", { class: "lead" }, describe(count, total, choices)),
      el("p", {}, ui.actionButton("Open the last report", "Opened", openReport))], controls(choices, link),
    rows.length ? [ui.behaviourLegend(), ui.table("ranking", ["#", "Driver", "Score", "Why"], rows)]
      : await noDrivers(choices, link),
    count > LIMIT && el("nav", { class: "pages", "aria-label": "Pages" }, ui.stepper("page",
      `Page ${format.number(page)} of ${format.number(Math.ceil(count / LIMIT))}`,
      page > 1 && link({ page: page - 1 }), next && link({ page: next }))));
}

function readChoices(parameters) {
  const period = parameters.period === "month" ? "month" : "week";
  const start = format.nearestStart(period, parameters.start) ?? format.lastWholeStart(period);
  const miles = Math.min(MAX_MILES, Math.max(0, round(Number(parameters.miles) || 0, 3)));
  const page = /^[1-9]\d{0,6}$/.test(parameters.page) ? Number(parameters.page) : 1;
  return { period, start, order: parameters.order === "best" ? "best" : "worst", miles, page };
}

const round = (value, digits) => Number(value.toFixed(digits));
/** Returns miles as they are typed in, in the units of the page. */
const inBox = (miles) => round(format.inUnits(miles), 2);

function describe(count, total, { period, start, miles }) {
  const far = miles ? ` at least ${inBox(miles).toLocaleString("en")} ${format.unitsName}` : "";
  const which = start === format.lastWholeStart(period) ? `, the last full ${period}` : "";
  const soFar = format.shift(period, start, 1) > format.today() ? " so far" : "";
  const others = count < total ? `; ${format.number(total - count)} did not` : "";
  const all = format.count(total, "driver");
  return `${format.number(count)} of ${all} drove${far} in ${format.period(period, start)}${which}${soFar}${others}.`;
}

/** Opens the page of the last report, whichever of the last days it belongs to. Its link works for minutes only. */
async function openReport() {
  for (let date = format.today(), days = 0; days < REPORT_DAYS; date = format.shift("day", date, -1), days++) {
    const links = await fetchJson(["report"], { report_time: `${date}T00:00:00` }).catch((error) => {
      if (error.status !== 404) throw error;
    });
    if (links) return location.assign(links.report_page);
  }
  throw new ApiError(404, { message: `There is no report of the last ${REPORT_DAYS} days.` });
}

/** Returns the scores, by id, of those drivers who drove in a period. */
async function fetchScores(period, start, drivers) {
  if (!drivers.length || start < format.oldestStart(period)) return new Map();
  const query = { start_date: start, driver_id: drivers.map(({ driver_info }) => driver_info.driver_id) };
  const mask = "{data{driver_info{driver_id},driving_summary{fm_score}}}";
  const { data } = await fetchJson(["driver-aggregate", AGGREGATES[period]], query, { mask });
  return new Map(data.map((element) => [element.driver_info.driver_id, element.driving_summary?.fm_score]));
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

function row({ rank, driver_info: driver, driving_summary: summary }, before, { period, start }) {
  const behaviours = format.explain(summary), losses = format.findLosses(behaviours), [main] = losses;
  const href = format.address("driver", driver.driver_id, { interval: period, at: start });
  return el("tr", {}, el("td", { class: "rank" }, format.number(rank)),
    el("th", { scope: "row" }, el("a", { href }, ui.name(driver)), el("small", {}, ui.aliases(driver)),
      el("small", {}, `${format.distance(summary.distance_miles)} · ${format.count(summary.trip_count, "trip")}`)),
    el("td", {}, ui.grade(summary), ui.change(summary.fm_score, before)),
    el("td", { class: "why" }, main ? [
      el("span", { class: "loss-bar", role: "img", "aria-label": ui.describeLosses(behaviours) },
        losses.map(({ behaviour, points_lost }) => ui.bar(behaviour, points_lost))),
      el("b", {}, format.LABELS[main.behaviour]), ` −${format.score(main.points_lost)}`,
      el("small", {}, ui.extent(main)),
    ] : "Nothing cost points"));
}

/** Returns why there are no drivers, and a link to some. */
async function noDrivers({ period, start, miles, page }, link) {
  if (page > 1) return ui.empty("This page is past the end. ", el("a", { href: link({}) }, "Go to the first page"));
  if (miles) return ui.empty("Nobody drove that far. ", el("a", { href: link({ miles: 0 }) }, "Show all who drove"));
  const mask = "{count,drivers{last_travel_date}}";
  const { count, drivers } = await fetchJson(["drivers"], { limit: DRIVERS_LIMIT }, { mask });
  const last = drivers.map((driver) => driver.last_travel_date || "").sort().at(-1);
  if (!last) return ui.empty(count ? "Nobody has driven yet." : "No drivers and trips are stored yet.");
  const other = format.nearestStart(period, last);
  return ui.empty(`Nobody drove in this time. The last trip ${format.wasOn(last)}. `,
    other !== start && other === format.startOf(period, last)
      && el("a", { href: link({ start: other }) }, `Look at ${format.period(period, other)}`));
}
