// The page: signs in, and shows the view that the address names.

import * as api from "./api.js";
import { copyButton, el, errorNotice, heading } from "./ui.js";

const VIEWS = {
  fleet: () => import("./fleet.js"),
  driver: () => import("./driver.js"),
  trip: () => import("./trip.js"),
  search: () => import("./search.js"),
};
const KEY_FRAGMENT = "#key=";
const find = (id) => document.getElementById(id);
const main = find("main");
let shown = { number: 0, path: "" };

/** Takes a key out of the address at once: it must not stay in the address bar or in a bookmark. */
function takeKey() {
  if (!location.hash.startsWith(KEY_FRAGMENT)) return;
  const key = location.hash.slice(KEY_FRAGMENT.length);
  history.replaceState(null, "", "#/fleet");
  api.setKey(key);
}

/** Returns the view, id and parameters of the address #/view/id?parameters. */
function readAddress() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view, ...rest] = (path || "fleet").split("/");
  const parameters = Object.fromEntries(new URLSearchParams(query));
  try {
    return { path, view, id: decodeURIComponent(rest.join("/")), parameters };
  } catch {
    return { path, view: "", id: "", parameters };
  }
}

/** Shows the view of the address. */
async function show() {
  takeKey();
  api.startView();
  const { path, view, id, parameters } = readAddress(), number = shown.number + 1;
  const isSameView = path === shown.path;
  shown = { number, path };
  for (const part of ["search", "forget"]) find(part).hidden = !api.hasKey();
  if (!api.hasKey()) return showSignIn();
  const render = (title, ...content) => number === shown.number && replace(title, isSameView, ...content);
  main.setAttribute("aria-busy", "true");
  find("status").textContent = "Loading";
  try {
    if (!Object.hasOwn(VIEWS, view)) throw Object.assign(new Error("There is no such view."), { status: 404 });
    const module = await api.loadModule(VIEWS[view]);
    if (number === shown.number) await module.show({ id, parameters, render });
  } catch (error) {
    if (number === shown.number && error.name !== "AbortError") showError(error);
  }
}

/** Replaces the content. The focus goes to the heading; within a view, it and the scroll position stay. */
function replace(title, isSameView, ...content) {
  const active = document.activeElement, focused = isSameView && active.id, isLost = !isSameView || main.contains(active);
  document.title = `${title} · Driver Analytics`;
  main.replaceChildren(...el("div", {}, ...content).childNodes);
  main.removeAttribute("aria-busy");
  find("status").textContent = `${title} is loaded`;
  if (!isSameView) scrollTo(0, 0);
  const target = (focused && find(focused)) || (isLost && main.querySelector("h1"));
  if (target) target.focus({ preventScroll: true });
}

function showError(error) {
  if (error.status === 401) {
    api.forgetKey();
    for (const part of ["search", "forget"]) find(part).hidden = true;
    return showSignIn("The service refused this key. It may be mistyped, expired or revoked.");
  }
  if (!error.status && !(error instanceof api.NoConnection)) console.error(error);
  const notice = errorNotice(error, () => (error.retry ? error.retry(show) : show()));
  const title = `${notice.querySelector("h1").textContent} (${shown.path.split("/")[0] || "fleet"})`;
  // A retry that fails leaves the focus where it is.
  replace(title, main.querySelector("#retry") !== null, notice);
}

function showSignIn(message) {
  shown.path = "";
  const input = el("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", autocapitalize: "none", required: true,
    placeholder: "da_…", "aria-describedby": message ? "key-message" : undefined, "aria-invalid": message && "true" });
  const form = el("form", { class: "sign-in", onsubmit: signIn },
    message && el("p", { id: "key-message", class: "message", role: "alert" }, message),
    el("label", { for: "key" }, "API key"), 
    el("div", { class: "row" }, input, el("button", { class: "main" }, "Open the fleet")));
  function signIn(event) {
    event.preventDefault();
    api.setKey(input.value);
    show();
  }
  replace("Sign in", false, heading("Look at your fleet"),
    el("p", { class: "lead" }, "Who needs coaching, about what, and where did it happen? Paste the key of your fleet."), form,
    el("p", { class: "quiet" }, "The key stays in this tab until you close it or press Forget key. ",
      "Whoever runs this service issues keys. For the demonstration fleet, ", el("code", {}, "make run"),
      " prints a link that opens this page with the key."));
}

function showRequests() {
  const box = find("requests");
  box.hidden = api.requests.length === 0;
  box.querySelector("summary").textContent = `API requests of this view (${api.requests.length})`;
  box.querySelector("ol").replaceChildren(...api.requests.map((request) => el("li", {},
    el("code", {}, decodeURI(request.url.replace(location.origin, ""))),
    copyButton("Copy as curl", () => api.writeCurl(request)))));
}

find("forget").addEventListener("click", () => {
  api.forgetKey();
  history.replaceState(null, "", "#/fleet");
  show();
});
find("search").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = `#/search/${encodeURIComponent(find("search-text").value.trim())}`;
});
addEventListener("requests", showRequests);
addEventListener("hashchange", show);
show();
