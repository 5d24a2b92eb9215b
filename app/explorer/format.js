// Numbers, times, dates and names as text, and the addresses of views. Times and dates are in the time zone of
// the fleet.

export const settings = JSON.parse(document.querySelector("meta[name=explorer-settings]").content);
export const LABELS = {
  phone_use: "Phone use",
  overspeeding: "Overspeeding",
  hard_brake: "Hard braking",
  rapid_acceleration: "Rapid acceleration",
};
// What a response about the fleet over time has to have for `fleetByStart`.
export const FLEET_MASK = "{series{start_date,fleet_summary}}";
const UNITS_NAME = "driver-analytics-units";
// What miles are multiplied by, how the result is called, and the lowest speed of each colour. The API has miles.
const UNITS = {
  miles: { perMile: 1, distance: "mi", speed: "mph", speedSteps: [0, 15, 30, 45, 60] },
  km: { perMile: 1.609344, distance: "km", speed: "km/h", speedSteps: [0, 25, 50, 75, 100] },
};
// The least loss of points that a score, which has one decimal, shows.
const LEAST_LOSS = 0.05;
const MS_PER_DAY = 86_400_000, MS_PER_HOUR = 3_600_000, MS_PER_QUARTER = 900_000;
// The compact notation has no letters for numbers from 1e15 on, and writes all their digits.
const short = (value) => ({ notation: value < 1e15 ? "compact" : "scientific", maximumSignificantDigits: 4 });

// Making a format takes longer than writing a number.
const WITH_DIGITS = [0, 1].map((digits) => new Intl.NumberFormat(
  "en", { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "negative" }));

export const number = (value, digits = 0) => (Math.abs(value) >= 1e6
  ? value.toLocaleString("en", short(Math.abs(value))) : WITH_DIGITS[digits].format(value));
export const score = (value) => number(value, 1);
const asShown = (value) => Number(value?.toFixed(1));
/** Returns the difference of two scores as they are shown, or NaN if one is undefined. */
export const difference = (one, other) => asShown(asShown(one) - asShown(other));
export const share = (part, whole) => (whole > 0 ? `${number(100 * (part / whole))} %` : "–");
export const count = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
export const DELAY = count(settings.processing_delay_hours, "hour");

/** The units that the browser keeps: "miles" or "km". */
export let unitsName = localStorage.getItem(UNITS_NAME) === "km" ? "km" : "miles";
export function setUnits(name) {
  localStorage.setItem(UNITS_NAME, name);
  unitsName = name;
}
export const units = () => UNITS[unitsName];
/** Returns miles, or miles per hour, in the units of the page, as a number. */
export const inUnits = (miles) => miles * units().perMile;
export const distance = (miles) => `${number(inUnits(miles), inUnits(miles) < 100 ? 1 : 0)} ${units().distance}`;
export const speed = (mph) => `${number(inUnits(mph))} ${units().speed}`;

/** Returns a duration as "9 min 5 s", from ten minutes on as "1 h 20 min". No line ends within it. */
export function duration(seconds) {
  const isShort = Math.round(seconds) < 600, [large, small] = isShort ? ["min", "s"] : ["h", "min"];
  const total = Math.round(isShort ? seconds : seconds / 60);
  const parts = [[Math.floor(total / 60), large], [total % 60, small]].filter(([value]) => value > 0);
  return (parts.length ? parts : [[0, small]]).flatMap(([value, unit]) => [number(value), unit]).join("\u00a0");
}

/** Returns a position, [latitude, longitude]; on a line that crosses the antimeridian, longitudes go on past 180. */
export const position = ([latitude, longitude]) =>
  `${latitude.toFixed(5)}, ${(longitude - 360 * Math.round(longitude / 360)).toFixed(5)}`;

/** Returns whether a reader sees something of a text, which may be null. */
export const isVisible = (text) => /[^\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text ?? "");

