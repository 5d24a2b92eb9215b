// A driver: the score over time and why, and the trips of one day, week or month.

import { fetchTripPages } from "./api.js";
import * as format from "./format.js";
import { readGroup } from "./groups.js";
import { fetchImplausible, isIn, note, withDoubt } from "./implausible.js";
import { fetchScores, fetchTotals, readInterval } from "./scores.js";
import { INTERVALS, chart, controls, findPage, listStarts, scrollTo } from "./score-chart.js";
import * as ui from "./ui.js";

const { bar, el, words } = ui;
const MAX_TRIPS = 1000;
// In which order the trips are: the best reason to look at one comes first. Sorting keeps the order of time.
const SORTS = {
  date: ["Date", () => 0],
  score: ["Worst score", (trip) => trip.rating.fm_score],
  events: ["Most events", (trip) => -format.countEvents(trip)],
};
const TRIP = "trip_id,trip_start_time,duration_seconds,distance_miles,event_summary";
const TALK_TRIPS = 3;
// What multiplying and dividing may add to an exact number.
const ROUNDING = 1e-9;
const EVENT = { hard_brake: "hard brake", rapid_acceleration: "rapid acceleration" };

export async function show({ id, parameters, fleet, settle, render }) {
  const interval = readInterval(parameters), group = readGroup(parameters);
  const sort = Object.hasOwn(SORTS, parameters.sort) ? parameters.sort : "date";
  const { driver, byStart } = await fetchScores(id, interval);
  const starts = listStarts(interval), newest = starts.findLast((start) => byStart.has(start)) ?? starts.at(-1);
  const at = format.nearestStart(interval, parameters.at, format.today()) ?? newest, isNewest = at === newest;
  const previous = format.shift(interval, at, -1), end = format.shift(interval, at, 1);
  const settled = settle({ interval, sort, group }, format.stay("at", interval, at, " with trips"));
  const link = (changed) => format.address("driver", id, { interval, ...settled, ...changed });
  const page = findPage(starts, at, INTERVALS[interval][0], (start) => byStart.has(start));
  const [totals, listed, { trips: implausible, more }] = await Promise.all([fetchTotals(id, interval, at),
    fetchTrips(id, interval, at), fetchImplausible(previous, end, id)]);
  const summary = withDoubt(totals ?? byStart.get(at), interval, at, implausible, fleet);
  const before = withDoubt(starts.includes(previous) && byStart.get(previous), interval, previous, implausible, fleet);
  const reasonOf = new Map(implausible.map(({ trip_id, why }) => [trip_id, why]));
  const trips = listed.map((trip) => ({ ...trip, group, why: reasonOf.get(trip.trip_id),
    rating: { ...trip.rating, isDoubtful: reasonOf.has(trip.trip_id) } }));
  const notes = [isNewest && byStart.has(at) && `the last ${interval} with trips`,
    end > format.today() && "so far", format.noteEarliest(interval, at)].filter(Boolean);
  render(words(null, upLinks(id, interval, at, group)), ui.heading(words("Your score", ui.name(driver))),
    el("p", { class: "lead" }, words(ui.name(driver), ui.aliases(driver))),
    el("section", { class: "period" }, el("h2", {}, format.period(interval, at), el("small", {}, ` ${notes.join(", ")}`)),
      describeDoubt(implausible.filter(isIn(interval, at)), more, fleet, group),
      summary ? periodTiles(interval, summary, before, totals) : noTrips(driver, !byStart.has(newest), link)),
    el("section", {}, controls(words("Your score over time", "Score over time"), interval, page, link,
      !isNewest && findFirstDate(trips, at)),
      ui.behaviourLegend(byStart.get(at)?.behaviours, ["distance", "Distance"]), chart(interval, page.starts, byStart, at, link)),
    (summary || trips.length > 0) && el("section", { class: "halves" },
      summary && el("section", {}, el("h2", {}, words("What costs you points", "What to talk about")),
        reasons(summary, trips.filter(({ why }) => summary.isDoubtful || !why))),
      el("section", {}, tripList(id, trips, summary?.trip_count ?? 0, [at, end], sort, link))));
  scrollTo(page.starts, at);
}

