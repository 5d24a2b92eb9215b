// Numbers, times, dates and names as text, and the addresses of views. Times and dates are UTC.

export const settings = JSON.parse(document.querySelector("meta[name=explorer-settings]").content);
const LABELS = {
  phone_use: "Phone use",
  overspeeding: "Overspeeding",
  hard_brake: "Hard braking",
  rapid_acceleration: "Rapid acceleration",
};
export const BEHAVIOURS = settings.behaviours.map((behaviour) => ({ ...behaviour, label: LABELS[behaviour.name] }));
const MS_PER_DAY = 86_400_000;

const dateFormat = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
const DAY = dateFormat({ weekday: "short", day: "numeric", month: "short", year: "numeric" });
const SHORT_DAY = dateFormat({ weekday: "short", day: "numeric", month: "short" });
const DAY_OF_MONTH = dateFormat({ day: "numeric", month: "short" });
const MONTH = dateFormat({ month: "long", year: "numeric" });
const SHORT_MONTH = dateFormat({ month: "short" });
const TIME = dateFormat({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const CLOCK = dateFormat({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

export const time = (ms) => TIME.format(ms);
export const clock = (ms) => CLOCK.format(ms);
export const day = (ms) => DAY.format(ms).replace(",", "");
export const shortDay = (ms) => SHORT_DAY.format(ms).replace(",", "");
const COMPACT = { notation: "compact", maximumSignificantDigits: 4 };
export const number = (value, digits = 0) => value.toLocaleString("en",
  Math.abs(value) >= 1e6 ? COMPACT : { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const score = (value) => number(value, 1);
export const miles = (value) => `${number(value, value < 100 ? 1 : 0)} mi`;
export const share = (part, whole) => (whole > 0 ? `${number((100 * part) / whole)} %` : "–");
export const count = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Returns a position, [latitude, longitude]; on a line that crosses the antimeridian, longitudes go on past 180. */
export const position = ([latitude, longitude]) =>
  `${latitude.toFixed(5)}, ${(longitude - 360 * Math.round(longitude / 360)).toFixed(5)}`;

/** Returns the processing delay, or nothing if there is none. */
export const delay = () => settings.processing_delay_hours > 0 && count(settings.processing_delay_hours, "hour");

export function duration(seconds) {
  const whole = Math.round(seconds), minutes = Math.round(whole / 60);
  if (whole < 60) return `${whole} s`;
  if (whole < 600) return `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
  if (minutes < 60) return `${minutes} min`;
  return `${number(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}

/** Returns the text by which to call a driver. */
export function driverName(driver) {
  return [driver.first_name, driver.last_name].filter(Boolean).join(" ") || driver.alias || driver.driver_id;
}

// Dates are texts such as 2026-03-18, as in the API. A period is a day, week or month.
export const dateOf = (ms) => new Date(ms).toISOString().slice(0, 10);
// By how much the clock of the service is ahead of the browser's, which may be wrong.
let aheadMs = 0;
export const setClock = (httpDate) => { aheadMs = (Date.parse(httpDate) || Date.now()) - Date.now(); };
export const today = () => dateOf(Date.now() + aheadMs);
export const yesterday = () => addDays(today(), -1);
export const addDays = (date, days) => dateOf(Date.parse(date) + days * MS_PER_DAY);
export const addMonths = (date, months) => {
  const [year, month] = date.split("-").map(Number);
  return dateOf(Date.UTC(year, month - 1 + months, 1));
};

/** Returns the first date of the period with this date. */
export function startOf(period, date) {
  if (period === "month") return addMonths(date, 0);
  return addDays(date, period === "week" ? -((new Date(date).getUTCDay() + 6) % 7) : 0);
}

/** Returns the first date of the period so many periods later. */
export function shift(period, start, count) {
  return period === "month" ? addMonths(start, count) : addDays(start, count * (period === "week" ? 7 : 1));
}

/** Returns the earliest date that the API serves: six months ago, or the last day of that month if it is shorter. */
export function oldestDate() {
  const month = addMonths(today(), -6), sameDay = addDays(month, Number(today().slice(8)) - 1);
  return startOf("month", sameDay) === month ? sameDay : addDays(addMonths(month, 1), -1);
}

/** Returns the first date of the earliest period that the API serves: a month whole, a week only if it is whole. */
export function oldestStart(period) {
  const oldest = oldestDate(), start = startOf(period, oldest);
  return period === "month" || start === oldest ? start : shift(period, start, 1);
}

export const lastFullPeriod = (period) => shift(period, startOf(period, today()), -1);
export const isDate = (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));
/** Returns the first date of the period with this date, or of the nearest period that a ranking can be of. */
export function nearestStart(period, text) {
  const oldest = oldestStart(period), newest = startOf(period, yesterday());
  if (!isDate(text)) return lastFullPeriod(period);
  const start = text < oldest ? oldest : text > newest ? newest : startOf(period, text);
  return start < oldest ? oldest : start;
}

export const isPeriodStart = (period, text) => isDate(text) && startOf(period, text) === text;

export function period(period, start) {
  const first = new Date(start), last = new Date(addDays(shift(period, start, 1), -1));
  if (period === "month") return MONTH.format(first);
  if (period === "day") return day(first);
  const from = first.getUTCMonth() === last.getUTCMonth() ? first.getUTCDate() : DAY_OF_MONTH.format(first);
  return `${from} – ${DAY_OF_MONTH.format(last)} ${last.getUTCFullYear()}`;
}

export const shortPeriod = (period, start) =>
  (period === "month" ? SHORT_MONTH : DAY_OF_MONTH).format(new Date(start));

/** Returns what each behaviour cost in a summary: the BehaviourExplanation of the API, the costliest first. */
export function explain(summary) {
  const events = summary.events_summary;
  return sortByCost(BEHAVIOURS.map((behaviour) => {
    const total = summary[behaviour.denominator];
    const rate = total > 0 ? (behaviour.factor * events[behaviour.numerator]) / total : 0;
    const seconds = behaviour.numerator.endsWith("_seconds") ? events[behaviour.numerator] : null;
    return {
      behaviour: behaviour.name, count: events[`${behaviour.name}_count`], seconds, rate, weight: behaviour.weight,
      points_lost: behaviour.weight * Math.min(1, rate / behaviour.cap),
    };
  }));
}

export const sortByCost = (behaviours) => [...behaviours].sort((a, b) => b.points_lost - a.points_lost);
export const labelOf = (name) => LABELS[name];

/** Returns the address of a view: address("driver", "d1", {interval: "week"}). Empty parameters are left out. */
export function address(view, id, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  const query = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${view}${id === undefined ? "" : `/${encodeURIComponent(id)}`}${query}`;
}
