// The dates of a list of the fleet: a day, a week or a chosen window.

import * as format from "./format.js";
import * as ui from "./ui.js";

const { el } = ui;
const MS_PER_DAY = 86_400_000;

/** Returns {start, end}: the dates of the address, or the nearest that the API serves; of none, yesterday. */
export function readDates({ start, end }) {
  const [first, last] = [start, end].map((date) => format.nearestStart("day", date, format.today()));
  const from = first ?? last ?? format.yesterday();
  return { start: from, end: format.later(from, last ?? from) };
}

export const countDays = ({ start, end }) => (Date.parse(end) - Date.parse(start)) / MS_PER_DAY + 1;

const weekOf = (date) => format.datesOf("week", format.startOf("week", date));

/** Returns the window before (-1) or after (1): of a week the next week, else as many days. */
function stepTo({ start, end }, isWeek, direction) {
  if (isWeek) return weekOf(format.shift("week", start, direction));
  const next = format.shift("day", direction < 0 ? start : end, direction);
  const other = format.shift("day", next, direction * (countDays({ start, end }) - 1));
  return direction < 0 ? format.clip(other, next) : format.clip(next, other);
}

/** Returns the controls of a window. `link` makes an address of dates. */
export function dateControls(dates, link) {
  const { start, end } = dates, week = weekOf(start), isWeek = week.start === start && week.end === end;
  const name = start === end ? "day" : isWeek ? "week" : `${countDays(dates)} days`;
  const [previous, next] = [-1, 1].map((direction) => stepTo(dates, start !== end && isWeek, direction));
  const input = (id, label) => el("label", { class: "inline" }, label, " ", el("input", { id, type: "date", required: true,
    min: format.oldestDate(), max: format.today(), value: dates[id] }));
  function choose(event) {
    event.preventDefault();
    const [from, to] = ["start", "end"].map((id) => event.target.elements[id].value).sort();
    location.hash = link({ start: from, end: to });
  }
  return el("div", { class: "controls" },
    ui.choice("Dates", [["Day", link({ start: end, end }), start === end], ["Week", link(week), start !== end && isWeek]]),
    ui.stepper(name, format.dates(start, end), previous && link(previous), next && link(next)),
    el("form", { class: "row", onsubmit: choose }, input("start", "From"), input("end", "to"), el("button", {}, "Show")));
}
