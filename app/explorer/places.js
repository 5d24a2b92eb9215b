// Places: where events were, in cells of about 150 by 150 metres. And boxes of positions, [west, south, east, north].

import { radians } from "./trail.js";

// Cells begin at latitude -90 and longitude -180. Their height is 150 m in degrees of latitude. The width is as long at
// the latitude of the middle of the cell.
const HEIGHT = 150 / 111_320;
// How exact a box is: 10 cm.
const PER_DEGREE = 1e6;

/** Returns whether a device knew where an event was: without a position it writes 0, 0. */
export const isPlaced = ({ event_start_latitude: latitude, event_start_longitude: longitude }) =>
  latitude !== 0 || longitude !== 0;

/** Returns the cells with events, most events first: {box, events, drivers}, of which the last are different ids. */
export function findPlaces(events) {
  const places = new Map();
  for (const event of events) {
    const row = numberOf(event.event_start_latitude, -90, HEIGHT), south = row * HEIGHT - 90;
    const north = Math.min(south + HEIGHT, 90), width = HEIGHT / Math.cos(radians(Math.min(south + HEIGHT / 2, 90)));
    const column = numberOf(event.event_start_longitude, -180, width), west = column * width - 180;
    const key = `${row},${column}`, box = [west, south, Math.min(west + width, 180), north];
    if (!places.has(key)) places.set(key, { box, events: [], drivers: new Set() });
    places.get(key).events.push(event);
    places.get(key).drivers.add(event.driver_id);
  }
  return [...places.values()].sort((a, b) => b.events.length - a.events.length);
}

/** Returns the number of the interval of a size that has a value. They go from `first` to its opposite. */
const numberOf = (value, first, size) =>
  Math.min(Math.floor((value - first) / size), Math.ceil(-2 * first / size) - 1);

/** Returns the smallest box with all events. It crosses the antimeridian if that makes it smaller than half a turn. */
export function boxOf(events) {
  const latitudes = events.map((event) => event.event_start_latitude);
  const longitudes = unwrapped(events.map((event) => event.event_start_longitude));
  const least = (values) => values.reduce((a, b) => Math.min(a, b)), most = (values) => -least(values.map((v) => -v));
  return [least(longitudes), least(latitudes), most(longitudes), most(latitudes)];
}

/** Returns longitudes that go on past 180, if they would be more than half a turn apart. */
export function unwrapped(longitudes) {
  const least = longitudes.reduce((a, b) => Math.min(a, b), 0), most = longitudes.reduce((a, b) => Math.max(a, b), 0);
  return most - least > 180 ? longitudes.map((longitude) => longitude + (longitude < 0 ? 360 : 0)) : longitudes;
}

/** Returns the box as the API has it, with its edges rounded outwards. */
export function writeBox([west, south, east, north]) {
  const turned = (longitude) => (longitude > 180 ? longitude - 360 : longitude);
  const edges = [[turned(west), Math.floor, 180], [south, Math.floor, 90], [turned(east), Math.ceil, 180],
    [north, Math.ceil, 90]];
  return edges.map(([value, round, most]) =>
    Math.max(-most, Math.min(most, round(value * PER_DEGREE) / PER_DEGREE)).toFixed(6)).join(",");
}

/** Returns the box of such a text. If it crosses the antimeridian, the longitude of its east is past 180. */
export function readBox(text) {
  const [west, south, east, north] = text.split(",").map(Number);
  return [west, south, east < west ? east + 360 : east, north];
}
