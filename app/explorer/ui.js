// Elements of the page. All text is written as text nodes, so names of the data are never read as HTML.

import { isOfDriver, loadModule } from "./api.js";
import * as format from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const LABEL_MS = 4000;
const MAX_AMOUNT = 999_999;
const NO_DATA = "The data is not available", NO_RESPONSE = "The service does not respond.";
// The titles of errors by status, and what to say of those that pass.
const ERRORS = {
  0: ["No connection to the service", NO_RESPONSE],
  400: ["This address does not work"],
  404: ["Not found"],
  429: ["Too many requests", "The request limit is used up."],
  502: [NO_DATA, NO_RESPONSE],
  503: [NO_DATA, "The database does not respond."],
  504: [NO_DATA, NO_RESPONSE],
};

const isGiven = (value) => value !== undefined && value !== null && value !== false;

/** Returns the words for drivers, who look at their own data, or those for people who look at a fleet. */
export const words = (own, others) => (isOfDriver() ? own : others);

/** Returns an element. `attributes` may have listeners (onclick); children are elements, texts, or lists of them. */
export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes) => fill(document.createElementNS(SVG, tag), attributes, []);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes).filter(([, value]) => isGiven(value))) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(isGiven));
  return element;
}

/** Returns a bar of a size in percent. The policy of the page forbids style attributes. */
export function bar(className, percent, ...children) {
  const element = el("i", { class: className }, children);
  element.style.setProperty("--percent", `${percent}%`);
  return element;
}

export const heading = (...content) => el("h1", { tabindex: -1 }, content);
export const visuallyHidden = (text) => el("span", { class: "visually-hidden" }, text);
export const empty = (...content) => el("p", { class: "empty" }, content);

/** Returns a name, isolated from the direction of the text around it. In a list, it is cut if it is long. */
export const nameNode = (text) => el("bdi", { class: "name", title: text }, text);

export const name = (driver) => nameNode(format.driverName(driver));

/** Returns the alias and the id, if the name does not show them. */
export const aliases = (driver) => [driver.alias, driver.driver_id]
  .filter((text) => format.isVisible(text) && text !== format.driverName(driver))
  .map((text, number) => [number > 0 && " · ", nameNode(text)]);

/** Returns the score of a summary with its grade, or with the reason why it has none, if it is doubtful. */
export const grade = ({ fm_score: score, fm_grade: grade, isDoubtful }) =>
  el("span", { class: `grade ${isDoubtful ? "" : grade}` }, el("b", {}, format.score(score)),
    isDoubtful ? " data look wrong" : ` ${grade}`);

/** Returns the change of a summary's score against the one before, which may be undefined. */
export const scoreChange = (summary, before, none) => (summary.isDoubtful || before?.isDoubtful
  ? el("span", { class: "change" }, `not compared${summary.isDoubtful ? "" : ": data before look wrong"}`)
  : change(summary.fm_score, before?.fm_score, none));

/** Returns the change of points, as they are shown, against those before, which may be undefined, or `none`. */
export function change(score, before, none = "no change") {
  const points = format.difference(score, before), word = points < 0 ? "worse" : "better";
  if (!points) return el("span", { class: "change" }, before === undefined ? "no score before" : none);
  return el("span", { class: `change ${word}` }, el("span", { "aria-hidden": "true" }, points < 0 ? "▼ " : "▲ "),
    visuallyHidden(`${word} by `), format.score(Math.abs(points)));
}

/** Returns what each behaviour cost, the costliest first. To be listened to, the sign is a word. */
export const describeLosses = (behaviours, sign = "minus ") => format.findLosses(behaviours).map((loss) =>
  `${format.LABELS[loss.behaviour]} ${sign}${format.score(loss.points_lost)}`);

/** Returns how often and how long: "12 times, 9 min". */
export const extent = ({ count, seconds }) =>
  format.count(count, "time") + (seconds ? `, ${format.duration(seconds)}` : "");

/** Returns a rate in words: "4.8 per 100 miles". */
export const rate = ({ seconds, rate: value }) => (seconds === null
  ? `${format.number(value / format.inUnits(1), 1)} per 100 ${format.unitsName}`
  : `${format.number(100 * value, 1)} % of the driving time`);

/** Returns a link for each option, [label, href, isCurrent]. */
export const choice = (label, options) =>
  el("nav", { class: "choice", "aria-label": label }, options.map(([text, href, isCurrent]) =>
    el("a", { href, id: `${label}-${text}`.replace(/\W/g, "-"), "aria-current": isCurrent && "true" }, text)));

/** Returns links to the thing before and the one after, if there are some. */
export function stepper(thing, text, previous, next) {
  const step = (label, sign, href) => el("a", { class: "button", id: `${label}-${thing}`, href, role: "link",
    "aria-label": `${label} ${thing}`, "aria-disabled": !href && "true", tabindex: !href && 0 }, sign);
  return el("div", { class: "stepper" },
    step("Previous", "‹", previous), text && el("b", {}, text), step("Next", "›", next));
}

/** Returns the number of the page of a list and links to its neighbours, if the list has more pages than one. */
export const pages = (page, count, limit, link, next) => count > limit
  && el("nav", { class: "pages", "aria-label": "Pages" },
    stepper("page", `Page ${format.number(page)} of ${format.number(Math.ceil(count / limit))}`,
      page > 1 && link(page - 1), next && link(next)));

