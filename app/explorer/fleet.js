// The fleet: whether it gets better, and who needs coaching first, in a week or month.

import { MAX_LIMIT, fetchJson, loadModule } from "./api.js";
import * as format from "./format.js";
import { fetchGroups, groupChoice, ofGroup, readGroup } from "./groups.js";
import { fetchImplausible, note, withDoubt } from "./implausible.js";
import { chart, findPage, listStarts, scrollTo } from "./score-chart.js";
import * as ui from "./ui.js";

const { el } = ui;
// As many drivers as an aggregate takes.
export const LIMIT = 20;
const MAX_MILES = 999_999;
const SUMMARY = "fm_score,fm_grade,trip_count,distance_miles,duration_seconds,events_summary";
const DRIVER = "driver_id,first_name,last_name,alias";
const MASK = `{count,next_page,drivers{rank,driver_info{${DRIVER}},driving_summary{${SUMMARY}}}}`;
const JUDGED_MASK = "{drivers{driving_summary{fm_grade,focus_area}}}";
const AGGREGATES = { week: "weekly", month: "monthly" };
// The insurance periods, and what a driver does in them.
const INSURANCE = { 1: "waiting", 2: "on the way", 3: "with a passenger" };
// How many weeks or months the chart shows.
const COLUMNS = 12;
// The orders of the list: the choice, and the heading. The API has the first two, orders.js the others.
const ORDERS = {
  worst: ["Worst first", "Who needs coaching first"],
  best: ["Best first", "Who drives best"],
  worsened: ["Most worsened", "Who got worse"],
  improved: ["Most improved", "Who got better"],
  name: ["By name", "Drivers by name"],
};
export const CHANGES = ["worsened", "improved"];

export async function show({ parameters, fleet, settle, render }) {
  const choices = readChoices(parameters), { period, start, order, behaviour, miles, page, group } = choices;
  const settled = settle(choices, format.stay("start", period, start));
  const link = (changed) => format.address("fleet", undefined, { ...settled, page: undefined, ...changed });
  const ranking = { period, start_date: start, min_distance_miles: miles, group };
  const query = { ...ranking, order: ["best", "improved"].includes(order) ? "best" : "worst", behaviour };
  const orders = !isOfApi(order) && await loadModule(() => import("./orders.js"));
  const overTime = { start_date: format.oldestStart(period), interval: period, group };
  const fetchPage = (number) => fetchRanking({ ...query, limit: LIMIT, page: number });
  const [{ count, drivers, ranked = count, text }, { count: total }, { series }, groups, uninsured] = await Promise.all([
    orders ? orders.fetchList(query, choices, fleet) : fetchPage(page), fetchJson(["drivers"], { limit: 1, group }, { mask: "{count}" }),
    fetchJson(["fleet-aggregate"], overTime, { mask: format.FLEET_MASK }), fetchGroups(true), fetchInsurance("none", choices, fleet)]);
  const byStart = format.fleetByStart(series, fleet);
  const summary = byStart.get(start), drove = summary?.driver_count ?? 0;
  const previous = format.shift(period, start, -1), end = format.shift(period, start, 1);
  const isDoubtful = [start, previous].some((each) => byStart.get(each)?.isDoubtful);
  const makeRows = async (entries) => {
    const infos = entries.map((entry) => entry.driver_info), ids = infos.map(({ driver_id: id }) => id);
    const [before, { trips }] = await Promise.all([fetchScoresById(period, previous, infos),
      isDoubtful && ids.length ? fetchImplausible(previous, end, ids) : { trips: [] }]);
    return entries.map(({ driving_summary: one, ...entry }) => {
      const { driver_id: id } = entry.driver_info, own = trips.filter((trip) => trip.driver_id === id);
      const [now, then] = [[one, start], [before.get(id), previous]].map(([each, first]) =>
        withDoubt(each, period, first, own, fleet));
      return row({ ...entry, driving_summary: now }, then, choices);
    });
  };
  const [rows, judged, implausible, insured] = await Promise.all([makeRows(drivers),
    summary && countJudged(ranking, ranked, summary),
    summary?.implausible_trip_count > 0 && fetchImplausible(start, end, undefined, group),
    // If no trip has an insurance period, one request tells that.
    drove && uninsured?.trip_count !== summary.trip_count
      ? Promise.all(Object.keys(INSURANCE).map((name) => fetchInsurance(name, choices, fleet))) : []]);
  const size = order === "name" ? MAX_LIMIT : LIMIT;
  render(ui.heading(ORDERS[order][1], ofGroup(group)),
    groupChoice(groups, group, link, { interval: period, at: start }),
    total > 0 && [el("p", { class: "lead" }, describe(ranked, drove, total, choices, link)),
      el("p", { class: "views" }, el("a", { href: listOf("events", choices) }, "Events"),
        el("a", { href: listOf("trips", choices) }, "Worst trips"), el("a", { href: "#/reports" }, "Reports"),
        byStart.size > 0 && el("button", { class: "small", onclick: () => document.querySelector(".over-time").scrollIntoView() }, "Over time"),
        fleet.last_trip_received_at
          && el("span", { class: "quiet" }, `Last trip received ${format.received(fleet.last_trip_received_at)}`))],
    controls(choices, link), el("div", { class: "fleet" },
      el("div", {}, text && el("p", { class: "quiet" }, text),
        rows.length ? [table(rows, choices, link), ui.csvButton(orders ? "Download CSV by score" : "Download CSV", ["ranking", behaviour, format.filePeriod(period, start), group],
          ["ranking"], query, { total: ranked })] : (!ranked || page > 1) && await whyNone(choices, drove, link, fleet.fleet),
        !orders && count > LIMIT && ui.actionButton(`Print all ${format.number(count)}`, "Printed", () => printAll(count, fetchPage, makeRows)),
        ui.pages(page, count, size, (other) => link({ page: other }), page * size < count && page + 1)),
      el("div", {}, fleetOverTime(byStart, choices, link, judged,
        implausible && describeDoubt(summary, implausible, fleet, listOf("trips", choices, { implausible: true }))),
      insured.some(Boolean) && insurance([...insured, uninsured], choices))));
  scrollTo(findPage(listStarts(period), start, COLUMNS).starts, start);
}

