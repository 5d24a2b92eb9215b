// Requests to the API, with the key of this tab. Nothing else of the page makes requests.

import * as format from "./format.js";

const STORAGE_NAME = "driver-analytics-key";
const LIMIT = 100;
let controller = new AbortController();
// The drivers that responses have named, by id: other views need not ask for them again.
export const knownDrivers = new Map();
// What the current view requested: path and headers.
export const requests = [];

export class ApiError extends Error {
  constructor(status, body, retryAfterSeconds) {
    super(body.message || `The service responded with status ${status}.`);
    Object.assign(this, { status, retryAfterSeconds, reasons: body.errors || {}, requestId: body.request_id });
  }
}

export class NoConnection extends Error {}

/** Returns a module. A browser may not try again to load one that failed, unless the page is loaded again. */
export const loadModule = (load) => load().catch(() => {
  throw Object.assign(new NoConnection(), { retry: reload });
});

/** Loads the page again if the service responds, and otherwise calls `show`. */
const reload = (show) => fetch("", { method: "HEAD" }).then(() => location.reload(), show);

export const hasKey = () => sessionStorage.getItem(STORAGE_NAME) !== null;

export function setKey(key) {
  forgetKey();
  sessionStorage.setItem(STORAGE_NAME, key.trim());
}

export function forgetKey() {
  sessionStorage.removeItem(STORAGE_NAME);
  startView();
  knownDrivers.clear();
}

/** Aborts the requests of the view before. */
export function startView() {
  controller.abort();
  controller = new AbortController();
  requests.length = 0;
  dispatchEvent(new Event("requests"));
}

/** Returns the response. `segments` are parts of the path, `parameters` may have lists, `mask` is the field mask. */
export async function fetchResponse(segments, parameters = {}, { mask, accept } = {}) {
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(parameters)) {
    for (const value of [values].flat()) query.append(name, value);
  }
  const path = segments.map(encodeURIComponent).join("/");
  const url = new URL(`api/v1/${path}${query.size ? `?${query}` : ""}`, document.baseURI);
  const headers = { ...(mask && { "X-Fields": mask }), ...(accept && { Accept: accept }) };
  requests.push({ url: String(url), headers });
  dispatchEvent(new Event("requests"));
  const response = await send(url, headers, controller.signal), today = format.today();
  format.setClock(response.headers.get("Date"));
  // What the view requested and shows depends on the date.
  if (format.today() !== today) dispatchEvent(new Event("hashchange"));
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(response.status, body, Number(response.headers.get("Retry-After")) || 5);
}

async function send(url, headers, signal) {
  // A header has only characters of Latin-1, and somebody may paste anything.
  const Authorization = `APIKEY ${encodeURI(sessionStorage.getItem(STORAGE_NAME))}`;
  try {
    return await fetch(url, { headers: { ...headers, Authorization }, signal });
  } catch (error) {
    throw error.name === "AbortError" ? error : new NoConnection();
  }
}

/** Returns the JSON of the response. */
export async function fetchJson(...request) {
  return (await fetchResponse(...request)).json();
}

/** Returns a page of all drivers: {count, drivers, pages}. The browser stores it and asks whether it has changed. */
export async function fetchDriverPage(page) {
  const mask = "{count,drivers{driver_id,first_name,last_name,alias,last_travel_date}}";
  const answer = await fetchJson(["drivers"], { limit: LIMIT, page }, { mask });
  remember(...answer.drivers);
  return { ...answer, pages: Math.ceil(answer.count / LIMIT) };
}

/** Keeps drivers for other views. */
export function remember(...drivers) {
  for (const driver of drivers) knownDrivers.set(driver.driver_id, driver);
}

/** Returns the curl command line of a request; the key is in the variable KEY. */
export function writeCurl({ url, headers }) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const options = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)} `);
  return `curl --compressed -H "Authorization: APIKEY $KEY" ${options.join("")}${quote(url)}`;
}
