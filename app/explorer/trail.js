// What a trail tells: speeds, distances, and what an event was. Nothing here draws.
// Speeds are in mph. A speed that the trail does not tell is null.

import * as format from "./format.js";

const EARTH_RADIUS_MILES = 3958.8;
const MS_PER_HOUR = 3_600_000;
export const radians = (degrees) => (degrees * Math.PI) / 180;

const OPEN_STREET_MAP = "https://www.openstreetmap.org/";

export const EVENTS = {
  1: { behaviour: "rapid_acceleration", letter: "A" },
  2: { behaviour: "hard_brake", letter: "B" },
  7: { behaviour: "phone_use", letter: "P" },
  9: { behaviour: "overspeeding", letter: "S" },
};

// No car is so fast, in mph, or gains or loses so much speed in a second, and no road has such a limit: a position, its
// time, or a device was wrong.
const MAX_MPH = 200, MAX_GAIN = 10, MAX_LOSS = 25, MAX_LIMIT_MPH = 100;
// How exact the time of a point is: devices write whole seconds.
const TIME_ERROR_MS = 1000;
// By how much a point or an event may be outside its trip, because clocks and positions differ.
const SLACK_MS = 60_000, SLACK_MILES = 10;
// The points around an event tell its speed if they are so close in time. So long without a point is a gap.
const CLOSE_MS = 30_000, GAP_MS = 120_000;
// In how many places a trail without sense may be at a time.
const MAX_TRACKS = 100;

export const isMeasured = (mph) => mph !== null;
export const highest = (values) => values.reduce((a, b) => Math.max(a, b), 0);

const placeOf = ({ latitude, longitude }) => [latitude, longitude];

function milesBetween([lat1, lng1], [lat2, lng2]) {
  const north = Math.sin(radians(lat2 - lat1) / 2), east = Math.sin(radians(lng2 - lng1) / 2);
  const square = north ** 2 + Math.cos(radians(lat1)) * Math.cos(radians(lat2)) * east ** 2;
  return 2 * EARTH_RADIUS_MILES * Math.asin(Math.min(1, Math.sqrt(square)));
}

function isReachable(from, to) {
  const hours = (to.timestamp - from.timestamp + TIME_ERROR_MS) / MS_PER_HOUR;
  return milesBetween(placeOf(from), placeOf(to)) <= MAX_MPH * hours;
}

/**
 * Returns the points that a car can have driven through, in order of time. A device may lose its position, send points
 * late, or put them where it is not, first or for some time: of the tracks that a car can have driven, the one with
 * most points is right.
 */
function findTrack(points) {
  const sorted = points.toSorted((a, b) => a.timestamp - b.timestamp);
  // A device without a clock says nothing about speeds.
  if (sorted[0]?.timestamp === sorted.at(-1)?.timestamp) return sorted;
  // The longest one comes first.
  const tracks = [];
  for (const point of sorted) {
    let rank = tracks.findIndex((track) => isReachable(track.at(-1), point));
    if (rank < 0) rank = tracks.push([]) - 1;
    const track = tracks[rank];
    track.push(point);
    for (; rank > 0 && tracks[rank - 1].length < track.length; rank--) tracks[rank] = tracks[rank - 1];
    tracks[rank] = track;
    if (tracks.length > MAX_TRACKS) tracks.splice(-2, 1);
  }
  return tracks[0];
}

/** Returns the positions. A line may cross the antimeridian: longitudes go on past 180. */
function unwrap(points) {
  let turn = 0;
  return points.map(({ latitude, longitude }, i) => {
    const step = i ? longitude - points[i - 1].longitude : 0;
    if (Math.abs(step) > 180) turn -= 360 * Math.sign(step);
    return [latitude, longitude + turn];
  });
}

/** Returns whether a time is that of the trip. */
const isDuring = ({ trip_start_time: start, trip_end_time: end }, ms) => ms >= start - SLACK_MS && ms <= end + SLACK_MS;