/** Returns what colours mean: items are [class, label]. */
export const legend = (items) =>
  el("ul", { class: "legend" }, items.map(([className, label]) => el("li", {}, el("i", { class: className }), label)));

/** Returns what the colours of behaviours mean, and what each cost, of the losses that are given. */
export const behaviourLegend = (losses = [], ...more) => legend([...Object.entries(format.LABELS).map(
  ([behaviour, label]) => [behaviour, [label, format.findLosses(losses).filter((loss) => loss.behaviour === behaviour)
    .map((loss) => el("b", {}, ` −${format.score(loss.points_lost)}`))]]), ...more]);

export const tiles = (...pairs) => el("dl", { class: "tiles" }, pairs.filter(isGiven).map(([term, ...values]) =>
  el("div", {}, el("dt", {}, term), el("dd", {}, values.map((value, number) => [number > 0 && " ", value])))));

export const table = (className, columns, rows) => el("table", { class: className },
  el("thead", {}, el("tr", {}, columns.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, rows));

/** Returns a box for an amount in miles or miles per hour, or in seconds, with its label; `link` makes an address. */
export function amountBox(id, [before, after], value, perUnit, link) {
  const round = (number, digits) => Number(number.toFixed(digits)), shown = value && round(value * perUnit, 2);
  const input = el("input", { id, type: "number", min: 0, max: MAX_AMOUNT, step: "any", value: shown, onchange: choose });
  function choose() {
    if (input.reportValidity()) location.hash = link(input.value && round(input.value / perUnit, 3));
  }
  return el("label", { class: "inline" }, before, " ", input, ` ${after}`);
}

/** Returns whose map tiles there are, as their licences demand. */
export const mapAttribution = () => format.settings.map_tiles_attribution
  && el("p", { class: "attribution quiet" }, format.settings.map_tiles_attribution);
export const gridNote = () => !format.settings.map_tiles_url
  && "The grid is no map. If the service has the setting MAP_TILES_URL, there is one in its place. ";

/** Returns the labels of an axis from top to bottom, at equal distances. */
export const scale = (labels) =>
  el("div", { class: "scale", "aria-hidden": "true" }, labels.map((label) => el("span", {}, format.number(label))));

/**
 * Returns a button that says for a moment whether its action, which is asynchronous, succeeded or found nothing.
 * `about` is the id of what it is about, if its label does not say that.
 */
export function actionButton(label, done, action, about) {
  const attributes = { class: "small", onclick: run, "aria-live": "polite", "aria-describedby": about };
  const button = el("button", attributes, label);
  async function run() {
    button.textContent = await action().then(() => done, describeFailure);
    setTimeout(() => { button.textContent = label; }, LABEL_MS);
  }
  return button;
}

/**
 * Returns a button that saves a list, and says how far it is, what went wrong, or how many rows were saved. `total` is how
 * many rows the API has, if that is known; the rest is what `download` takes.
 */
export function csvButton(label, parts, segments, query, { total, ...more } = {}) {
  const output = el("output", { class: "quiet" });
  let isBusy = false;
  async function run() {
    if (isBusy) return;
    isBusy = true;
    output.textContent = "Downloading";
    const of = total === undefined ? "" : ` of ${format.number(total)}`;
    const showRead = (read) => { output.textContent = `${format.number(read)}${of} rows`; };
    output.textContent = await loadModule(() => import("./download.js"))
      .then(({ download }) => download(parts, segments, query, showRead, more))
      .then((count) => `${format.count(count, "row")} saved`, describeFailure);
    isBusy = false;
  }
  return el("p", { class: "downloads" }, el("button", { class: "small", onclick: run }, label), " ", output);
}

export function describeFailure({ status, message, retryAfterSeconds }) {
  if (status === 429) return `Too many requests. Try again in ${format.count(retryAfterSeconds, "second")}.`;
  return status === 404 ? message : "This failed. Try again.";
}

/** Shows the seconds that are left, and calls `done` after them, unless the output is gone. */
function countDown(output, seconds, done) {
  output.textContent = format.count(seconds, "second");
  if (seconds <= 0) done();
  else setTimeout(() => output.isConnected && countDown(output, seconds - 1, done), 1000);
}

/** Returns a link to the first view. */
export const homeLink = () => el("a", { href: "#/fleet" }, words("Go to your score", "Go to the fleet"));

/** Returns the notice of an error: what happened, and what to do. `retry` is called by a button, and after a wait. */
export function errorNotice({ status, message, retryAfterSeconds, requestId }, retry) {
  const [title, temporary] = ERRORS[status] || ["Something went wrong"], left = el("b", {});
  // The same request would lead to the same error.
  const isFinal = !temporary && status >= 400 && status < 500;
  if (temporary) countDown(left, retryAfterSeconds, retry);
  return el("section", { class: "notice" }, heading(title),
    temporary ? el("p", {}, `${temporary} The page tries again in `, left, ".") : el("p", {}, message),
    requestId && el("p", { class: "quiet" }, "Request id: ", el("code", {}, requestId)),
    el("p", {}, !isFinal && [el("button", { class: "main", id: "retry", onclick: retry }, "Try again"), " "],
      homeLink()));
}
