// A driver beside another one, or a group of drivers beside another one, or either beside the fleet: the scores over time, and the points lost in a day, week or month.

import { fetchJson } from "./api.js";
import * as format from "./format.js";
import { fetchGroups, groupBox, groupName, readGroup } from "./groups.js";
import { fetchImplausible, withDoubt } from "./implausible.js";
import { fetchFleetScores, fetchScores, readInterval } from "./scores.js";
import { INTERVALS, axis, controls, findPage, listStarts, scrollTo } from "./score-chart.js";
import * as ui from "./ui.js";

const { bar, el, svg } = ui;
const MAX_FOUND = 10;
const DRIVER_MASK = "{count,drivers{driver_id,first_name,last_name,alias}}";
const NO_TRIPS = "no trips";
// The classes of the two sides.
const SIDES = ["first", "second"];

export async function show({ id, parameters, fleet, settle, render }) {
  const interval = readInterval(parameters);
  const group = id ? undefined : readGroup(parameters), find = group ? undefined : parameters.find;
  const other = parameters.with === (group ?? id) ? undefined : parameters.with || undefined;
  const ofFleet = (name) => fetchFleetScores(interval, fleet, name);
  const [first, second, found, groups] = await Promise.all([group ? ofFleet(group) : fetchScores(id, interval),
    group || !other ? ofFleet(other) : fetchScores(other, interval), find && fetchFound(find), group && fetchGroups()]);
  const names = [first, second].map(({ driver }) => driver && format.driverName(driver));
  const sides = [first, second].map(({ driver, byStart }, side) => {
    const id = driver && names[0] === names[1] && ` (${driver.driver_id})`, own = group && [group, other][side];
    return { byStart, isDriver: Boolean(driver), group: own, text: driver ? [names[side], id].filter(Boolean).join("") : own ?? "The fleet",
      write: () => (driver ? [ui.name(driver), id && el("bdi", {}, id)] : own ? groupName(own) : "The fleet") };
  });
  const starts = listStarts(interval), isThere = (start) => sides.some(({ byStart }) => byStart.has(start));
  const isOfBoth = (start) => sides.every(({ byStart }) => byStart.has(start));
  const newest = starts.findLast(isOfBoth) ?? starts.findLast(isThere) ?? starts.at(-1);
  const at = format.nearestStart(interval, parameters.at, format.today()) ?? newest, isNewest = at === newest;
  const settled = settle({ interval, group, with: other, find }, format.stay("at", interval, at, " with trips"));
  const drivers = [first, second].filter(({ driver }) => driver);
  const ids = drivers.map(({ driver }) => driver.driver_id);
  const { trips } = group ? {} : await fetchImplausible(at, format.shift(interval, at, 1), ids);
  for (const { driver, byStart } of drivers.filter((side) => side.byStart.has(at))) {
    const own = trips.filter(({ driver_id: id }) => id === driver.driver_id);
    byStart.set(at, withDoubt(byStart.get(at), interval, at, own, fleet));
  }
  const link = (changed) => format.address("compare", id || undefined,
    { interval, at: settled.at, group, with: other, ...changed });
  const page = findPage(starts, at, INTERVALS[interval][0], isThere);
  const soFar = format.shift(interval, at, 1) > format.today() && el("small", {}, " so far");
  const period = interval === "month" ? "month" : "week", inFleet = { group, period, start: format.nearestStart(period, at) };
  const up = group ? format.address("fleet", undefined, inFleet) : format.address("driver", id, { interval, at });
  render(el("div", { class: "up" }, el("span", {}, group ? "Group " : "Driver ", el("a", { href: up }, sides[0].write()))),
    ui.heading(sides[0].write(), " and ", other ? sides[1].write() : "the fleet"),
    group && groupsChooser(groups, group, other, link),
    el("section", {}, controls("Scores over time", interval, page, link, !isNewest && at),
      ui.legend(sides.map(({ write }, side) => [SIDES[side], write()])),
      chart(interval, page.starts, sides, at, link)),
    el("section", {}, el("h2", {}, format.period(interval, at), soFar), table(sides, at), buttons(ids, sides, interval, at)),
    !group && el("section", {}, el("h2", {}, "Compare with"), chooser([id, other], find, found, link)));
  scrollTo(page.starts, at);
}

/** Returns a chart with a line for each of two sides, {byStart, text}, and their scores below it. */
function chart(interval, starts, sides, at, link) {
  const { low, size, labels, note } = axis(starts.flatMap((start) => sides.flatMap(({ byStart }) => byStart.get(start)?.fm_score ?? [])));
  const columns = starts.map((start, i) => {
    const scores = sides.map(({ byStart }) => [i - 1, i, i + 1].map((j) => byStart.get(starts[j])?.fm_score));
    const write = (score) => (score === undefined ? NO_TRIPS : format.score(score));
    const facts = sides.map(({ text }, side) => `${text} ${write(scores[side][1])}`);
    const text = `${format.period(interval, start)}: ${facts.join(", ")}`;
    const drawing = svg("svg", { viewBox: "0 0 2 100", preserveAspectRatio: "none", "aria-hidden": "true" });
    drawing.append(...scores.flatMap((values, side) => linePart(SIDES[side], values.map((value) => value && size(value - low)))));
    const isThere = sides.some(({ byStart }) => byStart.has(start));
    const attributes = isThere && { id: `at-${start}`, href: link({ at: start }), title: text,
      "aria-current": start === at && "true" };
    return el("li", {}, el(isThere ? "a" : "span", { class: "column", ...attributes }, ui.visuallyHidden(text), drawing,
    el("span", { "aria-hidden": "true" }, el("small", {}, format.shortPeriod(interval, start)),
      scores.map(([, score], side) => el("b", { class: SIDES[side] }, score === undefined ? "–" : format.score(score))))));
  });
  return el("div", { class: "score-chart lines" }, labels, el("ol", { class: "columns", tabindex: 0 }, columns), note);
}