/**
 * Returns what a trail shows of a trip, in order of time. It leaves out points that are not from the time of the trip,
 * and points that no car can have reached, and counts both. For each point that is left there are: its time (epoch ms),
 * its position, the speed on the way to it (mph), and the miles since the start. A speed that no car can have is
 * replaced by the one before. `starts` has the points at which the trail begins again after a gap.
 */
export function measure(trip) {
  const during = trip.trail_path.filter(({ timestamp }) => isDuring(trip, timestamp)), points = findTrack(during);
  const times = points.map(({ timestamp }) => timestamp), positions = unwrap(points);
  const starts = new Set([0]), mph = [null], miles = [0];
  let last = 0;
  for (let i = 1; i < times.length; i++) {
    const way = milesBetween(positions[i - 1], positions[i]), step = (way / (times[i] - times[i - 1])) * MS_PER_HOUR;
    const gain = isMeasured(mph[last]) ? (step - mph[last]) / ((times[i] - times[last]) / 1000) : 0;
    const isGap = times[i] - times[i - 1] > GAP_MS;
    const isPossible = step <= MAX_MPH && gain <= MAX_GAIN && gain >= -MAX_LOSS;
    miles.push(miles[i - 1] + way);
    if (isGap) starts.add(i);
    mph.push(isGap ? null : isPossible ? step : mph[i - 1]);
    if (isGap || isPossible) last = i;
  }
  // Before the first speed of a part there is that one.
  for (let i = times.length - 2; i >= 0; i--) mph[i] ??= starts.has(i + 1) ? null : mph[i + 1];
  return { times, positions, mph, miles, starts,
    otherTime: trip.trail_path.length - during.length, otherPlace: during.length - points.length };
}

/** Returns the index of the last point at or before a time. */
export function indexAt({ times }, ms) {
  let low = 0, high = times.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= ms) low = middle;
    else high = middle;
  }
  return low;
}

/** Returns the index of the point that is nearest to a position, which may be on another turn of the globe. */
export function indexNear({ positions }, [latitude, longitude]) {
  const width = Math.cos(radians(latitude));
  let nearest = 0, least = Infinity;
  positions.forEach(([lat, lng], i) => {
    const square = (lat - latitude) ** 2 + ((lng - longitude) * width) ** 2;
    if (square < least) [nearest, least] = [i, square];
  });
  return nearest;
}

/** Returns the address of a map of OpenStreetMap with a marker at a position. */
export function placeUrl(position) {
  const [latitude, longitude] = format.position(position).split(", ");
  return `${OPEN_STREET_MAP}?mlat=${latitude}&mlon=${longitude}#map=17/${latitude}/${longitude}`;
}

/** Returns the address of a map of OpenStreetMap with a frame around the positions. */
export function areaUrl(positions) {
  const [latitudes, longitudes] = [0, 1].map((i) => positions.map((position) => position[i]));
  const least = (values) => values.reduce((a, b) => Math.min(a, b)), most = (values) => -least(values.map((v) => -v));
  const query = { minlon: least(longitudes), minlat: least(latitudes), maxlon: most(longitudes), maxlat: most(latitudes) };
  return `${OPEN_STREET_MAP}?${new URLSearchParams({ ...query, box: "yes" })}`;
}

/** Returns the indexes of the last point at or before a start, and of the first one at or after an end; -1 is none. */
function around({ times }, start, end) {
  const last = indexAt({ times }, end);
  return [start >= times[0] ? indexAt({ times }, start) : -1, last + (times[last] < end)];
}

/** Returns whether the points from one index to another tell how fast it went on the way, because they are close. */
function isKnown({ times, mph }, from, to) {
  if (from < 0 || to >= times.length) return false;
  for (let i = from + 1; i <= to; i++) if (times[i] - times[i - 1] > CLOSE_MS || !isMeasured(mph[i])) return false;
  return true;
}

