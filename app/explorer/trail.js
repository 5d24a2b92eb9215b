// What a trail tells: speeds, distances, and what an event was. Nothing here draws.

import * as format from "./format.js";

const EARTH_RADIUS_MILES = 3958.8;
const MS_PER_HOUR = 3_600_000;
const radians = (degrees) => (degrees * Math.PI) / 180;

const OPEN_STREET_MAP = "https://www.openstreetmap.org/";

export const EVENTS = {
  1: { behaviour: "rapid_acceleration", letter: "A" },
  2: { behaviour: "hard_brake", letter: "B" },
  7: { behaviour: "phone_use", letter: "P" },
  9: { behaviour: "overspeeding", letter: "S" },
};

// No car is so fast, in mph, or gains or loses so much speed in a second: a position, or its time, was wrong.
const MAX_MPH = 200, MAX_GAIN = 10, MAX_LOSS = 25;
// How exact the time of a point is: devices write whole seconds.
const TIME_ERROR_MS = 1000;
// In how many places a trail without sense may be at a time.
const MAX_TRACKS = 100;

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

/**
 * Returns of each point of a trail where a car can have been, in order of time: times (epoch ms), positions, mph (of the
 * way to it) and miles since the start; and how many points are left out. In place of a speed that no car can have,
 * there is the one before.
 */
export function measure(trailPath) {
  const points = findTrack(trailPath), leftOut = trailPath.length - points.length;
  const times = points.map(({ timestamp }) => timestamp), positions = unwrap(points);
  const mph = [0], miles = [0];
  let last = 0;
  for (let i = 1; i < points.length; i++) {
    const way = milesBetween(positions[i - 1], positions[i]), seconds = (times[i] - times[last]) / 1000;
    const step = (way / (times[i] - times[i - 1])) * MS_PER_HOUR, gain = last > 0 ? (step - mph[last]) / seconds : 0;
    const isPossible = step >= 0 && step <= MAX_MPH && gain <= MAX_GAIN && gain >= -MAX_LOSS;
    miles.push(miles[i - 1] + way);
    mph.push(isPossible ? step : mph[i - 1]);
    if (isPossible) last = i;
  }
  if (mph.length > 1) mph[0] = mph[1];
  return { times, positions, mph, miles, leftOut };
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

export const positionOf = (event) => [event.event_start_latitude, event.event_start_longitude];

/** Returns an event in words: what happened, how fast, for how long and where. */
export const describe = (event, trail) => `${describeDriving(event, trail)}, at ${format.position(positionOf(event))}`;

function describeDriving(event, trail) {
  const { event_type: type, event_data: data } = event;
  const duration = format.duration((event.event_end_timestamp - event.event_start_timestamp) / 1000);
  if (data.speed_limit_mph !== undefined) {
    const { user_speed_mph: speed, speed_limit_mph: limit, max_user_speed_mph: most } = data;
    const over = format.speed(Math.max(0, speed - limit));
    return `${over} over the limit of ${format.speed(limit)} for ${duration}, up to ${format.speed(most)}`;
  }
  if (trail.times.length < 2) return `For ${duration}`;
  const first = indexAt(trail, event.event_start_timestamp), last = indexAt(trail, event.event_end_timestamp);
  const speeds = trail.mph.slice(first, last + 2).sort((a, b) => a - b), low = speeds[0], high = speeds.at(-1);
  const distance = format.distance(trail.miles[last] - trail.miles[first]);
  if (type === 7) return `For ${duration} and ${distance}, up to ${format.speed(high)}`;
  const [from, to] = type === 2 ? [high, low] : [low, high];
  return `From about ${format.number(format.inUnits(from))} to ${format.speed(to)} in ${duration}`;
}
