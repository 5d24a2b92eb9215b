// The fleet: who needs coaching first, in a week or month.

import { fetchDriverPage, fetchJson, remember } from "./api.js";
import * as format from "./format.js";
import { aliases, change, choice, el, empty, grade, heading, legend, lossBar, extent, name, step } from "./ui.js";

// As many drivers as an aggregate takes.
const LIMIT = 20;
const MAX_MILES = 999_999;
const SUMMARY = "fm_score,fm_grade,trip_count,distance_miles,duration_seconds,events_summary";
const MASK = `{count,next_page,drivers{rank,driver_info{driver_id,first_name,last_name,alias},driving_summary{${SUMMARY}}}}`;
const AGGREGATES = { week: "weekly", month: "monthly" };

export async function show({ parameters, render }) {
  const choices = readChoices(parameters);
  const { period, start, order, miles, page } = choices;
  const isChanged = (key, value) => parameters[key] !== undefined && parameters[key] !== String(value);
  if (isChanged("start", start) || isChanged("miles", miles)) history.replaceState(null, "", link(choices, { page }));
  const query = { period, start_date: start, order, min_distance_miles: miles, limit: LIMIT, page };
  const ranking = await fetchJson(["ranking"], query, { mask: MASK });
  remember(...ranking.drivers.map(({ driver_info }) => driver_info));
  const before = await fetchScoresBefore(period, start, ranking.drivers.map(({ driver_info }) => driver_info.driver_id));
  const title = order === "worst" ? "Who needs coaching first" : "Who drives best";
  render(title, heading(title), el("p", { class: "lead" }, describe(ranking.count, choices)), controls(choices),
    ranking.drivers.length ? [legend(), table(ranking.drivers, before, choices)] : await noDrivers(choices),
    pages(choices, ranking));
}

function readChoices(parameters) {
  const period = parameters.period === "month" ? "month" : "week";
  const start = format.nearestStart(period, parameters.start), miles = nearestMiles(parameters.miles);
  const page = /^[1-9]\d{0,6}$/.test(parameters.page) ? Number(parameters.page) : 1;
  return { period, start, order: parameters.order === "best" ? "best" : "worst", miles, page };
}

const nearestMiles = (text) => Math.min(MAX_MILES, Math.max(0, Math.round(Number(text) || 0)));

/** Returns the address of the fleet with some choices changed; defaults are left out. */
function link(choices, changed) {
  const { period, start, order, miles, page } = { ...choices, page: 1, ...changed };
  return format.address("fleet", undefined, {
    period: period === "week" ? "" : period,
    start: start === format.lastFullPeriod(period) ? "" : start,
    order: order === "worst" ? "" : order,
    miles: miles || "",
    page: page === 1 ? "" : page,
  });
}

/** Returns the scores of drivers in the period before, by id, as far as there are some. */
async function fetchScoresBefore(period, start, ids) {
  const previous = format.shift(period, start, -1);
  if (!ids.length || previous < format.oldestStart(period)) return new Map();
  const query = { start_date: previous, driver_id: ids };
  const mask = "{data{driver_info{driver_id},driving_summary{fm_score}}}";
  try {
    const { data } = await fetchJson(["driver-aggregate", AGGREGATES[period]], query, { mask });
    return new Map(data.map((element) => [element.driver_info.driver_id, element.driving_summary?.fm_score]));
  } catch (error) {
    // A driver has been erased meanwhile.
    if (error.status === 404) return new Map();
    throw error;
  }
}

function describe(count, { period, start, miles }) {
  const far = miles ? ` at least ${format.number(miles)} miles` : "";
  const soFar = format.shift(period, start, 1) > format.today() ? " so far" : "";
  return `${format.count(count, "driver")} drove${far} in ${format.period(period, start)}${soFar}.`;
}

