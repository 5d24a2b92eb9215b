// Search: drivers by name, alias or id, and what trips an id belongs to.

import { DRIVERS_PER_PAGE, fetchDriverPage, fetchJson } from "./api.js";
import * as format from "./format.js";
import { aliases, el, empty, heading, name } from "./ui.js";

const MAX_FOUND = 50;
const PAGES_AT_ONCE = 4;
const TRIP_MASK = "{count,next_page,trips{trip_id,driver_id,trip_start_time,distance_miles}}";

export async function show({ id: text, settle, render }) {
  settle({});
  document.getElementById("search-text").value = text;
  const [byId, byTracking, first] = await Promise.all(
    [fetchTrips("trip_id", text), fetchTrips("tracking_id", text), fetchDriverPage(1)]);
  const list = el("ul", { class: "found" }), progress = el("p", { class: "quiet", role: "status" });
  const trips = [...byId.trips, ...byTracking.trips.filter((trip) => trip.trip_id !== text)];
  const [shown, all] = [byTracking.trips.length, byTracking.count];
  const searched = searchDrivers(text, first, list, progress);
  render(heading("Search for “", el("bdi", {}, text), "”"),
    el("section", {}, el("h2", {}, "Drivers"), list, progress),
    el("section", {}, el("h2", {}, "Trips with this id or tracking id"),
      trips.length ? el("ul", { class: "found" }, trips.map(tripItem)) : empty("None."),
      shown < all && `${shown} of ${format.count(all, "trip")} with this tracking id.`));
  await searched;
}

/** Returns {count, trips}: the number of trips with this id, and the first of them. */
async function fetchTrips(parameter, id) {
  const trips = [];
  for (let page = 1; ; page++) {
    const result = await fetchJson(["trip", parameter, id], page > 1 ? { page } : {}, { mask: TRIP_MASK });
    trips.push(...result.trips);
    if (!result.next_page || trips.length >= MAX_FOUND) return { count: result.count, trips };
  }
}

function tripItem({ trip_id: id, trip_start_time: start, distance_miles: miles }) {
  return el("li", {}, el("a", { href: format.address("trip", id) }, el("bdi", {}, id)),
    el("small", {}, `${format.moment(start)} UTC · ${format.distance(miles)}`));
}

/** Reads all drivers page by page, because the API has no search, and shows the best matches as they come. */
async function searchDrivers(text, first, list, progress) {
  const rank = makeRanker(text), ranks = [[], [], []], pages = Math.ceil(first.count / DRIVERS_PER_PAGE);
  let results = [first];
  for (let page = 2; results.length; page += PAGES_AT_ONCE) {
    for (const driver of results.flatMap(({ drivers }) => drivers)) ranks[rank(driver)]?.push(driver);
    list.replaceChildren(...ranks.flat().slice(0, MAX_FOUND).map(driverItem));
    progress.textContent = `Page ${format.number(page - 1)} of ${format.number(pages)} searched`;
    const numbers = Array.from({ length: PAGES_AT_ONCE }, (_, i) => page + i).filter((number) => number <= pages);
    results = await Promise.all(numbers.map(fetchDriverPage));
  }
  const found = ranks.flat().length, count = format.number(found);
  progress.textContent = `${found ? count : "None"} found of ${format.count(first.count, "driver")}.`
    + (found > MAX_FOUND ? ` These are ${MAX_FOUND} of ${count}; type more of the name.` : "");
}

const driverItem = (driver) => el("li", {}, el("a", { href: format.address("driver", driver.driver_id) }, name(driver)),
  el("small", {}, aliases(driver)));

const simplify = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/**
 * Returns a function that ranks a driver: 0 if the text is the id, alias or name, 1 if one of them begins with it, 2 if
 * every word is in them, whatever the case and accents, and otherwise -1.
 */
function makeRanker(text) {
  const wanted = simplify(text), words = wanted.split(/\s+/).filter(Boolean);
  return ({ first_name: first, last_name: last, alias, driver_id: id }) => {
    const names = [id, alias, first, last, [first, last].filter(Boolean).join(" ")].filter(Boolean).map(simplify);
    const all = names.join(" ");
    if (names.includes(wanted)) return 0;
    if (names.some((name) => name.startsWith(wanted))) return 1;
    return words.every((word) => all.includes(word)) ? 2 : -1;
  };
}
