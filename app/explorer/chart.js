// The chart of speed over time of a trip.

import * as format from "./format.js";
import { EVENTS, highest, indexAt } from "./trail.js";
import { el, svg } from "./ui.js";

const WIDTH = 1000, HEIGHT = 150;
// Speeds in mph between two lines.
const GRID_STEP = 20;
const LABELS = 4;

/** Returns the chart and a function that marks a point of it. `onSelect` is called with an index of the trail. */
export function makeChart(trail, events, onSelect) {
  const { times, mph } = trail, start = times[0], duration = Math.max(1, times.at(-1) - start);
  const limits = events.map(({ event_data: data }) => data.speed_limit_mph || 0);
  const top = Math.max(GRID_STEP, Math.ceil(highest([...mph, ...limits]) / GRID_STEP) * GRID_STEP);
  const x = (ms) => (WIDTH * Math.min(Math.max(0, ms - start), duration)) / duration;
  const y = (value) => HEIGHT * (1 - value / top);
  const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    gridLines(top, y), events.map((event) => eventBand(event, x, y)),
    svg("path", { class: "speed-line", d: speedPath(trail, x, y) }), cursor);
  const plot = el("div", { class: "plot", onpointermove: hover, onpointerdown: hover }, drawing);
  function hover({ clientX }) {
    const { left, width } = plot.getBoundingClientRect();
    onSelect(indexAt(trail, start + ((clientX - left) / width) * duration));
  }
  function select(index) {
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, x(times[index]));
  }
  const parts = [speedLabels(top), plot, timeLabels(start, duration)];
  return { node: el("div", { class: "chart", "aria-hidden": "true" }, parts), select };
}

/** Returns a line with at most two points for each pixel: the least and the greatest speed. */
function speedPath({ times, mph }, x, y) {
  const size = Math.max(1, Math.ceil(mph.length / WIDTH)), points = [];
  for (let i = 0; i < mph.length; i += size) {
    const speeds = mph.slice(i, i + size);
    for (const speed of size > 1 ? [Math.min(...speeds), Math.max(...speeds)] : speeds) {
      points.push(`${x(times[i]).toFixed(1)} ${y(speed).toFixed(1)}`);
    }
  }
  return `M${points.join("L")}`;
}

function gridLines(top, y) {
  return speeds(top).map((speed) => svg("line", { class: "grid-line", x1: 0, x2: WIDTH, y1: y(speed), y2: y(speed) }));
}

const speeds = (top) => {
  const step = top > 100 ? Math.ceil(top / 80) * GRID_STEP : GRID_STEP;
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
};

/** Returns the time of an event as a band, and of overspeeding its limit as a line. */
function eventBand({ event_type: type, event_start_timestamp: start, event_end_timestamp: end, event_data: data }, x, y) {
  const { behaviour } = EVENTS[type], left = x(start), width = Math.max(3, x(end) - left);
  const band = svg("rect", { class: `band ${behaviour}`, x: left, width, y: 0, height: HEIGHT });
  const limit = data.speed_limit_mph;
  return limit === undefined ? band
    : [band, svg("line", { class: "limit", x1: left, x2: left + width, y1: y(limit), y2: y(limit) })];
}

function speedLabels(top) {
  const labels = speeds(top).map((speed) => {
    const label = el("span", {}, String(speed));
    label.style.bottom = `${(100 * speed) / top}%`;
    return label;
  });
  return el("div", { class: "speed-labels" }, labels);
}

function timeLabels(start, duration) {
  const labels = Array.from({ length: LABELS + 1 }, (_, i) => el("span", {}, format.time(start + (duration * i) / LABELS)));
  return el("div", { class: "time-labels" }, labels);
}
