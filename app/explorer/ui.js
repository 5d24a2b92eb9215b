// Elements of the page. All text is written as text nodes, so names of the data are never read as HTML.

import { NoConnection } from "./api.js";
import * as format from "./format.js";

const RETRY_SECONDS = 5;
const SVG = "http://www.w3.org/2000/svg";

/** Returns an element. `attributes` may have listeners (onclick); children are elements, texts, or lists of them. */
export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

/** Returns an element with a size in percent: {height: 40}. The policy of the page forbids style attributes. */
export function sized(element, sizes) {
  for (const [name, percent] of Object.entries(sizes)) element.style[name] = `${percent}%`;
  return element;
}

export const heading = (...content) => el("h1", { tabindex: -1 }, ...content);
export const unseen = (text) => el("span", { class: "unseen" }, text);

/** Returns a driver's name, isolated from the direction of the text around it. */
export const name = (driver) => el("bdi", {}, format.driverName(driver));

/** Returns the alias and the id, if the name does not show them. */
export function aliases(driver) {
  const shown = format.driverName(driver);
  const others = [driver.alias && `“${driver.alias}”`, driver.driver_id];
  return others.filter((text) => text && ![shown, `“${shown}”`].includes(text)).map((text, number) =>
    [number ? " · " : "", el("bdi", {}, text)]);
}

export const grade = (summary) =>
  el("span", { class: `grade ${summary.fm_grade}` }, el("b", {}, format.score(summary.fm_score)), ` ${summary.fm_grade}`);

/** Returns the change of a score against the period before. */
export function change(score, before) {
  if (before === undefined) return el("span", { class: "change" }, "no score before");
  const points = Math.round((score - before) * 10) / 10;
  const [className, sign, word] = points < 0 ? ["worse", "▼", "worse by"] : ["better", "▲", "better by"];
  if (!points) return el("span", { class: "change" }, "no change");
  return el("span", { class: `change ${className}` }, el("span", { "aria-hidden": "true" }, `${sign} `), unseen(`${word} `),
    format.score(Math.abs(points)));
}

/** Returns a bar of 100 points with what each behaviour cost. */
export function lossBar(behaviours) {
  const parts = behaviours.filter(({ points_lost }) => points_lost > 0).map(({ behaviour, points_lost }) =>
    sized(el("i", { class: behaviour }), { width: points_lost }));
  return el("span", { class: "loss-bar", "aria-hidden": "true" }, parts);
}

/** Returns how often and how long: "12 times, 9 min". */
export function extent({ count, seconds }) {
  return format.count(count, "time") + (seconds ? `, ${format.duration(seconds)}` : "");
}

/** Returns links of which one is the current choice: options are [label, href, isCurrent]. */
export const choice = (label, options) =>
  el("nav", { class: "choice", "aria-label": label }, options.map(([text, href, isCurrent]) =>
    el("a", { href, id: `${label}-${text}`.replace(/\W/g, "-"), "aria-current": isCurrent && "true" }, text)));

/** Returns a link with a sign, such as ‹, that goes nowhere without `href`. */
export const step = (id, sign, label, href) => el("a", { class: "button", id, href, role: "link",
  "aria-disabled": href === undefined && "true" }, el("span", { "aria-hidden": "true" }, sign), unseen(label));

export const legend = () => el("ul", { class: "legend" }, format.BEHAVIOURS.map((behaviour) =>
  el("li", {}, el("i", { class: behaviour.name }), behaviour.label)));

export const tiles = (...pairs) => el("dl", { class: "tiles" }, pairs.filter(Boolean).map(([term, ...values]) =>
  el("div", {}, el("dt", {}, term), el("dd", {}, values.map((value, number) => [number ? " " : "", value])))));

/** Returns a message that takes the place of content. */
export const notice = (title, ...content) => el("section", { class: "notice" }, heading(title), ...content);
export const empty = (...content) => el("p", { class: "empty" }, ...content);

/** Returns a button that writes text to the clipboard. */
export function copyButton(label, getText) {
  const button = el("button", { class: "small", onclick: copy }, label);
  async function copy() {
    const copied = await navigator.clipboard.writeText(getText()).then(() => true, () => false);
    button.textContent = copied ? "Copied" : "The browser does not allow it";
    setTimeout(() => { button.textContent = label; }, 2000);
  }
  return button;
}

const retryButton = (retry) => el("button", { class: "main", id: "retry", onclick: retry }, "Try again now");

/** Returns a notice that counts the seconds and then calls `retry`, unless the notice is gone. */
function waitNotice(title, text, seconds, retry) {
  const left = el("b", {}, format.count(seconds, "second"));
  const node = notice(title, el("p", {}, `${text} The page tries again in `, left, "."), retryButton(retry));
  const end = Date.now() + seconds * 1000;
  const timer = setInterval(() => {
    const remaining = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    left.textContent = format.count(remaining, "second");
    if (!node.isConnected) clearInterval(timer);
    else if (!remaining) retry(clearInterval(timer));
  }, 250);
  return node;
}

/** Returns the notice of an error: what happened, and what to do. */
export function errorNotice(error, retry) {
  const wait = (title, text, seconds = error.retryAfterSeconds) => waitNotice(title, text, seconds, retry);
  const noResponse = "The service does not respond.";
  if (error instanceof NoConnection) return wait("No connection to the service", noResponse, RETRY_SECONDS);
  if (error.status === 429) return wait("Too many requests", "The request limit is used up.");
  if (error.status === 503) return wait("The data is not available", "The database does not respond.");
  if ([502, 504].includes(error.status)) return wait("The data is not available", noResponse);
  const reasons = Object.entries(error.reasons || {}).map(([name, texts]) => el("li", {}, `${name}: ${texts.join(" ")}`));
  const title = { 400: "This address does not work", 404: "Not found" }[error.status] || "Something went wrong";
  return notice(title, el("p", {}, error.message), reasons.length > 0 && el("ul", {}, reasons),
    error.requestId && el("p", { class: "quiet" }, "Request id: ", el("code", {}, error.requestId)),
    el("p", {}, el("a", { href: "#/fleet" }, "Go to the fleet"), " or ",
      el("button", { class: "small", onclick: retry }, "try again")));
}