function controls(choices) {
  const { period, start, order, miles } = choices;
  const now = format.startOf(period, format.yesterday());
  const stepTo = (sign, count, label) => {
    const other = format.shift(period, start, count), isServed = other <= now && other >= format.oldestStart(period);
    return step(`step${count}`, sign, label, isServed ? link(choices, { start: other }) : undefined);
  };
  const input = el("input", { id: "miles", type: "number", min: 0, max: MAX_MILES, step: 1, value: miles, onchange: setMiles });
  function setMiles() {
    location.hash = link(choices, { miles: nearestMiles(input.value) });
  }
  return el("div", { class: "controls" },
    choice("Period", [["Week", "week"], ["Month", "month"]].map(([label, other]) =>
      [label, link(choices, { period: other, start: format.lastFullPeriod(other) }), other === period])),
    el("div", { class: "stepper" }, stepTo("‹", -1, `The ${period} before`),
      el("b", {}, format.period(period, start)), stepTo("›", 1, `The ${period} after`)),
    choice("Order", [["Worst first", link(choices, { order: "worst" }), order === "worst"],
      ["Best first", link(choices, { order: "best" }), order === "best"]]),
    el("label", { class: "inline" }, "At least ", input, " miles"));
}

function table(drivers, before, choices) {
  const columns = ["Rank", "Driver", "Score", "Why"].map((text) => el("th", { scope: "col" }, text));
  return el("table", { class: "ranking" }, el("caption", { class: "unseen" }, "Drivers by score"),
    el("thead", {}, el("tr", {}, columns)),
    el("tbody", {}, drivers.map((entry) => row(entry, before.get(entry.driver_info.driver_id), choices))));
}

function row({ rank, driver_info: driver, driving_summary: summary }, before, { period, start }) {
  const behaviours = format.explain(summary), [main] = behaviours;
  const href = format.address("driver", driver.driver_id, { interval: period, at: start });
  const why = main.points_lost < 0.05 ? "Nothing cost points"
    : [el("b", {}, format.labelOf(main.behaviour)), ` −${format.score(main.points_lost)}`];
  return el("tr", {}, el("td", { class: "rank" }, format.number(rank)),
    el("th", { scope: "row" }, el("a", { href }, name(driver)), el("small", {}, aliases(driver)),
      el("small", {}, `${format.miles(summary.distance_miles)} · ${format.count(summary.trip_count, "trip")}`)),
    el("td", {}, grade(summary), change(summary.fm_score, before)),
    el("td", { class: "why" }, lossBar(behaviours), el("span", {}, why),
      main.points_lost >= 0.05 && el("small", {}, extent(main))));
}

async function noDrivers(choices) {
  const { period, start, miles, page } = choices;
  if (page > 1) return empty("This page is past the end. ", el("a", { href: link(choices, {}) }, "Go to the first page"));
  if (miles) return empty("Nobody drove so far. ", el("a", { href: link(choices, { miles: 0 }) }, "Show all who drove"));
  const { count, drivers } = await fetchDriverPage(1);
  const last = drivers.map((driver) => driver.last_travel_date).filter(Boolean).sort().at(-1);
  if (!last) return empty(count ? "Nobody has driven yet." : "No drivers and trips are stored yet.");
  const other = format.nearestStart(period, last), isOffered = other !== start && other === format.startOf(period, last);
  const whose = count > drivers.length ? ` of the first ${format.count(drivers.length, "driver")}` : "";
  return empty(`Nobody drove in this time. The last trip${whose} was on ${format.day(Date.parse(last))}. `,
    isOffered && el("a", { href: link(choices, { start: other }) }, `Look at ${format.period(period, other)}`));
}

function pages(choices, { count, next_page: next }) {
  if (count <= LIMIT) return "";
  return el("nav", { class: "pages", "aria-label": "Pages" },
    choices.page > 1
      && el("a", { class: "button", id: "previous", href: link(choices, { page: choices.page - 1 }) }, "Previous"),
    ` Page ${format.number(choices.page)} of ${format.number(Math.ceil(count / LIMIT))} `,
    next && el("a", { class: "button", id: "next", href: link(choices, { page: next }) }, "Next"));
}