/** Puts all drivers into the list, and prints the page. */
async function printAll(count, fetchPage, makeRows) {
  const body = document.querySelector(".ranking tbody"), rows = [];
  for (let page = 1; page <= Math.ceil(count / LIMIT); page++) rows.push(...await makeRows((await fetchPage(page)).drivers));
  if (!body.isConnected) return;
  body.replaceChildren(...rows);
  document.querySelector(".pages").remove();
  print();
}

const whyNone = async (...about) => (await loadModule(() => import("./no-drivers.js"))).describe(...about);
const isOfApi = (order) => ["worst", "best"].includes(order);
export const fetchRanking = (query) => fetchJson(["ranking"], query, { mask: MASK });

/** Returns the {fm_score, distance_miles}, by id, of those drivers who drove in a period. */
export async function fetchScoresById(period, start, drivers) {
  if (start < format.oldestStart(period)) return new Map();
  const mask = "{data{driver_info{driver_id},driving_summary{fm_score,distance_miles}}}";
  const ids = drivers.map(({ driver_id: id }) => id), parts = [];
  while (ids.length) parts.push(ids.splice(0, LIMIT));
  const pages = await Promise.all(parts.map((part) =>
    fetchJson(["driver-aggregate", AGGREGATES[period]], { start_date: start, driver_id: part }, { mask })));
  return new Map(pages.flatMap(({ data }) =>
    data.map((element) => [element.driver_info.driver_id, element.driving_summary])));
}