/** Returns what the figures do with the implausible trips of the period, if there are some, and why one is. */
const describeDoubt = (trips, more, fleet, group) => trips.length > 0 && note(fleet, more && "at least ", format.count(trips.length, "implausible trip"),
  ", whose data look wrong. ", tripLink({ ...trips[0], group }), `: ${trips[0].why}.`);

/** Returns links to the fleet in the week or month, and to the driver beside the fleet. */
function upLinks(id, interval, at, group) {
  const period = interval === "month" ? "month" : "week", start = format.nearestStart(period, at);
  const parameters = { period: period === "month" && period, start, group };
  return el("div", { class: "up" }, el("span", {}, "Fleet in ",
    el("a", { href: format.address("fleet", undefined, parameters) }, format.period(period, start))),
  el("a", { href: format.address("events", undefined, { driver: id, ...format.datesOf(interval, at), group }) }, "Events on a map"),
  el("a", { href: format.address("compare", id, { interval, at }) }, "Compare with the fleet or a driver"));
}

/** Returns a period in figures: the score and what would raise it first. */
function periodTiles(interval, summary, before, totals) {
  const note = (text) => el("small", {}, text), losses = format.findLosses(summary.behaviours);
  return ui.tiles(["Score", ui.grade(summary)],
    [`Against the ${interval} before`, ui.scoreChange(summary, before)],
    losses.length > 0 && [words("What would raise your score", "What would raise the score"),
      el("ul", { class: "raises" }, losses.map((loss) => el("li", {}, el("i", { class: loss.behaviour }),
        raises(loss, summary))))],
    ["Distance", format.distance(summary.distance_miles)],
    ["Driving", format.duration(summary.duration_seconds), note(format.count(summary.trip_count, "trip"))],
    totals && ["Highway", format.share(totals.highway_miles, totals.distance_miles), note(`of the ${format.unitsName}`)],
    totals && ["At night", format.share(totals.night_driving_seconds, totals.duration_seconds), note("of the time")]);
}

/**
 * Returns by how much the score would be higher with less of a behaviour, for the same distance and time: with as little
 * less as brings half of what it cost, and without it.
 */
function raises(loss, { behaviours, fm_score: score }) {
  const { behaviour, count, seconds, rate, cap, weight, points_lost: lost } = loss, total = seconds ?? count;
  // As it is written: from ten minutes on in whole minutes.
  const step = seconds >= 600 ? 60 : 1, rest = (total * cap * lost) / (2 * weight * rate);
  const less = Math.min(Math.ceil((total - rest) / step - ROUNDING) * step, total);
  const gain = (left) => {
    const changed = { ...loss, points_lost: weight * Math.min(1, (rate * left) / total / cap) };
    const other = format.scoreOf(behaviours.map((each) => (each === loss ? changed : each)));
    return el("b", {}, `+${format.score(format.difference(other, score))}`);
  };
  const what = seconds === null ? `${format.count(less, EVENT[behaviour])} fewer`
    : `${format.duration(less)} less ${format.LABELS[behaviour].toLowerCase()}`;
  return [`${what}: `, gain(total - less), less < total && ["; none: ", gain(0)]];
}

/** Returns why there are no trips, and a link to some, if the chart has some. */
function noTrips({ last_travel_date: last }, isNever, link) {
  if (!last) return ui.empty(words("You have no trips yet.", "This driver has no trips yet."));
  return ui.empty(`No trips in this time. The last one ${format.wasOn(last)}. `,
    !isNever && el("a", { href: link({ at: undefined }) }, "Look at the last trips"));
}

/** Returns the trips of the period that the API serves, oldest first. */
async function fetchTrips(id, interval, start) {
  const end = format.shift(interval, start, 1), list = [];
  for await (const page of fetchTripPages(id, format.later(start, format.oldestDate()), TRIP)) {
    const trips = page.filter((trip) => format.dateOf(trip.trip_start_time) < end);
    list.push(...trips.map((trip) => ({ ...trip, rating: format.rateTrip(trip) })));
    if (trips.length < page.length || list.length >= MAX_TRIPS) break;
  }
  return list;
}