/** Returns the text by which to call a driver. */
export function driverName({ first_name: first, last_name: last, alias, driver_id: id }) {
  const names = [[first, last].filter(isVisible).join(" "), alias, id];
  return names.find(isVisible) ?? `Driver ${JSON.stringify(id)}`;
}

// A time is milliseconds since 1970 in UTC, and a date is the time at which it begins in UTC. So a time is shown as if it
// was as much later as the time zone is ahead of UTC.
export let zone = "UTC";
let offsetFormat, zoneNames, offsets = new Map();
export function setZone(name) {
  [zone, offsetFormat, offsets] = ["UTC", undefined, new Map()];
  try {
    offsetFormat = new Intl.DateTimeFormat("en-GB", { timeZone: name, timeZoneName: "longOffset" });
    zoneNames = new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "short" });
    zone = name;
  } catch { /* The browser does not know the time zone. */ }
}
function readOffset(ms) {
  const [, sign, ...parts] = /GMT([+-])(\d+):(\d+):?(\d*)/.exec(offsetFormat?.format(ms)) ?? [];
  const [hours, minutes, seconds] = parts.map(Number);
  return sign ? Number(`${sign}1`) * 1000 * (3600 * hours + 60 * minutes + seconds) : 0;
}
/** Returns by how many milliseconds the zone is ahead of UTC. To find it takes long; clocks change at quarters of hours. */
function offsetAt(ms) {
  const quarter = Math.floor(ms / MS_PER_QUARTER);
  if (!offsets.has(quarter)) offsets.set(quarter, readOffset(ms));
  return offsets.get(quarter);
}
const local = (ms) => ms + offsetAt(ms);

// As the language of the browser has them, with the months and the digits of the rest of the page
const dateFormat = (options) => new Intl.DateTimeFormat(navigator.language,
  { timeZone: "UTC", calendar: "gregory", numberingSystem: "latn", ...options });
const DAY = { day: "numeric", month: "short" }, DATE = { ...DAY, year: "numeric" };
const PERIODS = {
  day: { days: 1, long: dateFormat({ weekday: "short", ...DATE }), short: dateFormat({ day: "numeric" }) },
  week: { days: 7, long: dateFormat(DATE), short: dateFormat(DAY) },
  month: { long: dateFormat({ month: "long", year: "numeric" }), short: dateFormat({ month: "short" }) },
};
const WEEKDAY = dateFormat({ weekday: "short", ...DAY });
const [TIME, CLOCK] = ["short", "medium"].map((timeStyle) => dateFormat({ timeStyle }));

export const day = (ms) => PERIODS.day.long.format(ms);
export const shortDay = (ms) => WEEKDAY.format(local(ms));
/** Returns the zone of a time, such as " MST", if a change of clocks repeats its hour, or nothing. */
function zoneIfRepeated(ms) {
  const offset = offsetAt(ms), others = [-2, 2].map((hours) => offsetAt(ms + hours * MS_PER_HOUR));
  const isRepeated = others.some((other) => other !== offset && offsetAt(ms + offset - other) === other);
  return isRepeated ? ` ${zoneNames.formatToParts(ms).find(({ type }) => type === "timeZoneName").value}` : "";
}
export const time = (ms) => TIME.format(local(ms)) + zoneIfRepeated(ms);
export const clock = (ms) => CLOCK.format(local(ms)) + zoneIfRepeated(ms);
export const moment = (ms) => `${day(local(ms))}, ${time(ms)}`;
/** Returns the date and time of something that was received, with its year if that is over. */
export const received = (ms) => `${PERIODS.week[dateOf(ms) < today().slice(0, 4) ? "long" : "short"].format(local(ms))}, ${
  time(ms)}`;
