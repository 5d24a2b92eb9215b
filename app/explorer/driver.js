// A driver: the score over time and why, and the trips of one day, week or month.

import { fetchJson, remember } from "./api.js";
import * as format from "./format.js";
import { aliases, change, choice, el, empty, extent, grade, heading, legend, name, sized, step, tiles, unseen } from "./ui.js";

// How many intervals the chart shows, and what they are called.
const INTERVALS = { day: [28, "Days", "daily"], week: [12, "Weeks", "weekly"], month: [6, "Months", "monthly"] };
const TRIPS_PER_PAGE = 100;
const MAX_TRIPS = 1000;
const TRIP_FIELDS = "trip_id,trip_start_time,duration_seconds,distance_miles,event_summary";
const TRIPS_MASK = `{next_page,trips{${TRIP_FIELDS}}}`;
const SHARES = "night_driving_seconds,highway_miles";
const TOTALS = `fm_score,fm_grade,trip_count,distance_miles,duration_seconds,${SHARES},events_summary`;
const TOTALS_MASK = `{data{driving_summary{${TOTALS}}}}`;
const TALK_TRIPS = 3;

export async function show({ id, parameters, render }) {
  const interval = Object.hasOwn(INTERVALS, parameters.interval) ? parameters.interval : "week";
  const starts = listStarts(interval, parameters.at);
  const score = await fetchJson(["driver", id, "score"], { ...findWindow(interval, starts), interval });
  const driver = score.driver_info;
  remember(driver);
  // The first interval of the response begins with the window.
  const byStart = new Map(score.series.map((element) =>
    [format.startOf(interval, element.start_date), element.explanation]));
  const at = starts.includes(parameters.at) ? parameters.at : [...byStart.keys()].at(-1);
  const detail = at === undefined ? noTrips(driver, interval) : await periodDetail(driver, interval, at, byStart.get(at));
  render(format.driverName(driver), heading(name(driver)), el("p", { class: "lead" }, aliases(driver)),
    el("section", {}, el("div", { class: "controls" }, el("h2", {}, "Score over time"),
      stepper(id, interval, starts), intervalChoice(id, interval)),
      legend(), chart(id, interval, starts, byStart, at)), detail);
  const columns = document.querySelector(".columns"), middle = at ? starts.indexOf(at) / starts.length : 1;
  // The chart may be wider than the screen.
  if (columns) columns.scrollLeft = middle * columns.scrollWidth - columns.clientWidth / 2;
}

const intervalChoice = (id, interval) => choice("Interval", Object.entries(INTERVALS).map(([other, [, label]]) =>
  [label, format.address("driver", id, { interval: other }), other === interval]));

/** Returns links to what is before and after the chart. */
function stepper(id, interval, starts) {
  const [count, label] = INTERVALS[interval], oldest = format.oldestStart(interval);
  const earlier = format.shift(interval, starts[0], -count), later = format.shift(interval, starts[0], count);
  const stepTo = (name, sign, at, isOffered) => step(name, sign, `${label} ${name}`,
    isOffered ? format.address("driver", id, { interval, at: at < oldest ? oldest : at }) : undefined);
  return el("div", { class: "stepper" }, stepTo("before", "‹", earlier, starts[0] > oldest),
    stepTo("after", "›", later, later <= format.today()));
}

/** Returns the first dates of the intervals to show: the newest ones, or those from a date on that is older. */
function listStarts(interval, at) {
  const [count] = INTERVALS[interval];
  let first = format.shift(interval, format.startOf(interval, format.today()), 1 - count);
  if (format.isPeriodStart(interval, at) && at < first) first = at;
  const oldest = format.oldestStart(interval);
  if (first < oldest) first = oldest;
  return Array.from({ length: count }, (_, i) => format.shift(interval, first, i)).filter((start) => start <= format.today());
}

/** Returns the dates of the chart, as far as the API serves them. */
function findWindow(interval, starts) {
  const [oldest, today] = [format.oldestDate(), format.today()];
  const last = format.addDays(format.shift(interval, starts.at(-1), 1), -1);
  return { start_date: starts[0] > oldest ? starts[0] : oldest, end_date: last < today ? last : today };
}

