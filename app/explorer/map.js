// The map of a trail, drawn by Leaflet: a line coloured by speed, events, and the point that is selected.

import * as format from "./format.js";
import { EVENTS, describe, indexNear } from "./trail.js";
import { el } from "./ui.js";

const GRID_PIXELS = 64;
const HOVER_PIXELS = 40;
export const MAX_ZOOM = 19;
// Events that are nearer to each other would cover each other.
const EVENT_PIXELS = 24;
// The size of an icon in pixels, and its layer. Events are above the rest, and the chosen one above other events, but
// below the one under the pointer, which Leaflet raises by 250.
const ICONS = { start: [16, -1000], end: [16, -1000], dot: [30, -500] }, EVENT_ICON = [22, 0];
const CHOSEN_LAYER = 100;
// By how much a marker with a number of events is wider for each further digit.
const DIGIT_PIXELS = 7;
// Where the marker of an event may be, in pixels from its place: there, or on two circles around it.
const PLACES = [[0, 0], ...[1, 2].flatMap((circle) => Array.from({ length: 6 * circle }, (_, i) => {
  const angle = (Math.PI * i) / (3 * circle), radius = circle * EVENT_PIXELS;
  return [-radius * Math.sin(angle), -radius * Math.cos(angle)];
}))];
// A square of the map and those around it, in pixels.
const SQUARES = [-1, 0, 1].flatMap((x) => [-1, 0, 1].map((y) => [x * EVENT_PIXELS, y * EVENT_PIXELS]));

/** Loads Leaflet once. It is not a module: it sets the global name L. */
async function loadLeaflet() {
  if (globalThis.L) return;
  const styles = new Promise((done) => {
    document.head.prepend(el("link", { rel: "stylesheet", href: "explorer/leaflet.css", onload: done, onerror: done }));
  });
  await Promise.all([import("./leaflet.js"), styles]);
}

/** Makes a map of `box`, without a position. It ends with its box. */
export async function makeMap(box) {
  await loadLeaflet();
  // One finger and the wheel scroll the page.
  box.addEventListener("wheel", (wheel) => wheel.ctrlKey || wheel.stopImmediatePropagation(), { capture: true });
  const map = L.map(box, { attributionControl: false, zoomSnap: 0.25, maxZoom: MAX_ZOOM, dragging: !L.Browser.mobile });
  L.control.scale({ position: "bottomright", imperial: format.unitsName === "miles",
    metric: format.unitsName === "km" }).addTo(map);
  makeBackground().addTo(map);
  const ending = new AbortController();
  const observer = new ResizeObserver(() =>
    (box.isConnected ? map.invalidateSize() : observer.disconnect(map.remove(ending.abort()))));
  observer.observe(box);
  fitPaper(box, map, ending);
  return map;
}

/** Shows on paper, which has another width, all that the map shows. */
function fitPaper(box, map, { signal }) {
  let before;
  const resize = (isOnPaper) => {
    box.classList.toggle("on-paper", isOnPaper);
    map.invalidateSize({ animate: false });
  };
  addEventListener("beforeprint", () => {
    before = [map.getCenter(), map.getZoom()];
    const bounds = map.getBounds();
    resize(true);
    map.fitBounds(bounds, { animate: false });
  }, { signal });
  addEventListener("afterprint", () => {
    resize(false);
    map.setView(...before, { animate: false });
  }, { signal });
}

/**
 * Draws a map into `box`, of a trail that may be empty and of events. `onSelect` is called with an index of the trail,
 * `onEvent` with an index of the events.
 */
export async function drawMap(box, trail, events, onSelect, onEvent) {
  const map = await makeMap(box);
  const shown = events.filter(({ outside }) => !outside || !trail.positions.length);
  const positions = [...trail.positions, ...shown.map(({ position }) => position)];
  // Clear of the buttons of the zoom.
  map.fitBounds(L.latLngBounds(positions).pad(0.08), { animate: false, maxZoom: 17, paddingTopLeft: [44, 16] });
  addLine(map, trail);
  for (const [name, position] of [["start", trail.positions[0]], ["end", trail.positions.at(-1)]]) {
    if (position) addMarker(map, position, name, "", name);
  }
  const raise = addEvents(map, trail, events, onEvent);
  const dot = addMarker(map, positions[0], "dot", "", "", { interactive: false });
  map.on("mousemove", ({ latlng, containerPoint }) => {
    const index = indexNear(trail, [latlng.lat, latlng.lng]), nearest = trail.positions[index];
    if (nearest && map.latLngToContainerPoint(nearest).distanceTo(containerPoint) < HOVER_PIXELS) onSelect(index);
  });
  return {
    select: (position) => dot.setLatLng(position),
    raise,
    show: (position) => map.panInside(position, { padding: [60, 60] }),
  };
}

/**
 * Returns the markers that the events have at this zoom: events at one place have one. A marker that would cover
 * another one is at a free place beside its own, or, if there is none, its events are with those of the other one.
 */