/** Returns the table of the list. The headings of its columns sort all of it, but for the names of many drivers. */
function table(rows, { order, behaviour }, link) {
  const sort = (text, changed) => el("a", { id: `sort-${text}`, href: link(changed) }, text);
  const other = { order: order === "worst" ? "best" : undefined };
  const node = ui.table("ranking", ["#", sort("Driver", { order: "name", behaviour: undefined }),
    sort("Score", { ...(!behaviour && other), behaviour: undefined }), behaviour ? sort("Why", other) : "Why"], rows);
  // Worst is the lowest score, or most points of a behaviour.
  const direction = isOfApi(order) ? (order === "worst") === !behaviour ? "ascending" : "descending" : order === "name" ? "ascending" : "other";
  node.querySelectorAll("th")[order === "name" ? 1 : behaviour ? 3 : 2].setAttribute("aria-sort", direction);
  return node;
}

/** Returns the fleet in the period, against the one before, and its score over time. */
function fleetOverTime(byStart, { period, start, behaviour, group }, link, judged, doubt) {
  const summary = byStart.get(start), before = byStart.get(format.shift(period, start, -1));
  const { starts, previous, next } = findPage(listStarts(period), start, COLUMNS);
  if (!byStart.size) return undefined;
  return el("section", { class: "over-time" }, el("div", { class: "head" }, el("h2", {}, group ? "The group over time" : "The fleet over time"),
    ui.stepper(`${COLUMNS} ${period}s`, "", previous && link({ start: previous }), next && link({ start: next }))),
  ui.behaviourLegend(summary?.behaviours, ["distance", "Distance"]), chart(period, starts, byStart, start, (to) => link({ start: to.at })),
  summary && [doubt, ui.tiles(
    [group ? "Score of the group" : "Score of the fleet", ui.grade(summary)],
    [`Against the ${period} before`, ui.scoreChange(summary, before)],
    ["Distance", format.distance(summary.distance_miles), el("small", {}, format.count(summary.trip_count, "trip"))],
    ["Driving", format.duration(summary.duration_seconds)],
    ["At night", format.share(summary.night_driving_seconds, summary.duration_seconds), el("small", {}, "of the time")]),
  el("ul", { class: "grades", "aria-label": "Drivers by grade" }, judged.grades.map(
    ([grade, count]) => el("li", {}, el("span", { class: `grade ${grade}` }, el("b", {}, format.number(count)),
      ` ${grade}`)))),
  coaching(judged.toCoach, behaviour, link), events(summary, { period, start, group })],
  ui.csvButton(`Download CSV of all ${period}s`, [`${period}s`, group], ["fleet-aggregate"],
    { start_date: format.oldestStart(period), interval: period, group, limit: undefined }));
}

/** Returns the summary of the trips with an insurance period, or "none", in the week or month, if there are some. */
async function fetchInsurance(name, { period, start, group }, fleet) {
  const query = { start_date: start, end_date: format.datesOf(period, start).end, interval: period, group, insurance_period: name };
  const { series } = await fetchJson(["fleet-aggregate"], query, { mask: format.FLEET_MASK });
  return format.fleetByStart(series, fleet).get(start);
}

/** Returns a table of the insurance periods. The last summary is of the trips without one. */
function insurance(summaries, { period, start, group }) {
  const names = [...Object.entries(INSURANCE), ["None"]];
  // On a phone, a line may end after the hours.
  const cells = (summary) => [
    [format.distance(summary.distance_miles), format.count(summary.trip_count, "trip")],
    [format.duration(summary.duration_seconds).replace("h\u00a0", "h "), format.count(summary.driver_count, "driver")],
    [ui.grade(summary)]].map(([value, note]) => el("td", {}, value, " ", note && el("small", {}, note)));
  return el("section", {}, el("h2", {}, "Insurance periods"), ui.table("insurance", ["Period", "Distance", "Driving", "Score"],
    summaries.map((summary, i) => el("tr", {}, el("th", { scope: "row" }, el("b", {}, names[i][0]), " ", el("small", {}, names[i][1])),
      summary ? cells(summary) : el("td", { colspan: 3, class: "quiet" }, "no trips")))),
  ui.csvButton("Download CSV of the insurance periods", ["insurance-periods", format.filePeriod(period, start), group], ["fleet-aggregate"],
    { start_date: start, end_date: format.datesOf(period, start).end, interval: period, group, limit: undefined },
    { each: ["insurance_period", [...Object.keys(INSURANCE), "none"]] }));
}

