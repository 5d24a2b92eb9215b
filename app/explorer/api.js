// Requests to the API, with the key of this tab or device. Nothing else of the page makes requests.

import * as format from "./format.js";

const STORAGE_NAME = "driver-analytics-key";
const LINK_NAME = "driver-analytics-key-is-of-link";
// Tabs of the same browser, and how long one waits for the key of another.
const tabs = new BroadcastChannel(STORAGE_NAME), OFFER_MS = 150;
const RETRY_SECONDS = 5;
const SCOPE_MASK = "{fleet,driver_id,time_zone,implausible_trips,last_trip_received_at}";
// As many rows as a page of most lists has.
export const MAX_LIMIT = 100;
// As many drivers as a window takes.
const MAX_NAMED = 20;
const NAMES_MASK = "{data{driver_info{driver_id,first_name,last_name,alias}}}";
let controller = new AbortController();
// What /fleet said of the key since the page was loaded.
let scope;
// What the current view requested: the curl command line of each request, and the path with the media type.
export const requests = new Map();

/** What went wrong with a request. The status is 0 if there was no response. */
export class ApiError extends Error {
  constructor(status, body = {}, retryAfterSeconds = RETRY_SECONDS) {
    super(body.message || `The service responded with status ${status}.`);
    Object.assign(this, { status, retryAfterSeconds, requestId: body.request_id });
  }
}

export const loadModule = (load) => load().catch(() => {
  throw new ApiError(0);
});

/** Loads the page again if the service responds, because a browser may not load a module again; or calls `show`. */
export const reload = (show) => fetch("", { method: "HEAD" }).then(() => location.reload(), show);

const STORAGES = [sessionStorage, localStorage];
/** Returns what holds the key in use: this tab, which has precedence, or this device. */
const holder = () => STORAGES.find((storage) => storage.getItem(STORAGE_NAME));

export const getKey = () => holder()?.getItem(STORAGE_NAME);
const isOfLink = () => sessionStorage.getItem(LINK_NAME) !== null;
/**
 * Uses a key in this tab. Unless it is kept, a key of this device stays for other tabs. If it is of a link, which anybody
 * may send, no tab gets it but those that are opened from this one.
 */
export function setKey(key, { isKept, isLink } = {}) {
  for (const name of [STORAGE_NAME, LINK_NAME]) sessionStorage.removeItem(name);
  (isKept ? localStorage : sessionStorage).setItem(STORAGE_NAME, key.trim());
  if (isLink) sessionStorage.setItem(LINK_NAME, "true");
  scope = undefined;
}
/** Forgets a key, in all tabs that have it. */
export function forgetKey(key = getKey()) {
  for (const storage of STORAGES.filter((each) => each.getItem(STORAGE_NAME) === key)) storage.removeItem(STORAGE_NAME);
  if (!sessionStorage.getItem(STORAGE_NAME)) sessionStorage.removeItem(LINK_NAME);
  scope = undefined;
  tabs.postMessage({ forgotten: key });
}
/** Uses the key of another tab, if this one has none: of the one in view, from which it was opened, or else of any. */
export async function askTabs() {
  if (getKey()) return;
  const offers = [], signal = AbortSignal.timeout(OFFER_MS);
  await new Promise((done) => {
    signal.addEventListener("abort", done);
    tabs.addEventListener("message", ({ data: { offer } }) => offer && offers.push(offer) && offer.isVisible && done(), { signal });
    tabs.postMessage({ isWanted: true });
  });
  const offer = offers.find(({ isVisible }) => isVisible) ?? offers[0];
  if (offer && !getKey()) setKey(offer.key, offer);
}
tabs.addEventListener("message", ({ data: { isWanted, forgotten } }) => {
  const key = sessionStorage.getItem(STORAGE_NAME), isLink = isOfLink(), isVisible = document.visibilityState === "visible";
  if (isWanted && key && (isVisible || !isLink)) tabs.postMessage({ offer: { key, isLink, isVisible } });
  if (!forgotten || getKey() !== forgotten) return;
  forgetKey(forgotten);
  dispatchEvent(new Event("hashchange"));
});
addEventListener("storage", ({ key }) => {
  if (key !== STORAGE_NAME) return;
  // Another tab forgot or replaced the key of this device.
  scope = undefined;
  dispatchEvent(new Event("hashchange"));
});

