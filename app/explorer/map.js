// The map of a trail, drawn by Leaflet: a line coloured by speed, events, and the point that is selected.

import { loadModule } from "./api.js";
import { settings } from "./format.js";
import { EVENTS, describe, indexNear, positionOf } from "./trail.js";
import { el } from "./ui.js";

// The lowest speed of each colour, in mph.
export const SPEED_STEPS = [0, 15, 30, 45, 60];
const GRID_PIXELS = 64;
const HOVER_PIXELS = 40;

/** Loads Leaflet once. It is not a module: it sets the global name L. */
async function loadLeaflet() {
  if (globalThis.L) return globalThis.L;
  const styles = new Promise((done) => {
    document.head.prepend(el("link", { rel: "stylesheet", href: "explorer/leaflet.css", onload: done, onerror: done }));
  });
  await Promise.all([loadModule(() => import("./leaflet.js")), styles]);
  return globalThis.L;
}

/**
 * Draws a map into `box`, of a trail that may be empty and of events. `onSelect` is called with an index of the trail,
 * `onEvent` with an index of the events.
 */
export async function drawMap(box, trail, events, onSelect, onEvent) {
  const L = await loadLeaflet();
  // One finger and the wheel scroll the page.
  box.addEventListener("wheel", (wheel) => !wheel.ctrlKey && wheel.stopImmediatePropagation(), { capture: true });
  const map = L.map(box, { attributionControl: false, zoomSnap: 0.25, maxZoom: 19, minZoom: 1, dragging: !L.Browser.mobile });
  L.control.scale({ position: "bottomright" }).addTo(map);
  addBackground(L, map);
  const positions = trail.positions.length > 1 ? trail.positions : [...trail.positions, ...events.map(positionOf)];
  map.fitBounds(L.latLngBounds(positions).pad(0.08), { animate: false, maxZoom: 17 });
  addLine(L, map, trail);
  events.forEach((event, number) => addEvent(L, map, trail, event, () => onEvent(number)));
  if (trail.positions.length) addEnds(L, map, trail.positions);
  const dot = L.marker(positions[0], markerOptions(L, "dot", "", 16)).addTo(map);
  map.on("mousemove", ({ latlng }) => {
    if (!trail.positions.length) return;
    const index = indexNear(trail, [latlng.lat, latlng.lng]);
    const distance = map.latLngToContainerPoint(trail.positions[index]).distanceTo(map.latLngToContainerPoint(latlng));
    if (distance < HOVER_PIXELS) onSelect(index);
  });
  const observer = new ResizeObserver(() => (box.isConnected ? map.invalidateSize() : observer.disconnect(map.remove())));
  observer.observe(box);
  return {
    select: (position) => dot.setLatLng(position),
    show: (position) => map.panInside(position, { padding: [60, 60] }),
  };
}

/** Adds the tiles of the operator's choice, or a quiet grid. */
function addBackground(L, map) {
  if (settings.map_tiles_url) {
    L.tileLayer(settings.map_tiles_url, { maxZoom: 19 }).addTo(map);
    return;
  }
  const Grid = L.GridLayer.extend({ createTile: () => el("div", { class: "grid-tile" }) });
  new Grid({ tileSize: GRID_PIXELS }).addTo(map);
}

/** Adds the trail as one line for each colour, however many points it has. */
function addLine(L, map, { positions, mph }) {
  const lines = SPEED_STEPS.map(() => []);
  let current;
  for (let i = 1; i < positions.length; i++) {
    const colour = SPEED_STEPS.findLastIndex((low) => mph[i] >= low);
    if (colour === current) lines[colour].at(-1).push(positions[i]);
    else lines[colour].push([positions[i - 1], positions[i]]);
    current = colour;
  }
  L.polyline(positions, { className: "trail-outline", interactive: false }).addTo(map);
  lines.forEach((parts, colour) => L.polyline(parts, { className: `speed-${colour}`, interactive: false }).addTo(map));
}

const markerOptions = (L, className, text, size) => ({
  icon: L.divIcon({ className: `marker ${className}`, html: el("span", { "aria-hidden": "true" }, text), iconSize: [size, size] }),
  keyboard: false, interactive: className !== "dot", zIndexOffset: className === "dot" ? 1000 : 0,
});

/** Adds a marker of an event. The list of events leads there with the keyboard. */
function addEvent(L, map, trail, event, onClick) {
  const { behaviour, label, letter } = EVENTS[event.event_type];
  const [latitude, longitude] = positionOf(event);
  const marker = L.marker([latitude, nearestTurn(trail, longitude)], markerOptions(L, behaviour, letter, 22));
  marker.bindTooltip(el("span", {}, el("b", {}, label), el("br"), describe(event, trail)), { direction: "top", offset: [0, -8] });
  marker.on("click", onClick).addTo(map);
}

/** Returns a longitude on the turn of the globe on which the trail is. */
function nearestTurn({ positions }, longitude) {
  return positions.length ? longitude + 360 * Math.round((positions[0][1] - longitude) / 360) : longitude;
}

function addEnds(L, map, positions) {
  const ends = [[positions[0], "start", "Start"], [positions.at(-1), "end", "End"]];
  for (const [position, className, text] of ends) {
    L.marker(position, markerOptions(L, className, "", 14)).bindTooltip(text, { direction: "top" }).addTo(map);
  }
}