/** Returns what the figures do with the implausible trips of the period, which the link lists. */
function describeDoubt({ implausible_trip_count: count, isDoubtful }, { trips, more }, fleet, href) {
  const { size } = new Set(trips.map(({ driver_id: id }) => id));
  const drivers = size > 0 && ` of ${more ? `${format.number(size)} or more drivers` : format.count(size, "driver")}`;
  return note(fleet, el("a", { href }, format.count(count, "implausible trip"), drivers), ", whose data look wrong.",
    isDoubtful && " The operator of this service can leave them out.");
}

/**
 * Returns {grades, toCoach}: numbers of drivers by grade, and by behaviour, of a ranking of `count` drivers.
 *
 * The summary of the fleet counts those who drove less, too. So each number is known but for as many drivers as drove
 * less, and of the ranking, where these drivers are next to each other, only the pages in question are requested.
 */
async function countJudged(ranking, count, summary) {
  const less = Math.max(0, summary.driver_count - count), pages = new Map();
  const fetchPage = (page, behaviour) => {
    const query = { ...ranking, ...(behaviour && { behaviour }), limit: MAX_LIMIT, page }, key = `${behaviour} ${page}`;
    if (!pages.has(key)) pages.set(key, fetchJson(["ranking"], query, { mask: JUDGED_MASK }));
    return pages.get(key);
  };
  /** Returns how many drivers, who are the first of the ranking, have a property: `most` of all who drove do. */
  async function countFirst(most, hasIt, behaviour) {
    let low = Math.max(0, most - less), high = Math.min(most, count);
    while (low < high) {
      const page = Math.floor((low + high) / 2 / MAX_LIMIT), { drivers } = await fetchPage(page + 1, behaviour);
      const found = drivers.filter(({ driving_summary: each }) => hasIt(each)).length;
      if (found > 0) low = page * MAX_LIMIT + found;
      if (found < MAX_LIMIT) high = page * MAX_LIMIT + found;
    }
    return low;
  }
  const worstFirst = Object.keys(format.settings.grades).reverse();
  const worse = worstFirst.map((_, i) => worstFirst.slice(0, i + 1));
  const [sums, toCoach] = await Promise.all([Promise.all(worse.map((grades) => countFirst(
    grades.reduce((sum, grade) => sum + summary.drivers_by_grade[grade], 0), (each) => grades.includes(each.fm_grade)))),
  // On a page with all drivers, their order does not matter.
  Promise.all(format.settings.behaviours.map(({ name, focus_flag: flag }) => countFirst(
    summary.drivers_by_focus_area[flag], (each) => each.focus_area[flag], count > MAX_LIMIT ? name : undefined)))]);
  return { grades: worstFirst.map((grade, i) => [grade, sums[i] - (sums[i - 1] ?? 0)]).reverse(), toCoach };
}

/** Returns the address of a list, "events" or "trips", of the dates of a week or month. */
const listOf = (view, { period, start, group }, chosen) =>
  format.address(view, undefined, { ...format.datesOf(period, start), group, ...chosen });

/** Returns how many events there were; each number opens them. */
const events = ({ behaviours }, choices) => el("div", { class: "to-coach" }, el("b", {}, "Events"),
  ui.choice("Events", behaviours.map(({ behaviour, count }) =>
    [`${format.LABELS[behaviour]}: ${format.number(count)}`, listOf("events", choices, { behaviour })])));

/** Returns how many drivers to coach by each behaviour; choosing one orders the list by it. */
function coaching(toCoach, chosen, link) {
  const counts = format.settings.behaviours.map(({ name }, i) =>
    [`${format.LABELS[name]}: ${format.number(toCoach[i])}`, name]);
  return el("div", { class: "to-coach" }, el("b", {}, "Drivers to coach"), ui.choice("To coach by",
    [["All", undefined], ...counts].map(([text, behaviour]) => [text, link({ behaviour, order: undefined }), behaviour === chosen])));
}

