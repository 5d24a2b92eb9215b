// Search: drivers by name, alias or id, and what trips an id belongs to.

import { fetchDriverPage, fetchJson } from "./api.js";
import * as format from "./format.js";
import { aliases, el, empty, heading, name } from "./ui.js";

const MAX_FOUND = 50;
const PAGES_AT_ONCE = 4;
const TRIP_MASK = "{count,trips{trip_id,driver_id,trip_start_time,distance_miles}}";

export async function show({ id: text, render }) {
  document.getElementById("search-text").value = text;
  const drivers = el("ul", { class: "found" }), progress = el("p", { class: "quiet", role: "status" });
  const trips = el("div", {}), title = `Search for “${text}”`;
  if (!isIdentifier(text)) return render(title, heading("Search"), empty("Type a name, alias or id of up to 128 bytes."));
  render(title, heading("Search for “", el("bdi", {}, text), "”"),
    el("section", {}, el("h2", {}, "Drivers"), drivers, progress),
    el("section", {}, el("h2", {}, "Trips with this id or tracking id"), trips));
  await Promise.all([showTrips(text, trips), showDrivers(text, drivers, progress)]);
}

const isIdentifier = (text) => {
  const bytes = new TextEncoder().encode(text).length;
  return bytes > 0 && bytes <= 128 && text !== "." && text !== ".." && !/\p{Cc}/u.test(text);
};

async function showTrips(text, box) {
  const fetchTrips = (parameter) => fetchJson(["trip", parameter, text], {}, { mask: TRIP_MASK });
  const [byId, byTracking] = await Promise.all([fetchTrips("trip_id"), fetchTrips("tracking_id")]);
  const trips = [...byId.trips, ...byTracking.trips];
  const more = byTracking.count - byTracking.trips.length;
  box.replaceChildren(trips.length ? el("ul", { class: "found" }, trips.map(tripItem)) : empty("None."),
    more > 0 ? `And ${format.count(more, "more trip")} with this tracking id.` : "");
}

function tripItem({ trip_id: id, trip_start_time: start, distance_miles: miles }) {
  return el("li", {}, el("a", { href: format.address("trip", id) }, el("bdi", {}, id)),
    el("small", {}, `${format.day(start)}, ${format.time(start)} UTC · ${format.miles(miles)}`));
}

/** Reads the drivers page by page, because the API has no search, and shows those that match as they come. */
async function showDrivers(text, list, progress) {
  const matches = makeMatcher(text);
  const { pages, count } = await fetchDriverPage(1);
  let found = 0, read = 0;
  for (let page = 1; page <= pages && found < MAX_FOUND; page += PAGES_AT_ONCE) {
    const numbers = Array.from({ length: Math.min(PAGES_AT_ONCE, pages - page + 1) }, (_, i) => page + i);
    const drivers = (await Promise.all(numbers.map(fetchDriverPage))).flatMap((answer) => answer.drivers);
    const matching = drivers.filter(matches);
    read += drivers.length;
    found += matching.length;
    list.append(...matching.map(driverItem));
    progress.textContent = `${format.number(read)} of ${format.count(count, "driver")} searched`;
  }
  const all = read === count ? `of ${format.count(count, "driver")}` : "or more; type more of the name";
  progress.textContent = found ? `${format.number(found)} found ${all}.` : `None ${all} has this in the name, alias or id.`;
}

const driverItem = (driver) => el("li", {}, el("a", { href: format.address("driver", driver.driver_id) }, name(driver)),
  el("small", {}, aliases(driver)));

const simplify = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** Returns whether every word is in a driver's names or id, whatever the case and accents. */
function makeMatcher(text) {
  const words = simplify(text).split(/\s+/).filter(Boolean);
  return ({ first_name: first, last_name: last, alias, driver_id: id }) => {
    const names = simplify([first, last, alias, id].filter(Boolean).join(" "));
    return words.every((word) => names.includes(word));
  };
}
