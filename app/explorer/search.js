// Search: drivers by name, alias, e-mail or id, and what trips an id belongs to.

import { fetchDrivers, fetchJson } from "./api.js";
import * as format from "./format.js";
import { aliases, csvButton, el, empty, heading, name } from "./ui.js";

const MAX_FOUND = 50;
const DRIVER_MASK = "{count,drivers{driver_id,first_name,last_name,alias}}";
const TRIP_MASK = "{count,next_page,trips{trip_id,driver_id,trip_start_time,distance_miles}}";

export async function show({ id: text, settle, render }) {
  settle({});
  document.getElementById("search-text").value = text;
  const query = { search: text, limit: MAX_FOUND };
  const [{ count, drivers }, byId, byTracking] = await Promise.all([
    fetchJson(["drivers"], query, { mask: DRIVER_MASK }), fetchTrips("trip_id", text), fetchTrips("tracking_id", text)]);
  const trips = [...byId.trips, ...byTracking.trips.filter((trip) => trip.trip_id !== text)];
  const names = await fetchDrivers(trips.map((trip) => trip.driver_id));
  const [shown, all] = [byTracking.trips.length, byTracking.count];
  render(heading("Search for “", el("bdi", {}, text), "”"),
    section("Drivers", drivers.map(driverItem),
      drivers.length < count && `${drivers.length} of ${format.count(count, "driver")}. Type more of the name.`,
    count > 0 && csvButton("Download CSV", ["drivers", text], ["drivers"], { search: text }, { total: count })),
    section("Trips with this id or tracking id", trips.map((trip) => tripItem(trip, names.get(trip.driver_id))),
      shown < all && `${shown} of ${format.count(all, "trip")} with this tracking id.`));
}

const section = (title, items, rest, button) => el("section", {}, el("h2", {}, title),
  items.length ? el("ul", { class: "found" }, items) : empty("None."), rest && el("p", { class: "quiet" }, rest), button);

/** Returns {count, trips}: the number of trips with this id, and the first of them. */
async function fetchTrips(parameter, id) {
  const trips = [];
  for (let page = 1; ; page++) {
    const result = await fetchJson(["trip", parameter, id], page > 1 ? { page } : {}, { mask: TRIP_MASK });
    trips.push(...result.trips);
    if (!result.next_page || trips.length >= MAX_FOUND) return { count: result.count, trips };
  }
}

const driverItem = (driver) => el("li", {}, el("a", { href: format.address("driver", driver.driver_id) }, name(driver)),
  el("small", {}, aliases(driver)));

const tripItem = ({ trip_id: id, driver_id, trip_start_time: start, distance_miles: miles }, driver = { driver_id }) =>
  el("li", {}, el("a", { href: format.address("trip", id) }, el("bdi", {}, id)),
    el("small", {}, name(driver), ` · ${format.moment(start)} ${format.zone} · ${format.distance(miles)}`));