/** Returns the miles since the start at a time, or undefined if the points around it do not tell. */
export function milesAt(trail, ms) {
  const { times, miles } = trail, [from, to] = around(trail, ms, ms);
  if (!isKnown(trail, from, to)) return undefined;
  return miles[from] + (from < to && ((ms - times[from]) / (times[to] - times[from])) * (miles[to] - miles[from]));
}

/**
 * Returns the events of a trip in order of time, each with its index in the trip, with its position, on the turn of the
 * globe on which the trail is, and with what of it is outside the trip: its "time", its "place", or nothing.
 */
export function placeEvents(trip, trail) {
  const events = trip.events.map((event, index) => ({ ...event, index }));
  const sorted = events.sort((a, b) => a.event_start_timestamp - b.event_start_timestamp);
  return sorted.map((event) => {
    const { event_start_timestamp: start, event_start_latitude: latitude, event_start_longitude: longitude } = event;
    const index = indexAt(trail, start), near = trail.positions.slice(index, index + 2);
    const turns = near.length ? Math.round((near[0][1] - longitude) / 360) : 0;
    const position = [latitude, longitude + 360 * turns];
    const isReached = near.every((other, i) => milesBetween(position, other)
      <= SLACK_MILES + (MAX_MPH * Math.abs(start - trail.times[index + i])) / MS_PER_HOUR);
    const isInTime = isDuring(trip, start) && isDuring(trip, event.event_end_timestamp);
    return { ...event, position, outside: isInTime ? !isReached && "place" : "time" };
  });
}

/** Returns the speed limit of an event, if it has one that a road can have. */
export const limitOf = ({ event_data: { speed_limit_mph: limit } }) =>
  (limit > 0 && limit <= MAX_LIMIT_MPH ? limit : undefined);

const durationOf = ({ event_start_timestamp: start, event_end_timestamp: end }) => format.duration((end - start) / 1000);

/** Returns what an event tells by itself: how fast and for how long. */
export const describeAlone = (event) =>
  (event.event_type === 9 ? describeSpeeding(event, durationOf(event)) : `For ${durationOf(event)}`);

/** Returns an event in words: what happened, how fast, for how long and where. */
export function describe(event, trail) {
  const driving = event.event_type === 9 ? describeAlone(event) : describeDriving(event, trail, durationOf(event));
  const where = event.outside ? `. Its ${event.outside} is outside the trip.` : "";
  return `${driving}, at ${format.position(event.position)}${where}`;
}

function describeSpeeding(event, duration) {
  const { user_speed_mph: speed, max_user_speed_mph: most } = event.event_data, limit = limitOf(event);
  const isPossible = speed >= 0 && speed <= MAX_MPH, over = isPossible && speed > limit && format.speed(speed - limit);
  const what = limit ? `${over ? `${over} over` : "Over"} the limit of ${format.speed(limit)}`
    : ["Limit unknown", isPossible && `at ${format.speed(speed)}`].filter(Boolean).join(", ");
  return `${what} for ${duration}${most >= speed && most <= MAX_MPH ? `, up to ${format.speed(most)}` : ""}`;
}

function describeDriving(event, trail, duration) {
  const { event_type: type, event_start_timestamp: start, event_end_timestamp: end, outside } = event, { mph } = trail;
  const [from, to] = around(trail, start, end), reach = type === 7 ? 0 : 1;
  // Braking and acceleration are between the ways before and after them.
  if (outside || to - from + reach < 1 || !isKnown(trail, from - reach, to + reach)) return `For ${duration}`;
  if (type === 7) {
    const miles = milesAt(trail, end) - milesAt(trail, start);
    return `For ${duration} and ${format.distance(miles)}, up to ${format.speed(highest(mph.slice(from + 1, to + 1)))}`;
  }
  const speeds = mph.slice(from, to + 2).sort((a, b) => a - b);
  const [first, last] = type === 2 ? [speeds.at(-1), speeds[0]] : [speeds[0], speeds.at(-1)];
  return `From about ${format.number(format.inUnits(first))} to ${format.speed(last)} in ${duration}`;
}
