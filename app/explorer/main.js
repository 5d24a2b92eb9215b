// The page: signs in, and shows the view that the address names.

import * as api from "./api.js";
import * as format from "./format.js";
import { actionButton, el, errorNotice, heading } from "./ui.js";

const VIEWS = {
  fleet: () => import("./fleet.js"),
  events: () => import("./events.js"),
  trips: () => import("./trips.js"),
  idle: () => import("./idle.js"),
  driver: () => import("./driver.js"),
  trip: () => import("./trip.js"),
  search: () => import("./search.js"),
  compare: () => import("./compare.js"),
  reports: () => import("./reports.js"),
};
const VIEWS_OF_DRIVER = ["driver", "trip"];
const KEY_FRAGMENT = "#key=";
const KEY_QUESTION = "The link that you opened has another key. Use it in this tab? " +
  "A key that you keep on this device stays there.";
const STAYS = "A bookmark of this page shows these dates, or always the last ones.";
const find = (id) => document.getElementById(id);
const main = find("main");
// The view that is shown or loading: its path, whether it only changes, where its page was scrolled to before, the link
// by which it was left, a note about its address, and the dates that it shows.
let shown = {};

/**
 * Takes a key out of the address, for this tab. The browser keeps it all the same: only the link of the demonstration
 * has a key. Anybody may send a link, so it does not replace another key without a question.
 */
function takeKey() {
  if (!location.hash.startsWith(KEY_FRAGMENT)) return;
  const key = location.hash.slice(KEY_FRAGMENT.length), current = api.getKey();
  history.replaceState(null, "", "#/fleet");
  if (!key || key === current || (current && !confirm(KEY_QUESTION))) return;
  api.setKey(key, { isLink: true });
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new api.ApiError(400, { message: "A % in an address is written as %25." });
  }
}

/** Shows the view of the address #/view/id?parameters. */
async function show() {
  takeKey();
  api.startView();
  if (!api.getKey()) return showSignIn();
  const [path, query] = (location.hash.slice(2) || "fleet").split(/\?(.*)/s), [view, id = ""] = path.split(/\/(.*)/s);
  const { scroll = 0, link } = history.state ?? {}, current = { path, isSameView: path === shown.path, scroll, link };
  shown = current;
  const render = (...content) => current === shown && replace(...content);
  main.setAttribute("aria-busy", "true");
  find("status").textContent = "Loading";
  const context = { parameters: Object.fromEntries(new URLSearchParams(query)), render };
  context.settle = (values, stays) => settle(current, context.parameters, values, stays);
  await openView(current, view, id, context).catch((error) => {
    // A driver key opens neither the fleet nor another driver.
    if (current === shown && api.isOfDriver() && [403, 404].includes(error.status)) return goToOwn(current);
    throw error;
  }).catch((error) => current === shown && showError(error));
}

async function openView(current, view, id, context) {
  // The view of the fleet says how recent the data are.
  const fleet = await api.learnScope(view === "fleet");
  find("zone").textContent = `Dates and times are in ${format.zone}.`;
  const views = api.isOfDriver() ? VIEWS_OF_DRIVER : Object.keys(VIEWS);
  if (!views.includes(view)) throw new api.ApiError(404, { message: "There is no such view." });
  const module = await api.loadModule(VIEWS[view]);
  if (current === shown) await module.show({ id: decode(id), fleet, ...context });
}

/** Goes to the driver whom the key is of, if there is one. */
async function goToOwn(current) {
  const { drivers: [driver] } = await api.fetchJson(["drivers"], { limit: 1 }, { mask: "{drivers{driver_id}}" });
  if (current !== shown) return;
  if (!driver) {
    replace(heading("No data about you"),
      el("p", {}, "This service has no data about you any more. Ask the people who gave you the key."));
  } else {
    history.replaceState(null, "", format.address("driver", driver.driver_id));
    await show();
  }
}

/**
 * Returns the parameters with the values that the view shows. If others were in the address, a note says so. A view with
 * dates names them: as `text`, and as the parameters that are them. The address gets these, so that it shows the same
 * later, or, if its first one is the word `last`, keeps that. `label` says which dates that always shows.
 */
function settle(view, parameters, values, { text, dates = {}, last, label } = {}) {
  const [name] = Object.keys(dates), isMoving = last && parameters[name] === last;
  const moving = { [name]: last, end: undefined };
  const [kept, others] = isMoving ? [moving, dates] : [dates, moving];
  const known = new Map(Object.entries({ ...values, ...kept }));
  const names = [...new Set([...Object.keys(parameters), ...Object.keys(kept)])];
  const settled = Object.fromEntries(names.map((each) => [each, known.get(each)]));
  if (view !== shown) return settled;
  const link = (changed) => `#/${view.path}${format.query({ ...settled, ...changed })}`;
  history.replaceState(history.state, "", link());
  Object.assign(view, { text, stays: last && el("span", { class: "stays" }, isMoving && `${label}. `,
    el("a", { id: "stays", class: "button small", href: link(others), title: STAYS }, isMoving ? "Keep these dates" : label)) });
  const wrong = Object.keys(parameters).filter((each) => String(settled[each]) !== parameters[each]);
  const texts = wrong.map((each) => `${each}=${parameters[each]}`).join(", ");
  view.note = wrong.length > 0 && el("p", { class: "note" }, "The address had ", el("code", {}, texts),
    ", which cannot be shown. This is shown instead.", Object.keys(dates).some((each) => parameters[each] < format.oldestDate()) && ` ${format.SIX_MONTHS}.`);
  return settled;
}