/** Returns what each behaviour cost, the costliest first, with the trips where it happened most. */
function reasons({ behaviours }, trips) {
  const losses = format.findLosses(behaviours);
  if (!losses.length) return ui.empty(words("Nothing cost you points.", "No behaviour cost points."));
  return el("ol", { class: "reasons" }, losses.map((loss) => el("li", {},
    el("p", {}, el("i", { class: loss.behaviour }), el("b", {}, format.LABELS[loss.behaviour]),
      words(" cost you ", " cost "), el("b", {}, format.score(loss.points_lost)),
      ` of ${loss.weight} points: ${ui.extent(loss)}, ${ui.rate(loss)}`),
    bar(`meter ${loss.behaviour}`, (100 * loss.points_lost) / loss.weight), worstTrips(loss, trips))));
}

function worstTrips({ behaviour, seconds }, trips) {
  const count = `${behaviour}_count`, time = `${behaviour}_time_seconds`, field = seconds === null ? count : time;
  const worst = trips.filter((trip) => trip.event_summary[field] > 0)
    .sort((a, b) => b.event_summary[field] - a.event_summary[field]).slice(0, TALK_TRIPS);
  return worst.length > 0 && el("ul", { class: "where" }, worst.map((trip) => el("li", {},
    tripLink(trip, { about: behaviour }),
    ` ${ui.extent({ count: trip.event_summary[count], seconds: trip.event_summary[time] })}`)));
}

const tripLink = ({ trip_id: id, trip_start_time: start, group }, parameters) =>
  el("a", { href: format.address("trip", id, { ...parameters, group }) }, `${format.shortDay(start)}, ${format.time(start)}`);

/** Returns the date of the first trip of the period, or of the period, if none is listed. */
const findFirstDate = ([first], start) => (first ? format.dateOf(first.trip_start_time) : start);

/** Returns the trips, which are sorted by time, in the order that is chosen, and why some are missing. */
function tripList(id, trips, total, [start, end], sort, link) {
  const dates = format.clip(start, format.shift("day", end, -1));
  const [, rank] = SORTS[sort], sorted = trips.toSorted((a, b) => rank(a) - rank(b));
  const choices = Object.entries(SORTS).map(([name, [label]]) => [label, link({ sort: name }), name === sort]);
  return [el("div", { class: "head" }, el("h2", {}, words("Your trips", "Trips")),
    trips.length > 1 && ui.choice("Sort trips by", choices)),
  trips.length > 0 && ui.table("trips", [`Start (${format.zone})`, "Score", "Length", "Events"], sorted.map((trip) => tripRow(trip))),
  trips.length > 0 && ui.csvButton("Download CSV", ["trips-of", id, format.fileDates(dates)], ["driver", id, "trips"],
    { start_date: dates.start, end_date: dates.end }),
  trips.length < total && el("p", { class: "quiet" },
    `${format.count(total - trips.length, "trip")} more: ${findWhyMissing(trips, start, end)}`)];
}

/** Returns why the list has fewer trips than the period from a date to before another one. */
function findWhyMissing(trips, start, end) {
  const oldest = format.oldestDate();
  if (trips.length >= MAX_TRIPS) return `the list ends after ${format.number(MAX_TRIPS)} trips.`;
  if (start < oldest) return `before ${format.day(Date.parse(oldest))}, too long ago to be listed.`;
  return end < format.today() ? "counted, but not listed." : `a trip is listed ${format.DELAY} after its end.`;
}

/** Returns a row about a trip that is rated, with what else to say below its driver, if that is not clear. */
export function tripRow(trip, driver, ...more) {
  const count = (behaviour) => trip.event_summary[`${behaviour}_count`];
  const events = Object.entries(format.LABELS).filter(([behaviour]) => count(behaviour)).map(([behaviour, label]) =>
    el("li", {}, el("i", { class: behaviour }), String(count(behaviour)), ui.visuallyHidden(` ${label}`)));
  return el("tr", {}, el("th", { scope: "row" }, driver, driver && el("br", {}), tripLink(trip), more),
    el("td", {}, ui.grade(trip.rating), trip.why && [" ", el("small", { class: "why" }, trip.why)]),
    el("td", {}, el("span", {}, format.distance(trip.distance_miles)), " ",
      el("small", {}, format.duration(trip.duration_seconds))),
    el("td", {}, events.length > 0 ? el("ul", { class: "counts" }, events) : el("span", { class: "quiet" }, "none")));
}