/** Whether the key is of one driver, as far as `learnScope` knows it. */
export const isOfDriver = () => typeof scope?.driver_id === "string";

/** The name of the fleet that the key opens, as far as `learnScope` knows it. */
export const fleetName = () => scope?.fleet;

/** Learns once, or again, whose the key is, and returns what the API says of the fleet. */
export async function learnScope(isAgain) {
  if (isAgain || !scope) scope = await fetchJson(["fleet"], {}, { mask: SCOPE_MASK });
  format.setZone(scope.time_zone);
  return scope;
}

/** Aborts the requests of the view before. */
export function startView() {
  controller.abort();
  controller = new AbortController();
  requests.clear();
  dispatchEvent(new Event("requests"));
}

/**
 * Returns the response. `segments` are parts of the path, `mask` is the field mask. Values of `parameters` may be lists,
 * and those that are undefined are left out.
 */
export async function fetchResponse(segments, parameters = {}, { mask, accept } = {}) {
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(parameters)) {
    for (const value of [values ?? []].flat()) query.append(name, value);
  }
  // A browser reads these as folders, even if they are encoded.
  const unusable = segments.find((segment) => ["", ".", ".."].includes(segment));
  if (unusable !== undefined) throw new ApiError(404, { message: `Nothing has the id “${unusable}”.` });
  const path = `api/v1/${segments.map(encodeURIComponent).join("/")}${query.size ? `?${query}` : ""}`;
  const url = new URL(path, document.baseURI).href;
  const headers = { ...(mask && { "X-Fields": mask }), ...(accept && { Accept: accept }) };
  requests.set(writeCurl(url, headers), `/${path}${accept ? ` (${accept})` : ""}`);
  dispatchEvent(new Event("requests"));
  const response = await send(url, headers, controller.signal), today = format.today();
  format.setClock(response.headers.get("Date"));
  // What the view requested and shows depends on the date.
  if (format.today() !== today) dispatchEvent(new Event("hashchange"));
  const body = response.ok ? {} : await response.json().catch(() => ({}));
  if (response.ok) return response;
  throw new ApiError(response.status, body, Number(response.headers.get("Retry-After")) || RETRY_SECONDS);
}

async function send(url, headers, signal) {
  // A header has only characters of Latin-1, and somebody may paste anything.
  const Authorization = `APIKEY ${encodeURI(getKey())}`;
  return fetch(url, { headers: { ...headers, Authorization }, signal }).catch(() => {
    throw new ApiError(0);
  });
}

/** Returns the JSON of the response. */
export async function fetchJson(...request) {
  return (await fetchResponse(...request)).json();
}

/** Yields the pages of a driver's trips from a date on, oldest first, with these fields. */
export async function* fetchTripPages(id, date, fields) {
  const query = { start_date: date, limit: MAX_LIMIT }, mask = `{next_page,trips{${fields}}}`;
  for (let page = 1; page;) {
    const { trips, next_page: next } = await fetchJson(["driver", id, "trips"], { ...query, page }, { mask });
    yield trips;
    page = next;
  }
}

/** Returns the drivers with these ids, by id. */
export async function fetchDrivers(ids) {
  const rest = [...new Set(ids)], parts = [];
  while (rest.length) parts.push(rest.splice(0, MAX_NAMED));
  const responses = await Promise.all(parts.map((part) => fetchJson(["driver-aggregate", "window"],
    { start_date: format.today(), driver_id: part }, { mask: NAMES_MASK })));
  return new Map(responses.flatMap(({ data }) => data.map(({ driver_info: driver }) => [driver.driver_id, driver])));
}

/** Returns the curl command line of a request; the key is in the variable KEY. */
function writeCurl(url, headers) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const options = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)} `);
  return `curl --compressed -H "Authorization: APIKEY $KEY" ${options.join("")}${quote(url)}`;
}
