// The dates of a list of the fleet: a day, a week or a chosen window.

import * as format from "./format.js";
import * as ui from "./ui.js";

const { el } = ui;
const MS_PER_DAY = 86_400_000;

const LAST_WEEK = "last-week";

/** Returns {start, end}: the dates of the address, or the nearest that the API serves; of none, yesterday. */
export function readDates({ start, end }) {
  if (start === LAST_WEEK) return weekOf(format.lastWholeStart("week"));
  const [first, last] = [start, end].map((date) => format.nearestStart("day", date, format.today()));
  const from = first ?? last ?? format.yesterday();
  return { start: from, end: format.later(from, last ?? from) };
}

export const countDays = ({ start, end }) => (Date.parse(end) - Date.parse(start)) / MS_PER_DAY + 1;

const weekOf = (date) => format.datesOf("week", format.startOf("week", date));
function isWeek({ start, end }) {
  const week = weekOf(start);
  return start !== end && week.start === start && week.end === end;
}

/** Returns what `settle` of a view takes of a window. */
export function stay({ start, end }) {
  const text = format.dates(start, end), dates = { start, end };
  if (start === end) return { text, dates, last: format.LAST, label: "Always yesterday" };
  return { text, dates, ...(isWeek(dates) && { last: LAST_WEEK, label: "Always the last week" }) };
}

/** Returns the window before (-1) or after (1): of a week the next week, else as many days. */
function stepTo({ start, end }, direction) {
  if (isWeek({ start, end })) return weekOf(format.shift("week", start, direction));
  const next = format.shift("day", direction < 0 ? start : end, direction);
  const other = format.shift("day", next, direction * (countDays({ start, end }) - 1));
  return direction < 0 ? format.clip(other, next) : format.clip(next, other);
}

/** Returns the controls of a window. `link` makes an address of dates. */
export function dateControls(dates, link) {
  const { start, end } = dates;
  const name = start === end ? "day" : isWeek(dates) ? "week" : `${countDays(dates)} days`;
  const [previous, next] = [-1, 1].map((direction) => stepTo(dates, direction));
  const input = (id, label) => el("label", { class: "inline" }, label, " ", el("input", { id, type: "date", required: true,
    min: format.oldestDate(), max: format.today(), value: dates[id] }));
  function choose(event) {
    event.preventDefault();
    const [from, to] = ["start", "end"].map((id) => event.target.elements[id].value).sort();
    location.hash = link({ start: from, end: to });
  }
  return el("div", { class: "controls" },
    ui.choice("Dates", [["Day", link({ start: end, end }), start === end], ["Week", link(weekOf(start)), isWeek(dates)]]),
    ui.stepper(name, format.dates(start, end), previous && link(previous), next && link(next)),
    el("form", { class: "row", onsubmit: choose }, input("start", "From"), input("end", "to"), el("button", {}, "Show")));
}
