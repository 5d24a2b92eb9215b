// The chart of speed over time of a trip.

import * as format from "./format.js";
import { EVENTS, highest, indexAt, isMeasured, limitOf } from "./trail.js";
import { el, scale, svg } from "./ui.js";

const WIDTH = 1000, HEIGHT = 150;
// Speeds between two lines, and how many lines there may be.
const GRID_STEP = 20;
const MAX_LINES = 5;
const TIMES = [0, 0.25, 0.5, 0.75, 1];
// A trip so short has its times with seconds.
const SHORT_MS = 600_000;

/** Returns the chart and a function that marks a time in it. `onSelect` is called with an index of the trail. */
export function makeChart(trail, events, onSelect) {
  const { times, mph, starts } = trail, start = times[0], duration = Math.max(1, times.at(-1) - start);
  const limits = events.map((event) => limitOf(event) ?? 0);
  const speeds = listSpeeds(format.inUnits(highest([...mph, ...limits])));
  // What is outside the trail is outside the drawing.
  const x = (ms) => (WIDTH * (ms - start)) / duration;
  // Speeds are in the units of the page.
  const y = (speed) => HEIGHT * (1 - speed / speeds[0]);
  const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT });
  const measured = [...times.keys()].filter((i) => isMeasured(mph[i]));
  const d = measured.map((i) => `${starts.has(i) ? "M" : "L"}${x(times[i])},${y(format.inUnits(mph[i]))}`).join("");
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" });
  drawing.append(...speeds.map((speed) =>
    svg("line", { class: "grid-line", x1: 0, x2: WIDTH, y1: y(speed), y2: y(speed) })),
    ...Object.values(EVENTS).map(({ behaviour }) => bands(behaviour, events, x)), limitLines(events, x, y),
    svg("path", { class: "speed-line", d }), cursor);
  const plot = el("div", { class: "plot", onpointermove: hover, onpointerdown: hover }, drawing);
  function hover({ clientX }) {
    const { left, width } = plot.getBoundingClientRect();
    onSelect(indexAt(trail, start + ((clientX - left) / width) * duration));
  }
  function select(ms) {
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, x(ms));
  }
  const node = el("div", { class: "chart", "aria-hidden": "true" }, scale(speeds), plot,
    el("div", { class: "time-labels" }, timeLabels(start, duration)));
  return { node, select };
}

/** Returns the speeds of the lines, from the top, which is at or above the highest speed, to 0. */
function listSpeeds(most) {
  const step = GRID_STEP * Math.max(1, Math.ceil(most / GRID_STEP / MAX_LINES));
  const count = Math.max(1, Math.ceil(most / step));
  return Array.from({ length: count + 1 }, (_, i) => (count - i) * step);
}

/** Returns the times of the axis, with a date where it is not that of the time before, or, of the first, of the last. */
function timeLabels(start, duration) {
  const times = TIMES.map((share) => start + share * duration);
  const write = duration < SHORT_MS ? format.clock : format.time;
  return times.map((ms, i) => {
    const isAnotherDay = format.dateOf(ms) !== format.dateOf(times.at(i - 1));
    return el("span", {}, isAnotherDay && `${format.shortDay(ms)}, `, write(ms));
  });
}

/** Returns where an event is from left to right, and how wide that is. */
function extent({ event_start_timestamp: start, event_end_timestamp: end }, x) {
  return [x(start), Math.max(3, x(end) - x(start))];
}

/** Returns the times of the events of a behaviour as bands. */
function bands(behaviour, events, x) {
  const own = events.filter(({ event_type: type }) => EVENTS[type].behaviour === behaviour);
  const parts = own.map((event) => extent(event, x)).map(([left, width]) => `M${left},0h${width}v${HEIGHT}h${-width}z`);
  return svg("path", { class: `band ${behaviour}`, d: parts.join("") });
}

/** Returns the limits of overspeeding as lines. */
function limitLines(events, x, y) {
  const parts = events.filter(limitOf).map((event) => {
    const [left, width] = extent(event, x);
    return `M${left},${y(format.inUnits(limitOf(event)))}h${width}`;
  });
  return svg("path", { class: "limit overspeeding", d: parts.join("") });
}