function arrange(map, events) {
  const byPosition = new Map(), bySquare = new Map(), groups = [];
  const key = (x, y) => `${Math.floor(x / EVENT_PIXELS)},${Math.floor(y / EVENT_PIXELS)}`;
  const findCovered = (point) => bySquare.get(key(point.x, point.y))
    ?.find((group) => group.place.distanceTo(point) < EVENT_PIXELS - 1);
  function add(position) {
    const own = map.latLngToLayerPoint(position);
    const place = PLACES.map((offset) => own.add(offset)).find((point) => !findCovered(point));
    if (!place) return findCovered(own);
    const group = { position, place, offset: place.subtract(own), numbers: [] };
    for (const [x, y] of SQUARES) getOrAdd(bySquare, key(place.x + x, place.y + y), () => []).push(group);
    groups.push(group);
    return group;
  }
  for (const [number, { position }] of events.entries()) {
    getOrAdd(byPosition, format.position(position), () => add(position)).numbers.push(number);
  }
  return groups;
}

export function getOrAdd(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

/** Returns the tiles of the operator's choice, or a quiet grid. */
function makeBackground() {
  if (format.settings.map_tiles_url) return L.tileLayer(format.settings.map_tiles_url, { maxZoom: MAX_ZOOM });
  const Grid = L.GridLayer.extend({ createTile: () => el("div", { class: "grid-tile" }) });
  return new Grid({ tileSize: GRID_PIXELS });
}

/** Adds the trail as one line for each colour, however many points it has, and one for its gaps. */
function addLine(map, { positions, mph, starts }) {
  const { speedSteps } = format.units(), lines = {};
  let current;
  for (let i = 1; i < positions.length; i++) {
    const name = starts.has(i) ? "gap" : `speed-${speedSteps.findLastIndex((low) => format.inUnits(mph[i]) >= low)}`;
    if (name === current) lines[name].at(-1).push(positions[i]);
    else (lines[name] ??= []).push([positions[i - 1], positions[i]]);
    current = name;
  }
  const { gap = [], ...speeds } = lines, outline = Object.values(speeds).flat();
  for (const [className, parts] of Object.entries({ gap, "trail-outline": outline, ...speeds })) {
    L.polyline(parts, { className, interactive: false }).addTo(map);
  }
}

/** Returns how wide an icon with this text is. */
export const iconWidth = (text, size = EVENT_ICON[0]) => size + DIGIT_PIXELS * Math.max(0, text.length - 1);

export function addMarker(map, position, className, letter, tooltip, options) {
  const [size, zIndexOffset] = ICONS[className] ?? EVENT_ICON, html = el("span", { "aria-hidden": "true" }, letter);
  const icon = L.divIcon({ className: `marker ${className}`, html, iconSize: [iconWidth(letter, size), size] });
  const marker = L.marker(position, { icon, keyboard: false, riseOnHover: true, zIndexOffset, ...options }).addTo(map);
  return tooltip ? marker.bindTooltip(tooltip, { direction: "top", offset: [0, -8] }) : marker;
}

/** Adds the markers of events, again at each zoom, and returns a function that raises the one of an event. */
function addEvents(map, trail, events, onEvent) {
  const layer = L.layerGroup().addTo(map);
  let markers, chosen;
  function raise(number) {
    chosen = number;
    for (const { marker, numbers } of markers) {
      const isChosen = numbers.includes(number);
      marker.setZIndexOffset(isChosen ? CHOSEN_LAYER : Math.min(numbers.length, CHOSEN_LAYER - 1));
      marker.getElement().classList.toggle("chosen", isChosen);
    }
  }
  function redraw() {
    markers = drawEvents(map, layer, trail, events, onEvent);
    raise(chosen);
  }
  map.on("zoomend", redraw);
  redraw();
  return raise;
}

/**
 * Draws the markers of events at this zoom: each has a letter, or how many events it has, of which a click chooses one
 * after another, and a line to its place if it is beside it. The keyboard goes to the list instead.
 */
function drawEvents(map, layer, trail, events, onEvent) {
  layer.clearLayers();
  return arrange(map, events).map(({ position, place, offset, numbers }) => {
    const kinds = new Set(numbers.map((number) => events[number].event_type)), count = numbers.length;
    const event = events[numbers[0]], { behaviour, letter } = EVENTS[event.event_type];
    const text = count > 1 ? format.number(count) : letter, className = kinds.size > 1 ? "mixed" : behaviour;
    const tooltip = () => el("span", {}, count > 1 ? `${text} events: each click shows the next one.`
      : [el("b", {}, format.LABELS[behaviour]), el("br", {}), describe(event, trail)]);
    const marker = addMarker(layer, position, className, text, tooltip);
    let clicks = 0;
    marker.on("click", () => onEvent(numbers[clicks++ % count]));
    marker.getElement().style.translate = `${offset.x}px ${offset.y}px`;
    if (offset.x || offset.y) {
      L.polyline([position, map.layerPointToLatLng(place)], { className: "joint", interactive: false }).addTo(layer);
    }
    return { marker, numbers };
  });
}