/** Returns the period, and its first date, that the address has: by default those of the last full week. */
export function readPeriod(parameters) {
  const period = parameters.period === "month" ? "month" : "week";
  return { period, start: format.nearestStart(period, parameters.start) ?? format.lastWholeStart(period) };
}

function readChoices(parameters) {
  const order = Object.hasOwn(ORDERS, parameters.order) ? parameters.order : "worst", miles = Number(parameters.miles || NaN);
  const canBeBy = isOfApi(order) && Object.hasOwn(format.LABELS, parameters.behaviour);
  const behaviour = canBeBy ? parameters.behaviour : undefined;
  const { period, start } = readPeriod(parameters);
  return { period, start, order, behaviour, page: format.readPage(parameters), group: readGroup(parameters),
    miles: Number.isNaN(miles) ? format.settings.min_distance_miles[period] : Math.min(MAX_MILES, Math.max(0, round(miles, 3))) };
}

const round = (value, digits) => Number(value.toFixed(digits));
/** Returns miles as they are typed in, in the units of the page. */
export const inBox = (miles) => round(format.inUnits(miles), 2);

/** Returns how many drivers the list has, and which others there are. */
function describe(count, drove, total, { period, start, miles, group }, link) {
  const far = miles ? ` at least ${inBox(miles).toLocaleString("en")} ${format.unitsName}` : "";
  const which = [start === format.lastWholeStart(period) && `the last full ${period}`, format.noteEarliest(period, start)]
    .filter(Boolean).map((text) => `, ${text}`).join("");
  const soFar = format.shift(period, start, 1) > format.today() ? " so far" : "";
  const all = `${format.number(count)} of ${format.count(total, "driver")}`;
  const others = [[drove - count, "drove less", link({ miles: 0 }), miles === format.settings.min_distance_miles[period] && ", too little to judge"],
    [total - drove, "did not drive", format.address("idle", undefined, { period, start, group })]];
  return [`${all}${group ? " of the group" : ""} drove${far} in ${format.period(period, start)}${which}${soFar}.`,
    others.filter(([number]) => number > 0).map(([number, what, href, why]) =>
      [" ", el("a", { href }, `${format.number(number)} ${what}`), why, "."])];
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
    ui.choice("Order", Object.entries(ORDERS).slice(0, -1).map(([other, [label]]) =>
      [label, link({ order: other, ...(CHANGES.includes(other) && { behaviour: undefined }) }), other === order])),
    el("label", { class: "inline" }, "At least ", input, ` ${format.unitsName}`));
}

function row({ rank, driver_info: driver, driving_summary: summary }, before, { period, start, group, behaviour: chosen }) {
  const behaviours = format.explain(summary), losses = format.findLosses(behaviours);
  const main = chosen ? losses.find(({ behaviour }) => behaviour === chosen) : losses[0];
  const href = format.address("driver", driver.driver_id, { interval: period, at: start, group });
  return el("tr", {}, el("td", { class: "rank" }, format.number(rank)),
    el("th", { scope: "row" }, el("a", { href }, ui.name(driver)), el("small", {}, ui.aliases(driver)),
      el("small", {}, `${format.distance(summary.distance_miles)} · ${format.count(summary.trip_count, "trip")} · `,
        el("a", { href: format.address("compare", driver.driver_id, { interval: period, at: start }),
          "aria-label": `Compare ${format.driverName(driver)}` }, "Compare"))),
    el("td", {}, ui.grade(summary), ui.scoreChange(summary, before)),
    el("td", { class: "why" }, main ? [
      el("span", { class: "loss-bar", role: "img", "aria-label": ui.describeLosses(behaviours) },
        losses.map(({ behaviour, points_lost }) => ui.bar(behaviour, points_lost))),
      el("b", {}, format.LABELS[main.behaviour]), ` −${format.score(main.points_lost)}`,
      el("small", {}, el("a", { href: listOf("events", { period, start, group }, { behaviour: main.behaviour, driver: driver.driver_id }) },
        ui.extent(main)), ui.describeLosses(losses.filter((loss) => loss !== main), "−").map((text) => ` · ${text}`)),
    ] : chosen ? "This cost no points" : "Nothing cost points"));
}
