// The chart of speed over time of a trip.

import * as format from "./format.js";
import { EVENTS, highest, indexAt } from "./trail.js";
import { el, scale, svg } from "./ui.js";

const WIDTH = 1000, HEIGHT = 150;
// Speeds between two lines, and how many lines there may be.
const GRID_STEP = 20;
const MAX_LINES = 5;
const TIMES = [0, 0.25, 0.5, 0.75, 1];
// A trip so short has its times with seconds.
const SHORT_MS = 600_000;

/** Returns the chart and a function that marks a point of it. `onSelect` is called with an index of the trail. */
export function makeChart(trail, events, onSelect) {
  const { times, mph } = trail, start = times[0], duration = Math.max(1, times.at(-1) - start);
  const limits = events.map(({ event_data: data }) => data.speed_limit_mph || 0);
  const speeds = listSpeeds(format.inUnits(highest([...mph, ...limits])));
  const x = (ms) => (WIDTH * Math.min(Math.max(0, ms - start), duration)) / duration;
  // Speeds are in the units of the page.
  const y = (speed) => HEIGHT * (1 - speed / speeds[0]);
  const line = (className, speed, left, right) =>
    svg("line", { class: className, x1: left, x2: right, y1: y(speed), y2: y(speed) });
  const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT });
  const points = times.map((ms, i) => `${x(ms)},${y(format.inUnits(mph[i]))}`).join(" ");
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" });
  drawing.append(...speeds.map((speed) => line("grid-line", speed, 0, WIDTH)),
    ...events.flatMap((event) => eventBand(event, x, line)),
    svg("polyline", { class: "speed-line", points }), cursor);
  const plot = el("div", { class: "plot", onpointermove: hover, onpointerdown: hover }, drawing);
  function hover({ clientX }) {
    const { left, width } = plot.getBoundingClientRect();
    onSelect(indexAt(trail, start + ((clientX - left) / width) * duration));
  }
  function select(index) {
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, x(times[index]));
  }
  const write = duration < SHORT_MS ? format.clock : format.time;
  const labels = TIMES.map((share) => el("span", {}, write(start + share * duration)));
  const node = el("div", { class: "chart", "aria-hidden": "true" }, scale(speeds), plot,
    el("div", { class: "time-labels" }, labels));
  return { node, select };
}

/** Returns the speeds of the lines, from the top, which is at or above the highest speed, to 0. */
function listSpeeds(most) {
  const step = GRID_STEP * Math.max(1, Math.ceil(most / GRID_STEP / MAX_LINES));
  const count = Math.max(1, Math.ceil(most / step));
  return Array.from({ length: count + 1 }, (_, i) => (count - i) * step);
}

/** Returns the time of an event as a band, and of overspeeding its limit as a line. */
function eventBand(event, x, line) {
  const { behaviour } = EVENTS[event.event_type], left = x(event.event_start_timestamp);
  const width = Math.max(3, x(event.event_end_timestamp) - left);
  const band = svg("rect", { class: `band ${behaviour}`, x: left, width, y: 0, height: HEIGHT });
  const limit = event.event_data.speed_limit_mph;
  return limit === undefined ? [band] : [band, line(`limit ${behaviour}`, format.inUnits(limit), left, left + width)];
}
