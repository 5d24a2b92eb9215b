// A driver: the score over time and why, and the trips of one day, week or month.

import { fetchJson, remember } from "./api.js";
import * as format from "./format.js";
import { aliases, change, choice, el, empty, extent, grade, heading, legend, name, sized, tiles, unseen } from "./ui.js";

// How many intervals the chart shows, and what they are called.
const INTERVALS = { day: [28, "Days", "daily"], week: [12, "Weeks", "weekly"], month: [6, "Months", "monthly"] };
const TRIPS = 100;
const TRIP_FIELDS = "trip_id,trip_start_time,duration_seconds,distance_miles,event_summary";
const TRIPS_MASK = `{next_page,trips{${TRIP_FIELDS}}}`;
const TOTALS_MASK = "{data{driving_summary{night_driving_seconds,highway_miles}}}";
const TALK_TRIPS = 3;

export async function show({ id, parameters, render }) {
  const interval = Object.hasOwn(INTERVALS, parameters.interval) ? parameters.interval : "week";
  const starts = listStarts(interval, parameters.at);
  const query = { start_date: starts[0], end_date: lastDate(interval, starts), interval };
  const score = await fetchJson(["driver", id, "score"], query);
  const driver = score.driver_info;
  remember(driver);
  const byStart = new Map(score.series.map((element) => [element.start_date, element.explanation]));
  const at = starts.includes(parameters.at) ? parameters.at : score.series.at(-1)?.start_date;
  const detail = at === undefined ? noTrips(driver) : await periodDetail(driver, interval, at, byStart);
  render(format.driverName(driver), heading(name(driver)), el("p", { class: "lead" }, aliases(driver)),
    el("section", {}, el("div", { class: "controls" }, el("h2", {}, "Score over time"), intervalChoice(id, interval)),
      legend(), chart(id, interval, starts, byStart, at)), detail);
}

const intervalChoice = (id, interval) => choice("Interval", Object.entries(INTERVALS).map(([other, [, label]]) =>
  [label, format.address("driver", id, { interval: other }), other === interval]));

/** Returns the first dates of the intervals to show: the newest ones, or those around a date that is older. */
function listStarts(interval, at) {
  const [count] = INTERVALS[interval];
  const newest = format.startOf(interval, format.addDays(format.today(), -1));
  let first = format.shift(interval, newest, 1 - count);
  if (format.isPeriodStart(interval, at) && at < first) first = at;
  const oldest = format.addMonths(format.today(), -6);
  return Array.from({ length: count }, (_, i) => format.shift(interval, first, i)).filter((start) => start >= oldest);
}

/** Returns the last date of the chart: not later than yesterday, because aggregates of today change. */
function lastDate(interval, starts) {
  const yesterday = format.addDays(format.today(), -1);
  const end = format.addDays(format.shift(interval, starts.at(-1), 1), -1);
  return end < yesterday ? end : yesterday;
}

function noTrips(driver) {
  const last = driver.last_travel_date;
  return empty(last ? `No trips in this time. The last one was on ${format.day(Date.parse(last))}.`
    : "This driver has no trips yet.");
}

/** Returns a chart with a column for each interval: the score, and above it the points that each behaviour cost. */
function chart(id, interval, starts, byStart, at) {
  const longest = Math.max(...[...byStart.values()].map(({ distance_miles }) => distance_miles), 1);
  return el("div", { class: `score-chart ${interval}` },
    el("div", { class: "scale", "aria-hidden": "true" }, [100, 50, 0].map((score) => {
      const line = el("span", {}, String(score));
      line.style.bottom = `${score}%`;
      return line;
    }), el("small", {}, "Miles")),
    el("ol", { class: "columns" }, starts.map((start) =>
      column(id, interval, start, byStart.get(start), start === at, longest))));
}

function column(id, interval, start, explanation, isCurrent, longest) {
  const period = format.period(interval, start);
  const label = el("small", { "aria-hidden": "true" }, format.shortPeriod(interval, start));
  if (!explanation) {
    return el("li", {}, el("span", { class: "column" }, el("span", { class: "bars" }), label, unseen(`${period}: no trips`)));
  }
  const losses = [...explanation.behaviours].reverse().filter(({ points_lost }) => points_lost > 0);
  const words = losses.map((loss) => `${format.labelOf(loss.behaviour)} minus ${format.score(loss.points_lost)}`);
  const facts = [`score ${format.score(explanation.fm_score)}`, format.miles(explanation.distance_miles), ...words];
  const text = `${period}: ${facts.join(", ")}`;
  const bars = el("span", { class: "bars", "aria-hidden": "true" },
    losses.map(({ behaviour, points_lost }) => sized(el("i", { class: behaviour }), { height: points_lost })),
    sized(el("i", { class: "score" }, el("b", {}, format.number(explanation.fm_score))), { height: explanation.fm_score }));
  const miles = el("span", { class: "miles", "aria-hidden": "true" },
    sized(el("i", {}), { height: (100 * explanation.distance_miles) / longest }));
  return el("li", {}, el("a", { class: "column", id: `at-${start}`, href: format.address("driver", id, { interval, at: start }),
    title: text, "aria-current": isCurrent && "true" }, unseen(text), bars, label, miles));
}