/** Returns a time with seconds, and with its date if that is not the date of another time. */
export function clockAfter(other, ms) {
  const [own, others] = [ms, other].map((each) => Math.floor(local(each) / MS_PER_DAY));
  return own === others ? clock(ms) : `${day(local(ms))}, ${clock(ms)}`;
}
/** Returns a time as an input has it, such as 2026-03-18T14:05. */
export const inputOf = (ms) => new Date(local(ms)).toISOString().slice(0, 16);
/** Returns the time that an input has. */
export function readInput(text) {
  const ms = Date.parse(`${text}Z`);
  return ms - offsetAt(ms - offsetAt(ms));
}
/** Returns when the last trip of a date was; a clock that is wrong may date it in the future. */
export const wasOn = (date) => `${date > today() ? "is dated" : "was on"} ${day(Date.parse(date))}`;

// Dates are texts such as 2026-03-18, as in the API. A period is a day, week or month.
const toDate = (ms) => new Date(ms).toISOString().slice(0, 10);
export const dateOf = (ms) => toDate(local(ms));
// By how much the clock of the service is ahead of the browser's, which may be wrong.
let aheadMs = 0;
export const setClock = (httpDate) => { aheadMs = (Date.parse(httpDate) || Date.now()) - Date.now(); };
export const now = () => Date.now() + aheadMs;
export const today = () => dateOf(now());
export const yesterday = () => addDays(today(), -1);
const addDays = (date, days) => toDate(Date.parse(date) + days * MS_PER_DAY);
const addMonths = (date, months) => toDate(Date.UTC(date.slice(0, 4), date.slice(5, 7) - 1 + months));
export const earlier = (date, other) => (date < other ? date : other);
export const later = (date, other) => (date > other ? date : other);

/** Returns the first date of the period with this date. */
export function startOf(period, date) {
  if (period === "month") return addMonths(date, 0);
  return period === "week" ? addDays(date, -((new Date(date).getUTCDay() + 6) % 7)) : date;
}

/** Returns the first date of the period that is `count` periods later. */
export const shift = (period, start, count) =>
  (period === "month" ? addMonths(start, count) : addDays(start, count * PERIODS[period].days));

/** Returns the earliest date that the API serves: six months ago, or the last day of that month if it is shorter. */
export function oldestDate() {
  const lastDay = addDays(addMonths(today(), -5), -1);
  return earlier(lastDay, lastDay.slice(0, 8) + today().slice(8));
}

/** Returns the first date of the earliest period that the API serves: a month whole, a week only if it is whole. */
export function oldestStart(period) {
  const oldest = oldestDate(), start = startOf(period, oldest);
  return period === "month" || start === oldest ? start : shift(period, start, 1);
}

export const SIX_MONTHS = "Dates go back six months";
/** Returns a note about the period if it is the earliest that the API serves. */
export const noteEarliest = (period, start) =>
  start === oldestStart(period) && `the earliest ${period}: ${SIX_MONTHS.toLowerCase()}`;

/** Returns the first date of the last period that is over. */
export const lastWholeStart = (period) => shift(period, startOf(period, today()), -1);

/** Returns the first date of the period with this date, or of the nearest one up to `newest`; of no date, undefined. */
export function nearestStart(period, text, newest = yesterday()) {
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(ms)) return undefined;
  return later(oldestStart(period), earlier(startOf(period, toDate(ms)), startOf(period, newest)));
}

/** What addresses have in place of dates that move on with time. */
export const LAST = "last";
/** Returns what `settle` of a view takes of a period, whose first date is the parameter `name`. */
export const stay = (name, unit, start, more = "") => ({ dates: { [name]: start }, last: LAST,
  text: period(unit, start), label: `Always the last ${unit}${more}` });

/** Returns {start, end}: as much of a window as the API serves, if it serves any of it. */
export const clip = (start, end) => (end >= oldestDate() && start <= today()
  ? { start: later(start, oldestDate()), end: earlier(end, today()) } : undefined);
/** Returns the dates of the period with this first date, as far as the API serves them. */
export const datesOf = (period, start) => clip(start, addDays(shift(period, start, 1), -1));