/** Returns the part of a line in a column: a point, and the line to half the way to the scores before and after. */
function linePart(className, [before, score, after]) {
  if (score === undefined) return [];
  const y = (value) => 100 - value, halfway = (value) => y((score + (value ?? score)) / 2);
  const points = [before !== undefined && `0,${halfway(before)}`, `1,${y(score)}`,
    after !== undefined && `2,${halfway(after)}`].filter(Boolean).join(" ");
  return [svg("polyline", { class: className, points }), svg("path", { class: className, d: `M1,${y(score)}h0` })];
}

/** Returns the summaries of the period side by side, and what each behaviour cost in both. */
function table(sides, at) {
  const summaries = sides.map(({ byStart }) => byStart.get(at)), isBoth = summaries.every(Boolean);
  const row = (label, describe, compare) => el("tr", {}, el("th", { scope: "row" }, label),
    summaries.map((summary) => el("td", {}, summary ? describe(summary) : NO_TRIPS)),
    el("td", {}, isBoth && compare && compare(...summaries, "none")));
  const rows = Object.entries(format.LABELS).map(([behaviour, label]) => {
    const find = (summary) => summary.behaviours.find((loss) => loss.behaviour === behaviour);
    return row([el("i", { class: behaviour }), label], (summary) => lossCell(find(summary)),
      (one, other, none) => !one.isDoubtful && !other.isDoubtful
        && ui.change(-find(one).points_lost, -find(other).points_lost, none));
  });
  return ui.table("sides", ["What", ...sides.map(({ write }) => write()), "Gap"], [
    row("Score", ui.grade, ui.scoreChange), rows,
    row("Distance", (summary) => [format.distance(summary.distance_miles), " ",
      el("small", {}, format.count(summary.trip_count, "trip"),
        summary.driver_count !== undefined && ` of ${format.count(summary.driver_count, "driver")}`)])]);
}

/** Returns a button to save the drivers in the period, and one for each other side over time. */
function buttons(ids, sides, interval, at) {
  const dates = { start_date: at, end_date: format.earlier(format.shift("day", format.shift(interval, at, 1), -1), format.today()) };
  // This list has no pages.
  const overTime = { start_date: format.oldestStart(interval), interval, limit: undefined };
  return [ids.length > 0 && ui.csvButton(`Download CSV of ${ids.length > 1 ? "both drivers" : "the driver"}`,
    ["comparison", format.filePeriod(interval, at), ...ids], ["driver-aggregate", "window"], { ...dates, driver_id: ids }),
  sides.filter(({ isDriver }) => !isDriver).map(({ group, text }) => ui.csvButton(`Download CSV of ${group ? text : "the fleet"} by ${interval}`,
    [`${interval}s`, group], ["fleet-aggregate"], { ...overTime, group }))];
}

const writeLoss = (points) => (points === format.score(0) ? points : `−${points}`);
const lossCell = (loss) => [writeLoss(format.score(loss.points_lost)), bar(`meter ${loss.behaviour}`, 2 * loss.points_lost),
  el("small", {}, ui.rate(loss))];

const fetchFound = (text) => fetchJson(["drivers"], { search: text, limit: MAX_FOUND }, { mask: DRIVER_MASK });

/** Returns boxes to choose both groups. */
const groupsChooser = (groups, group, other, link) => el("div", { class: "controls" },
  groupBox("group", "Group", groups.filter((name) => name !== other), group, (name) => link({ group: name })),
  groupBox("with", "compared with", groups.filter((name) => name !== group), other, (name) => link({ with: name }), "The fleet"));

/** Returns links to the fleet and to the drivers whom a search found, and the search. */
function chooser(ids, find, found, link) {
  const attributes = { id: "other", type: "search", maxlength: 128, pattern: ".*\\S.*", required: true, value: find };
  const input = el("input", attributes);
  function search(event) {
    event.preventDefault();
    location.hash = link({ find: input.value.trim() });
  }
  const drivers = found?.drivers.filter((driver) => !ids.includes(driver.driver_id)) ?? [];
  return [ids[1] && el("p", {}, el("a", { href: link({ with: undefined }) }, "The fleet")),
    el("form", { class: "row", onsubmit: search }, el("label", { for: "other" }, "Another driver"), input,
      el("button", {}, "Find")),
    found && (drivers.length ? el("ul", { class: "found" }, drivers.map((driver) => el("li", {},
      el("a", { href: link({ with: driver.driver_id }) }, ui.name(driver)), el("small", {}, ui.aliases(driver)))))
      : ui.empty("No other driver has this name.")),
    found?.count > MAX_FOUND && el("p", { class: "quiet" },
      `${MAX_FOUND} of ${format.count(found.count, "driver")}. Type more of the name.`)];
}