function noTrips({ driver_id: id, last_travel_date: last }, interval) {
  if (!last) return empty("This driver has no trips yet.");
  const at = format.startOf(interval, last), text = format.day(Date.parse(last));
  return empty("No trips in this time. The last one was on ",
    at >= format.oldestStart(interval) ? el("a", { href: format.address("driver", id, { interval, at }) }, text) : text, ".");
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

/** Returns a period in detail. `explanation` is what the chart shows of it. */
async function periodDetail(driver, interval, start, explanation) {
  const id = driver.driver_id;
  const [totals, before, trips] = await Promise.all([fetchTotals(id, interval, start),
    fetchTotals(id, interval, format.shift(interval, start, -1)), fetchTrips(id, interval, start)]);
  const summary = totals ?? explanation, title = el("h2", {}, format.period(interval, start));
  if (!summary) return el("section", {}, title, empty("No trips in this time."));
  const facts = tiles(["Score", grade(summary)], [`Against the ${interval} before`, change(summary.fm_score, before?.fm_score)],
    ["Distance", format.miles(summary.distance_miles)],
    ["Driving", format.duration(summary.duration_seconds), el("small", {}, format.count(summary.trip_count, "trip"))],
    totals && ["Highway", format.share(totals.highway_miles, totals.distance_miles), el("small", {}, "of the miles")],
    totals && ["At night", format.share(totals.night_driving_seconds, totals.duration_seconds),
      el("small", {}, "of the time")]);
  return el("section", { class: "period" }, title, facts,
    el("div", { class: "halves" }, el("section", {}, el("h3", {}, "What to talk about"), reasons(summary, trips)),
      el("section", {}, el("h3", {}, "Trips"), tripTable(trips, summary.trip_count))));
}

/** Returns the summary of a period with what its behaviours cost. There is none of one that begins today. */
async function fetchTotals(id, interval, start) {
  if (start < format.oldestStart(interval) || start >= format.today()) return undefined;
  const query = { start_date: start, driver_id: id };
  const { data } = await fetchJson(["driver-aggregate", INTERVALS[interval][2]], query, { mask: TOTALS_MASK });
  const summary = data[0].driving_summary;
  return summary && { ...summary, behaviours: format.explain(summary) };
}

/** Returns {list, since, isWhole}: the trips of the period, oldest first, from the earliest date that the API serves. */
async function fetchTrips(id, interval, start) {
  const end = Date.parse(format.shift(interval, start, 1)), oldest = format.oldestDate(), list = [];
  const since = start < oldest ? oldest : undefined;
  const query = { start_date: since ?? start, limit: TRIPS_PER_PAGE };
  let page = 1;
  while (page && list.length < MAX_TRIPS) {
    const answer = await fetchJson(["driver", id, "trips"], { ...query, page }, { mask: TRIPS_MASK });
    const trips = answer.trips.filter((trip) => trip.trip_start_time < end);
    list.push(...trips);
    page = trips.length === answer.trips.length && answer.next_page;
  }
  return { list, since, isWhole: !page };
}

/** Returns what each behaviour cost, the costliest first, with the trips where it happened most. */
function reasons(explanation, trips) {
  const costly = format.sortByCost(explanation.behaviours).filter(({ points_lost }) => points_lost >= 0.05);
  if (!costly.length) return empty("No behaviour cost points. Well driven.");
  return el("ol", { class: "reasons" }, costly.map((reason) => el("li", {},
    el("p", {}, el("i", { class: reason.behaviour }), el("b", {}, format.labelOf(reason.behaviour)), " cost ",
      el("b", {}, format.score(reason.points_lost)), ` of ${reason.weight} points: ${extent(reason)}${rate(reason)}`),
    sized(el("span", { class: `meter ${reason.behaviour}` }), { width: (100 * reason.points_lost) / reason.weight }),
    worstTrips(reason, trips.list))),
  !trips.isWhole && el("li", { class: "quiet" }, `Found in the first ${format.count(MAX_TRIPS, "trip")} of this time.`));
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

function tripTable({ list, since, isWhole }, total) {
  const columns = ["Start (UTC)", "Length", "Events"].map((text) => el("th", { scope: "col" }, text));
  const rows = list.map(tripRow), body = el("tbody", {}, rows.splice(0, TRIPS_PER_PAGE));
  const rest = list.length < total && el("p", { class: "quiet" }, `${format.count(total - list.length, "trip")} more: `,
    !isWhole ? `the list ends after ${format.number(MAX_TRIPS)}.`
      : since ? `the API serves no trips before ${format.day(Date.parse(since))}.`
        : `trips appear here ${format.delay() || "soon"} after their end.`);
  const more = rows.length > 0 && el("button", { id: "more-trips", onclick: showMore }, "Show more trips");
  function showMore() {
    body.append(...rows.splice(0, TRIPS_PER_PAGE));
    if (!rows.length) more.remove();
  }
  if (!list.length) return rest || empty("No trips.");
  return el("div", {}, el("table", { class: "trips" }, el("thead", {}, el("tr", {}, columns)), body), rest, more);
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
