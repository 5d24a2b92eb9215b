// The map of a trail, drawn by Leaflet: a line coloured by speed, events, and the point that is selected.

import { LABELS, inUnits, settings, units, unitsName } from "./format.js";
import { EVENTS, describe, indexNear, positionOf } from "./trail.js";
import { el } from "./ui.js";

const GRID_PIXELS = 64;
const HOVER_PIXELS = 40;
const MAX_ZOOM = 19;
// Events that are nearer to each other would cover each other.
const EVENT_PIXELS = 24;
// The size of an icon in pixels, and its layer. Events are above the rest, and the chosen one above other events, but
// below the one under the pointer, which Leaflet raises by 250.
const ICONS = { start: [16, -1000], end: [16, -1000], dot: [30, -500] }, EVENT_ICON = [22, 0];
const CHOSEN_LAYER = 100;

/** Loads Leaflet once. It is not a module: it sets the global name L. */
async function loadLeaflet() {
  if (globalThis.L) return;
  const styles = new Promise((done) => {
    document.head.prepend(el("link", { rel: "stylesheet", href: "explorer/leaflet.css", onload: done, onerror: done }));
  });
  await Promise.all([import("./leaflet.js"), styles]);
}

/**
 * Draws a map into `box`, of a trail that may be empty and of events. `onSelect` is called with an index of the trail,
 * `onEvent` with an index of the events.
 */
export async function drawMap(box, trail, events, onSelect, onEvent) {
  await loadLeaflet();
  // One finger and the wheel scroll the page.
  box.addEventListener("wheel", (wheel) => wheel.ctrlKey || wheel.stopImmediatePropagation(), { capture: true });
  const map = L.map(box, { attributionControl: false, zoomSnap: 0.25, maxZoom: MAX_ZOOM, dragging: !L.Browser.mobile });
  L.control.scale({ position: "bottomright", imperial: unitsName === "miles", metric: unitsName === "km" }).addTo(map);
  makeBackground().addTo(map);
  const positions = trail.positions.length > 1 ? trail.positions : [...trail.positions, ...events.map(positionOf)];
  // Clear of the buttons of the zoom.
  map.fitBounds(L.latLngBounds(positions).pad(0.08), { animate: false, maxZoom: 17, paddingTopLeft: [44, 16] });
  addLine(map, trail);
  const markers = events.map((event, number) => addEvent(map, trail, event, () => onEvent(number)));
  for (const [name, position] of [["start", trail.positions[0]], ["end", trail.positions.at(-1)]]) {
    if (position) addMarker(map, position, name, "", name);
  }
  map.on("zoomend", () => spread(map, markers));
  spread(map, markers);
  const dot = addMarker(map, positions[0], "dot", "", "", { interactive: false });
  map.on("mousemove", ({ latlng, containerPoint }) => {
    const index = indexNear(trail, [latlng.lat, latlng.lng]), nearest = trail.positions[index];
    if (nearest && map.latLngToContainerPoint(nearest).distanceTo(containerPoint) < HOVER_PIXELS) onSelect(index);
  });
  const observer = new ResizeObserver(() =>
    (box.isConnected ? map.invalidateSize() : observer.disconnect(map.remove())));
  observer.observe(box);
  return {
    select: (position) => dot.setLatLng(position),
    raise: (number) => markers.forEach((marker, i) => {
      marker.setZIndexOffset(i === number ? CHOSEN_LAYER : 0).getElement().classList.toggle("chosen", i === number);
    }),
    show: (position) => map.panInside(position, { padding: [60, 60] }),
  };
}

/** Moves markers of events that would cover others to the nearest free place. */
function spread(map, markers) {
  const taken = [];
  for (const marker of markers) {
    const own = map.latLngToLayerPoint(marker.getLatLng()), place = findFree(own, taken), { x, y } = place.subtract(own);
    taken.push(place);
    marker.getElement().style.translate = `${x}px ${y}px`;
  }
}

/** Returns the first of the places on circles around a point that is not near one that is taken. */
function findFree(point, taken) {
  for (let circle = 0; ; circle++) {
    const count = Math.max(1, 6 * circle), radius = circle * EVENT_PIXELS;
    for (let i = 0; i < count; i++) {
      const angle = (2 * Math.PI * i) / count, place = point.add([-radius * Math.sin(angle), -radius * Math.cos(angle)]);
      if (taken.every((other) => other.distanceTo(place) > EVENT_PIXELS - 1)) return place;
    }
  }
}

/** Returns the tiles of the operator's choice, or a quiet grid. */
function makeBackground() {
  if (settings.map_tiles_url) return L.tileLayer(settings.map_tiles_url, { maxZoom: MAX_ZOOM });
  const Grid = L.GridLayer.extend({ createTile: () => el("div", { class: "grid-tile" }) });
  return new Grid({ tileSize: GRID_PIXELS });
}

/** Adds the trail as one line for each colour, however many points it has. */
function addLine(map, { positions, mph }) {
  const { speedSteps } = units(), lines = speedSteps.map(() => []);
  let current;
  for (let i = 1; i < positions.length; i++) {
    const colour = speedSteps.findLastIndex((low) => inUnits(mph[i]) >= low);
    if (colour === current) lines[colour].at(-1).push(positions[i]);
    else lines[colour].push([positions[i - 1], positions[i]]);
    current = colour;
  }
  L.polyline(positions, { className: "trail-outline", interactive: false }).addTo(map);
  lines.forEach((parts, colour) => L.polyline(parts, { className: `speed-${colour}`, interactive: false }).addTo(map));
}

function addMarker(map, position, className, letter, tooltip, options) {
  const [size, zIndexOffset] = ICONS[className] ?? EVENT_ICON, html = el("span", { "aria-hidden": "true" }, letter);
  const icon = L.divIcon({ className: `marker ${className}`, html, iconSize: [size, size] });
  const marker = L.marker(position, { icon, keyboard: false, riseOnHover: true, zIndexOffset, ...options }).addTo(map);
  return tooltip ? marker.bindTooltip(tooltip, { direction: "top", offset: [0, -8] }) : marker;
}

/** Adds a marker of an event, on the turn of the globe on which the trail is. The keyboard goes to the list instead. */
function addEvent(map, trail, event, onClick) {
  const { behaviour, letter } = EVENTS[event.event_type], [latitude, longitude] = positionOf(event);
  const turns = trail.positions.length ? Math.round((trail.positions[0][1] - longitude) / 360) : 0;
  const tooltip = el("span", {}, el("b", {}, LABELS[behaviour]), el("br", {}), describe(event, trail));
  return addMarker(map, [latitude, longitude + 360 * turns], behaviour, letter, tooltip).on("click", onClick);
}