export const period = (period, start) =>
  PERIODS[period].long.formatRange(Date.parse(start), Date.parse(shift(period, start, 1)) - 1);

/** Returns a window of dates. */
export const dates = (start, end) => PERIODS[start === end ? "day" : "week"].long.formatRange(
  Date.parse(start), Date.parse(end));

/** Returns the dates of a list as they are in the name of its file. */
export const fileDates = ({ start, end }) => (start === end ? start : `${start}-to-${end}`);
/** Returns a day, week or month as it is in the name of a file. */
export const filePeriod = (period, start) => (period === "month" ? start.slice(0, 7) : start);

export const shortPeriod = (period, start) => PERIODS[period].short.format(Date.parse(start));

/** Returns what each behaviour cost in a summary: the BehaviourExplanation of the API. */
export const explain = (summary) => settings.behaviours.map(({ name, numerator, denominator, factor, cap, weight }) => {
  const total = summary[denominator], value = summary.events_summary[numerator];
  const rate = total > 0 ? (factor * value) / total : 0;
  return {
    behaviour: name, count: summary.events_summary[`${name}_count`], rate, cap, weight,
    seconds: numerator.endsWith("_seconds") ? value : null, points_lost: weight * Math.min(1, rate / cap),
  };
});
/**
 * Returns the summary of each interval of a fleet by its first date, with what its behaviours cost. It is doubtful if
 * it counts implausible trips.
 */
export const fleetByStart = (series, { implausible_trips: policy }) => new Map(series.map(({ start_date, fleet_summary: summary }) =>
  [start_date, { ...summary, behaviours: explain(summary),
    isDoubtful: policy === "counted" && summary.implausible_trip_count > 0 }]));

export const scoreOf = (behaviours) => Math.floor((100 - behaviours.reduce((sum, { points_lost }) => sum + points_lost, 0)) * 10 + 0.5) / 10;

/** Returns the score and the grade of a trip by itself, with what each behaviour cost. The API has those of periods. */
export function rateTrip(trip) {
  const behaviours = explain({ ...trip, events_summary: trip.event_summary });
  const score = scoreOf(behaviours);
  const [grade] = Object.entries(settings.grades).find(([, lowest]) => score >= lowest);
  return { fm_score: score, fm_grade: grade, behaviours };
}

export const countEvents = (trip) => Object.keys(LABELS)
  .reduce((sum, behaviour) => sum + trip.event_summary[`${behaviour}_count`], 0);

/** Returns the behaviours that cost points, the costliest first. */
export const findLosses = (behaviours) => behaviours.filter(({ points_lost }) => points_lost >= LEAST_LOSS)
  .sort((a, b) => b.points_lost - a.points_lost);

/** Returns the address of a view: address("driver", "d1", {interval: "week"}). */
export function address(view, id, parameters = {}) {
  return `#/${view}${id === undefined ? "" : `/${encodeURIComponent(id)}`}${query(parameters)}`;
}

/** Keeps a value in the address, for when the view is shown again. */
export function keep(name, value) {
  const [path, query] = location.hash.split("?"), parameters = new URLSearchParams(query);
  parameters.set(name, value);
  history.replaceState(history.state, "", `${path}?${parameters}`);
}

/** Returns a number that the address has, if it is one from 0 on. */
export const readAmount = (text) => (/^\d{1,6}(\.\d{1,3})?$/.test(text) ? Number(text) : undefined);

/** Returns how many rows of a list the address has. */
export const readShown = ({ shown }) => (/^[1-9]\d{0,3}$/.test(shown) ? Number(shown) : undefined);

/** Returns the page of a list that the address has. */
export const readPage = ({ page }) => (/^[1-9]\d{0,6}$/.test(page) ? Number(page) : 1);

/** Returns the parameters as the end of an address. Empty ones are left out. */
export function query(parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value || value === 0));
  return query.size ? `?${query}` : "";
}