/**
 * Replaces the content. The focus goes to the heading, or back to the link by which the view was left; within a view,
 * it and the scroll position stay.
 */
function replace(...content) {
  const { isSameView, scroll, link, note, text, stays } = shown;
  const active = document.activeElement, isLost = !isSameView || main.contains(active);
  main.replaceChildren(...el("div", {}, ...content).childNodes);
  main.removeAttribute("aria-busy");
  for (const id of ["forget", "zone"]) find(id).hidden = !api.getKey();
  find("fleet").textContent = api.fleetName();
  find("search").hidden = !api.getKey() || api.isOfDriver();
  find("about").hidden = api.isOfDriver();
  const title = main.querySelector("h1"), links = [...main.querySelectorAll("a")];
  const lead = main.querySelector(":scope > .lead");
  if (stays && lead) lead.append(" ", stays);
  else if (stays) title.after(stays);
  if (note) title.after(note);
  const what = [title.textContent, text].filter(Boolean).join(", ");
  document.title = `${api.fleetName() ?? "Driver Analytics"} – ${what}`;
  find("status").textContent = `${title.textContent} is loaded`;
  if (!isSameView) scrollTo(0, scroll);
  const left = links.find((a) => a.getAttribute("href") === link);
  const target = (isSameView && find(active.id)) || (isLost && (left || title));
  if (target) target.focus({ preventScroll: true });
}

function showError(error) {
  if (error.status === 401) {
    api.forgetKey();
    return showSignIn("The service refused this key. It may be mistyped, expired or revoked.");
  }
  if (!(error instanceof api.ApiError)) console.error(error);
  // A retry that fails leaves the focus where it is.
  Object.assign(shown, { isSameView: find("retry") !== null, text: undefined, stays: undefined });
  replace(errorNotice(error, () => (error.status === 0 ? api.reload(show) : show())));
}

function showSignIn(message) {
  shown = { scroll: 0 };
  const input = el("input", { id: "key", type: "password", autocomplete: "off", required: true, placeholder: "da_…",
    "aria-describedby": message && "key-message", "aria-invalid": message && "true" });
  const keep = el("input", { type: "checkbox" });
  const form = el("form", { class: "sign-in", onsubmit: signIn },
    message && el("p", { id: "key-message", class: "message", role: "alert" }, message),
    el("label", { for: "key" }, "API key"),
    el("div", { class: "row" }, input, el("button", { class: "main" }, "Open")),
    el("p", {}, el("label", {}, keep, " Keep the key on this device")));
  function signIn(event) {
    event.preventDefault();
    api.setKey(input.value, { isKept: keep.checked });
    show();
  }
  replace(heading("Look at your fleet, or your own driving"),
    el("p", { class: "lead" }, "A fleet's key shows who needs coaching, about what, and where it happened. ",
      "A driver's key shows your own score, what costs you points, and your trips."),
    form, el("p", { class: "quiet" }, "A key that you enter opens all tabs of this browser until you close them or press Forget key in one. ",
      "If you keep it on this device, it stays until you press Forget key, ",
      "for whoever uses the browser. Put no key into a link: the history of the browser shows it. ",
      "The operator of this service issues keys. ",
      "For the demonstration fleet, ", el("code", {}, "make run"), " prints a link that opens this page."));
}

function showRequests() {
  find("requests").querySelector("summary").textContent = `API requests of this view (${api.requests.size})`;
  find("requests").querySelector("ol").replaceChildren(...[...api.requests].map(([curl, path]) => el("li", {},
    el("code", {}, decodeURI(path)),
    actionButton("Copy as curl", "Copied", async () => navigator.clipboard.writeText(curl)))));
}

// An address leads to a view.
find("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.querySelector("h1").focus();
});
find("forget").addEventListener("click", () => {
  api.forgetKey();
  history.replaceState(null, "", "#/fleet");
  show();
});
find("search").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = `#/search/${encodeURIComponent(find("search-text").value.trim())}`;
});
// The content is not there yet when a browser would restore the scroll position.
history.scrollRestoration = "manual";
addEventListener("scrollend", () => history.replaceState({ ...history.state, scroll: scrollY }, ""));
main.addEventListener("click", ({ target }) => {
  const link = target.closest("a")?.getAttribute("href");
  if (link) history.replaceState({ scroll: scrollY, link }, "");
});
// Whoever selects something may copy it.
document.addEventListener("selectionchange", () => api.loadModule(() => import("./download.js")).catch(() => {}), { once: true });
find("units").value = format.unitsName;
find("units").addEventListener("change", ({ target }) => {
  format.setUnits(target.value);
  show();
});
// A browser that cannot repeat a text on each page has it at the top of the first one.
const paper = new CSSStyleSheet();
document.adoptedStyleSheets.push(paper);
addEventListener("beforeprint", () => {
  const printed = `Printed ${format.moment(format.now())}. Dates and times are in ${format.zone}.`;
  const text = [api.fleetName(), printed].filter(Boolean).join(" · ");
  find("paper").textContent = text;
  find("paper").hidden = Boolean(globalThis.CSSMarginRule);
  paper.replaceSync(`@page { @top-left { content: ${JSON.stringify(text)}; font: 9pt sans-serif; } }`);
});
addEventListener("requests", showRequests);
addEventListener("hashchange", show);
takeKey();
await api.askTabs();
show();
