// The trips of the fleet: the worst, the newest, those whose data look wrong, or those in progress at a time.

import { MAX_LIMIT, fetchDrivers } from "./api.js";
import { countDays, dateControls, readDates, stay } from "./dates.js";
import { tripRow } from "./driver.js";
import * as format from "./format.js";
import { CursorList, growingTable } from "./growing-list.js";
import { fetchGroups, groupChoice, ofGroup, readGroup } from "./groups.js";
import { describeKinds } from "./implausible.js";
import * as ui from "./ui.js";

const { el } = ui;
// As many trips as a table gets at a click.
const LIMIT = 50;
// The longest window that the API orders by score.
const MAX_DAYS = 31;
// One event on a shorter trip costs all points that its behaviour can cost.
const LEAST_MILES = 3;
const TRIP = "trip_id,driver_id,trip_start_time,trip_end_time,duration_seconds,distance_miles,event_summary," +
  "night_driving_seconds,night_driving_miles,highway_miles";
const COLUMNS = ["Driver, start", "Score", "Length", "Events"];

export async function show({ parameters, settle, render }) {
  const choices = readChoices(parameters), settled = settle(choices, choices.at ? undefined : stay(choices)), { at, order, implausible, group } = choices;
  const link = (changed) => format.address("trips", undefined, { ...settled, shown: undefined, ...changed });
  const list = new CursorList("trips", makeQuery(choices), `trip{${TRIP}},implausible`);
  const readTo = async (count) => {
    await list.readTo(count);
    return list.hasMore || count < list.elements.length;
  };
  const makeTable = () => growingTable("trips", COLUMNS, choices.shown, readTo, async (from, to) => {
    const trips = list.elements.slice(from, to), drivers = await fetchDrivers(trips.map(({ trip }) => trip.driver_id));
    return trips.map((rated) => row(rated, drivers.get(rated.trip.driver_id), at, group));
  });
  const [table, groups] = await Promise.all([makeTable(), fetchGroups()]);
  const title = at ? `Who drove at ${format.moment(at)}` : implausible ? "Trips whose data look wrong"
    : order === "worst" ? "Worst trips" : "Trips";
  const { start, end } = settled;
  render(el("div", { class: "up" }, el("a", { href: format.address("fleet", undefined, { group }) }, "Fleet"),
    el("a", { href: format.address("events", undefined, { start, end, group }) }, "Events of these dates")),
  ui.heading(title, ofGroup(group)), groupChoice(groups, group, link), el("p", { class: "lead" }, describe(choices, link)), controls(choices, link),
  el("section", {}, list.elements.length ? [ui.behaviourLegend(), table, makeButton(choices)] : list.hasMore ? [ui.empty("None was found yet."), table[1]]
    : ui.empty(at ? "No trip was in progress then." : "There are no such trips.")),
  el("p", { class: "quiet" }, `A trip appears ${format.DELAY} after its end.`));
}

function readChoices(parameters) {
  const dates = readDates(parameters), isShort = countDays(dates) <= MAX_DAYS;
  const at = /^\d{12,13}$/.test(parameters.at) ? Number(parameters.at) : undefined;
  const implausible = parameters.implausible === "true" || undefined;
  const order = isShort && parameters.order !== "newest" && !at && (parameters.order || !implausible) ? "worst" : "newest";
  return { ...dates, group: readGroup(parameters), order, implausible, at: at && Math.min(at, Math.floor(format.now())),
    miles: format.readAmount(parameters.miles) ?? (order === "worst" && !implausible ? LEAST_MILES : 0),
    shown: format.readShown(parameters) };
}

/** Returns the query. The worst trips are those that can be: a wrong device would have all of them. */
function makeQuery({ group, start, end, at, order, implausible, miles }) {
  const when = at ? { at } : { start_date: start, end_date: end };
  const isAny = !implausible && (at || order !== "worst");
  return { ...when, group, order, ...(!isAny && { implausible: Boolean(implausible) }), min_distance_miles: miles, limit: LIMIT };
}

/** Returns the button of the list, which is read in larger pages than the table is. */
const makeButton = (choices) => ui.csvButton("Download CSV",
  ["trips", choices.implausible && "implausible", choices.at ? format.inputOf(choices.at).replace(":", "") : format.fileDates(choices), choices.group],
  ["trips"], { ...makeQuery(choices), limit: MAX_LIMIT });

function describe({ start, end, at, order, implausible, miles }, link) {
  const far = miles ? ` of at least ${format.distance(miles)}` : "";
  if (at) return [`Trips${far} in progress then, the newest first. `, el("a", { href: link({ at: undefined }) }, "All trips")];
  const first = order === "worst" ? "the lowest score first" : "the newest first";
  return [`Trips${far}: ${format.dates(start, end)}, ${first}.`,
    !implausible && order === "worst" && [" Trips whose data look wrong are ",
      el("a", { href: link({ implausible: true, order: undefined, miles: undefined }) }, "a list of their own"), "."]];
}

function controls({ start, end, at, order, implausible, miles }, link) {
  const isShort = countDays({ start, end }) <= MAX_DAYS, all = { at: undefined, implausible: undefined, miles: undefined };
  const orders = [isShort && ["Worst first", { order: undefined }, order === "worst"],
    ["Newest first", { order: "newest" }, order === "newest"]].filter(Boolean);
  function choose(event) {
    event.preventDefault();
    location.hash = link({ ...all, order: undefined, at: format.readInput(event.target.elements.at.value) });
  }
  const input = el("input", { id: "at", type: "datetime-local", required: true, value: at && format.inputOf(at),
    min: `${format.oldestDate()}T00:00`, max: format.inputOf(format.now()) });
  return [!at && dateControls({ start, end }, link), el("div", { class: "controls" },
    !at && ui.choice("Trips", [...orders.map(([label, chosen, isCurrent]) =>
      [label, link({ ...all, ...chosen }), !implausible && isCurrent]),
    ["Data look wrong", link({ ...all, order: undefined, implausible: true }), Boolean(implausible)]]),
    ui.amountBox("miles", ["At least", format.unitsName], miles, format.inUnits(1), (least) => link({ miles: least })),
    el("form", { class: "row", onsubmit: choose }, el("label", { class: "inline" }, "Who drove at ", input),
      el("button", {}, "Show")))];
}

function row({ trip, implausible }, driver, at, group) {
  const rating = { ...format.rateTrip(trip), isDoubtful: implausible.length > 0 }, end = trip.trip_end_time;
  const isSameDay = format.dateOf(trip.trip_start_time) === format.dateOf(end);
  return tripRow({ ...trip, group, rating, why: describeKinds(trip, implausible) },
    el("a", { href: format.address("driver", driver.driver_id, { group }) }, ui.name(driver)),
    at && el("small", {}, `until ${isSameDay ? format.time(end) : format.moment(end)}`));
}