async function periodDetail(driver, interval, start, byStart) {
  const explanation = byStart.get(start), before = byStart.get(format.shift(interval, start, -1))?.fm_score;
  const title = el("h2", {}, format.period(interval, start));
  if (!explanation) return el("section", {}, title, empty("No trips in this time."));
  const query = { start_date: start, driver_id: driver.driver_id };
  const [{ data: [{ driving_summary: totals }] }, trips] = await Promise.all([
    fetchJson(["driver-aggregate", INTERVALS[interval][2]], query, { mask: TOTALS_MASK }),
    fetchTrips(driver.driver_id, interval, start)]);
  const facts = tiles(["Score", grade(explanation)], [`Against the ${interval} before`, change(explanation.fm_score, before)],
    ["Distance", format.miles(explanation.distance_miles)],
    ["Driving", format.duration(explanation.duration_seconds), el("small", {}, format.count(explanation.trip_count, "trip"))],
    totals && ["Highway", format.share(totals.highway_miles, explanation.distance_miles), el("small", {}, "of the miles")],
    totals && ["At night", format.share(totals.night_driving_seconds, explanation.duration_seconds),
      el("small", {}, "of the time")]);
  return el("section", { class: "period" }, title, facts,
    el("div", { class: "halves" }, el("section", {}, el("h3", {}, "What to talk about"), reasons(explanation, trips.list)),
      el("section", {}, el("h3", {}, "Trips"), tripTable(driver, interval, start, trips, explanation.trip_count))));
}

/** Returns {list, next}: the trips of the period on a page, oldest first, and the next page if they go on there. */
async function fetchTrips(id, interval, start, page = 1) {
  const end = Date.parse(format.shift(interval, start, 1)), query = { start_date: start, limit: TRIPS, page };
  const { trips, next_page: next } = await fetchJson(["driver", id, "trips"], query, { mask: TRIPS_MASK });
  const list = trips.filter((trip) => trip.trip_start_time < end);
  return { list, next: list.length === trips.length && next };
}

/** Returns what each behaviour cost, the costliest first, with the trips where it happened most. */
function reasons(explanation, trips) {
  const costly = format.sortByCost(explanation.behaviours).filter(({ points_lost }) => points_lost >= 0.05);
  if (!costly.length) return empty("No behaviour cost points. Well driven.");
  return el("ol", { class: "reasons" }, costly.map((reason) => el("li", {},
    el("p", {}, el("i", { class: reason.behaviour }), el("b", {}, format.labelOf(reason.behaviour)), " cost ",
      el("b", {}, format.score(reason.points_lost)), ` of ${reason.weight} points: ${extent(reason)}${rate(reason)}`),
    sized(el("span", { class: `meter ${reason.behaviour}` }), { width: (100 * reason.points_lost) / reason.weight }),
    worstTrips(reason, trips))));
}

const rate = ({ seconds, rate: value }) => (seconds === null ? `, ${format.number(value, 1)} per 100 miles`
  : `, ${format.number(100 * value, 1)} % of the driving time`);

function worstTrips({ behaviour, seconds }, trips) {
  const field = seconds === null ? `${behaviour}_count` : `${behaviour}_time_seconds`;
  const worst = trips.filter((trip) => trip.event_summary[field] > 0)
    .sort((a, b) => b.event_summary[field] - a.event_summary[field]).slice(0, TALK_TRIPS);
  if (!worst.length) return "";
  return el("ul", { class: "where" }, worst.map((trip) => el("li", {}, el("a",
    { href: format.address("trip", trip.trip_id, { about: behaviour }) }, formatStart(trip)),
  ` ${extent({ count: trip.event_summary[`${behaviour}_count`], seconds: seconds !== null && trip.event_summary[field] })}`)));
}

const formatStart = (trip) => `${format.shortDay(trip.trip_start_time)}, ${format.time(trip.trip_start_time)}`;

function tripTable(driver, interval, start, { list, next }, total) {
  const columns = ["Start (UTC)", "Length", "Events"].map((text) => el("th", { scope: "col" }, text));
  const body = el("tbody", {}, list.map(tripRow));
  const hours = format.settings.processing_delay_hours;
  const late = list.length < total && !next && el("p", { class: "quiet" },
    `${format.count(total - list.length, "trip")} more: trips appear here ${format.count(hours, "hour")} after their end.`);
  const more = next && el("button", { id: "more-trips", onclick: showMore }, "Show more trips");
  let page = next;
  async function showMore() {
    more.disabled = true;
    const answer = await fetchTrips(driver.driver_id, interval, start, page).catch(() => ({ list: [], next: page }));
    more.disabled = false;
    more.textContent = answer.list.length ? "Show more trips" : "No response. Try again";
    body.append(...answer.list.map(tripRow));
    page = answer.next;
    if (!page) more.remove();
  }
  if (!list.length) return late || empty("No trips.");
  return el("div", {}, el("table", { class: "trips" }, el("thead", {}, el("tr", {}, columns)), body), late, more);
}

function tripRow(trip) {
  const events = trip.event_summary;
  const count = ({ name: behaviour }) => events[`${behaviour}_count`];
  const counts = format.BEHAVIOURS.filter(count).map((behaviour) =>
    el("li", {}, el("i", { class: behaviour.name }), String(count(behaviour)), unseen(` ${behaviour.label}`)));
  return el("tr", {}, el("th", { scope: "row" }, el("a", { href: format.address("trip", trip.trip_id) }, formatStart(trip))),
    el("td", {}, el("span", {}, format.miles(trip.distance_miles)), " ",
      el("small", {}, format.duration(trip.duration_seconds))),
    el("td", {}, counts.length ? el("ul", { class: "counts" }, counts) : el("span", { class: "quiet" }, "none")));
}
