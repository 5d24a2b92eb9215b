// The map of the events of a fleet: those that are close to each other are one circle with their number.

import * as format from "./format.js";
import { MAX_ZOOM, addMarker, getOrAdd, iconWidth, makeMap } from "./map.js";
import { boxOf, isPlaced, readBox, unwrapped } from "./places.js";
import { EVENTS, describeAlone } from "./trail.js";
import { el } from "./ui.js";

// The side of the squares, in pixels: the events of each are one circle, which stays within it. So circles are few,
// however many events there are, and none touches another.
const SQUARE = 56;

const boundsOf = ([west, south, east, north]) => L.latLngBounds([south, west], [north, east]);

/**
 * Draws a map into `box` and returns a function that shows events on it. At first it shows `view`, [latitude, longitude,
 * zoom], or else the box `area`, or else all events. `onMove` is called with another view, and `onOpen` with events that
 * no zoom would part.
 */
export async function drawEventMap(box, events, { area, view, onMove, onOpen }) {
  const map = await makeMap(box), layer = L.layerGroup().addTo(map), placed = events.filter(isPlaced);
  if (area) L.rectangle(boundsOf(readBox(area)), { className: "area", interactive: false }).addTo(map);
  if (view) map.setView(view.slice(0, 2), view[2]);
  else map.fitBounds(boundsOf(area ? readBox(area) : boxOf(placed)).pad(0.08), { animate: false, paddingTopLeft: [44, 16] });
  let shown = placed;
  const redraw = () => drawCircles(map, layer, shown, onOpen);
  redraw();
  map.on("moveend", () => {
    redraw();
    const { lat, lng } = map.getCenter();
    onMove([lat.toFixed(5), lng.toFixed(5), map.getZoom()]);
  });
  return (others) => {
    shown = others.filter(isPlaced);
    redraw();
  };
}

function drawCircles(map, layer, events, onOpen) {
  layer.clearLayers();
  const longitudes = unwrapped(events.map((event) => event.event_start_longitude)), squares = new Map();
  const { min, max } = map.getPixelBounds(), isNear = ({ x, y }) =>
    x > min.x - SQUARE && y > min.y - SQUARE && x < max.x + SQUARE && y < max.y + SQUARE;
  for (const [index, event] of events.entries()) {
    const point = map.project([event.event_start_latitude, longitudes[index]]), corner = point.divideBy(SQUARE).floor();
    if (isNear(corner.multiplyBy(SQUARE).add([SQUARE / 2, SQUARE / 2]))) {
      getOrAdd(squares, `${corner}`, () => []).push({ event, point, corner });
    }
  }
  for (const members of squares.values()) addCircle(map, layer, members, onOpen);
}

/** Adds a circle where its events are on average. */
function addCircle(map, layer, members, onOpen) {
  const count = members.length, events = members.map(({ event }) => event), [{ corner }] = members;
  const kinds = new Set(events.map((event) => event.event_type)), { behaviour, letter } = EVENTS[events[0].event_type];
  const text = count > 1 ? format.number(count) : letter, radius = iconWidth(text) / 2;
  const place = ["x", "y"].map((axis) => {
    const mean = members.reduce((sum, { point }) => sum + point[axis], 0) / count, edge = corner[axis] * SQUARE;
    return Math.max(edge + radius, Math.min(edge + SQUARE - radius, mean));
  });
  const tooltip = () => el("span", {}, count > 1 ? `${text} events` : [el("b", {}, format.LABELS[behaviour]), el("br", {}),
    `${describeAlone(events[0])}, ${format.moment(events[0].event_start_timestamp)}`]);
  addMarker(layer, map.unproject(place), kinds.size > 1 ? "mixed" : behaviour, text, tooltip)
    .on("click", () => open(map, events, onOpen));
}

/** Zooms in until the events are apart, if there is such a zoom. */
function open(map, events, onOpen) {
  const bounds = boundsOf(boxOf(events));
  const [from, to] = [bounds.getSouthWest(), bounds.getNorthEast()].map((corner) => map.project(corner, MAX_ZOOM));
  if (from.distanceTo(to) < SQUARE || map.getZoom() === MAX_ZOOM) onOpen(events);
  else map.fitBounds(bounds, { padding: [SQUARE, SQUARE] });
}
