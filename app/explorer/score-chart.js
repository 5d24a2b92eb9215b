// The chart of scores over time: of a driver, or of the fleet.

import * as format from "./format.js";
import * as ui from "./ui.js";

const { bar, el } = ui;
// How many intervals the chart of a driver shows, and what they are called.
export const INTERVALS = { day: [28, "Days", "daily"], week: [12, "Weeks", "weekly"], month: [6, "Months", "monthly"] };

/** Returns the first dates of all intervals that the API serves, oldest first. */
export function listStarts(interval) {
  const starts = [];
  for (let start = format.oldestStart(interval); start <= format.today(); start = format.shift(interval, start, 1)) {
    starts.push(start);
  }
  return starts;
}

/**
 * Returns the intervals that the chart shows with this one, and the ones to go to in the charts before and after: the
 * last that `isThere`, if there is one.
 */
export function findPage(starts, at, count, isThere = () => true) {
  const end = starts.length - count * Math.floor((starts.length - 1 - starts.indexOf(at)) / count);
  const first = Math.max(0, end - count), after = starts.slice(end);
  return { starts: starts.slice(first, end), previous: starts.slice(0, first).findLast(isThere),
    next: after.slice(0, count).findLast(isThere) ?? after.find(isThere) };
}

/**
 * Returns an axis for scores up to 100: what part of it, in percent, so many points are, and its labels. It begins at a
 * multiple of ten, so far below the lowest score that the number fits into the bar.
 */
export function axis(scores) {
  const lowest = Math.min(...scores), room = 0.12 * (100 - lowest);
  const low = scores.length && Math.max(0, Math.min(90, 10 * Math.floor((lowest - room) / 10)));
  return { low, size: (points) => (100 * points) / (100 - low), labels: ui.scale([100, (100 + low) / 2, low]),
    note: low > 0 && el("p", { class: "quiet" }, `The axis begins at ${low}, not at 0.`) };
}

/** Returns a chart with a column for each interval: the score, and above it the points that each behaviour cost. */
export function chart(interval, starts, byStart, at, link) {
  const longest = Math.max(...starts.map((start) => byStart.get(start)?.distance_miles ?? 0), 1);
  const scale = axis(starts.flatMap((start) => byStart.get(start)?.fm_score ?? []));
  const columns = starts.map((start) => {
    const attributes = { id: `at-${start}`, href: link({ at: start }), "aria-current": start === at && "true" };
    return el("li", {}, column(interval, start, byStart.get(start), scale, longest, attributes));
  });
  return el("div", { class: "score-chart" }, scale.labels, el("ol", { class: "columns", tabindex: 0 }, columns), scale.note);
}

function column(interval, start, explanation, { low, size }, longest, attributes) {
  const period = format.period(interval, start);
  const label = el("small", { "aria-hidden": "true" }, format.shortPeriod(interval, start));
  if (!explanation) {
    return el("span", {}, el("span", { class: "bars" }), label, ui.visuallyHidden(`${period}: no trips`));
  }
  const { behaviours, fm_score: score, distance_miles: miles } = explanation;
  const facts = [`score ${format.score(score)}`, format.distance(miles), ...ui.describeLosses(behaviours)];
  const text = `${period}: ${facts.join(", ")}`;
  const losses = behaviours.map(({ behaviour, points_lost }) => bar(behaviour, size(points_lost))).reverse();
  return el("a", { class: "column", title: text, ...attributes }, ui.visuallyHidden(text),
    el("span", { class: "bars", "aria-hidden": "true" }, losses,
      bar("score", size(score - low), el("b", {}, format.number(score, score < 100 ? 1 : 0)))),
    label, el("span", { class: "miles" }, bar("distance", 100 * (miles / longest))));
}

/** Returns the controls of the chart. A date, if there is one, is that to keep when the interval changes. */
export function controls(title, current, { previous, next }, link, date) {
  const intervals = Object.entries(INTERVALS).map(([interval, [, label]]) =>
    [label, link({ interval, at: date && format.nearestStart(interval, date, format.today()) }), interval === current]);
  return el("div", { class: "controls" }, el("h2", {}, title),
    ui.stepper(`${current}s`, "", previous && link({ at: previous }), next && link({ at: next })),
    ui.choice("Interval", intervals));
}

/** Scrolls the chart, which may be wider than the screen, to an interval. */
export function scrollTo(starts, at) {
  const columns = document.querySelector(".columns"), middle = starts.indexOf(at) / starts.length;
  if (columns) columns.scrollLeft = middle * columns.scrollWidth - columns.clientWidth / 2;
}
