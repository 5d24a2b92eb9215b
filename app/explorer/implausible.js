// Implausible trips, as the API finds them, and why they are implausible, in words.

import { fetchJson } from "./api.js";
import * as format from "./format.js";
import { el } from "./ui.js";

const LIMIT = 100;
const MASK = "{trips{trip{trip_id,driver_id,trip_start_time,duration_seconds,distance_miles,night_driving_seconds," +
  "highway_miles,night_driving_miles,event_summary},implausible},next_cursor}";
const WORDS = {
  mean_speed: ({ distance_miles: miles, duration_seconds: seconds }) => (seconds > 0
    ? `mean speed ${format.speed(miles / (seconds / 3600))}` : `${format.distance(miles)} in no time`),
  part_longer_than_trip: (trip) => listParts(trip).filter(([, part, whole]) => part > whole)
    .map(([name]) => `${name} longer than the trip`).join(", "),
  event_rate: (trip) => `${format.count(format.countEvents(trip), "event")} in ${format.duration(trip.duration_seconds)}`,
};

const listParts = ({ event_summary: events, duration_seconds: seconds, distance_miles: miles, ...trip }) => [
  ["phone use", events.phone_use_time_seconds, seconds], ["overspeeding", events.overspeeding_time_seconds, seconds],
  ["time at night", trip.night_driving_seconds, seconds], ["way at night", trip.night_driving_miles, miles],
  ["highway", trip.highway_miles, miles]];

export const describeKinds = (trip, kinds) => kinds.map((kind) => WORDS[kind]?.(trip) ?? kind).join(", ");

/** Returns {trips, more}: the newest implausible trips from a date to before another, of these drivers or of a group. */
export async function fetchImplausible(start, end, ids, group) {
  const query = { start_date: format.later(start, format.oldestDate()), implausible: true, order: "newest",
    end_date: format.earlier(format.shift("day", end, -1), format.today()), driver_id: ids, group, limit: LIMIT };
  // The API has no trips of a clock that is years wrong.
  if (query.start_date > query.end_date) return { trips: [] };
  const { trips, next_cursor: more } = await fetchJson(["trips"], query, { mask: MASK });
  return { more, trips: trips.map(({ trip, implausible: kinds }) => (
    { ...trip, date: format.dateOf(trip.trip_start_time), why: describeKinds(trip, kinds) })) };
}

export const isIn = (period, start) => ({ date }) => date >= start && date < format.shift(period, start, 1);

/** Returns a driver's summary of a period, if there is one: doubtful, if it counts one of these trips of the driver. */
export const withDoubt = (summary, period, start, trips, { implausible_trips: policy }) => summary
  && { ...summary, isDoubtful: policy === "counted" && trips.some(isIn(period, start)) };

/** Returns what figures do with implausible trips. */
export const note = ({ implausible_trips: policy }, ...what) =>
  el("p", { class: "doubt" }, `Figures ${policy === "counted" ? "include" : "leave out"} `, what);
