// The events of the fleet: on a map, by places, and as a list.

import { fetchDrivers } from "./api.js";
import { dateControls, readDates, stay } from "./dates.js";
import { drawEventMap } from "./event-map.js";
import * as format from "./format.js";
import { CursorList, growingTable } from "./growing-list.js";
import { fetchGroups, groupChoice, groupName, ofGroup, readGroup } from "./groups.js";
import { boxOf, findPlaces, isPlaced, writeBox } from "./places.js";
import { EVENTS, describeAlone, placeUrl } from "./trail.js";
import * as ui from "./ui.js";

const { el } = ui;
// As many events as a page of the API has, and how many are read without a question.
const LIMIT = 1000, MAX_READ = 5000;
const MAX_PLACES = 10;
const TIMES = "event_start_timestamp,event_end_timestamp", START = "event_start_latitude,event_start_longitude";
const FIELDS = `trip_id,driver_id,event_index,event_type,${TIMES},${START},event_data`;
const TYPES = Object.fromEntries(Object.entries(EVENTS).map(([type, { behaviour }]) => [behaviour, type]));
const COLUMNS = ["Start, driver", "What"];

export async function show({ parameters, settle, render }) {
  const choices = readChoices(parameters), settled = settle(choices, stay(choices));
  const link = (changed) => format.address("events", undefined,
    { ...settled, map: undefined, shown: undefined, ...changed });
  const list = new CursorList("events", makeQuery(choices), FIELDS), { driver, group } = choices;
  const [names, groups] = await Promise.all([driver ? fetchDrivers([driver]) : new Map(), fetchGroups(), list.readTo(MAX_READ)]);
  const view = new EventsView(list, choices, link, names), { start, end } = choices;
  await view.fill();
  const trips = format.address("trips", undefined, { start: settled.start, end: settled.end, group });
  const fleet = format.address("fleet", undefined, { group });
  render(el("div", { class: "up" }, el("a", { href: fleet }, "Fleet"), el("a", { href: trips }, "Trips of these dates")),
    ui.heading("Events", !driver && ofGroup(group)), !driver && groupChoice(groups, group, link), dateControls({ start, end }, link), filters(choices, link, names.get(driver)), view.node,
    el("p", { class: "quiet" }, "An event counts on the date on which it starts, in the fleet its trip on the date of the ",
      `trip's start. A trip appears ${format.DELAY} after its end.`));
  await view.drawMap();
}

function readChoices(parameters) {
  const { behaviour, driver, bbox, map } = parameters;
  const known = Object.hasOwn(format.LABELS, behaviour) ? behaviour : undefined;
  // No other behaviour has a speed limit.
  const isSpeed = !known || known === "overspeeding";
  return { ...readDates(parameters), group: readGroup(parameters), behaviour: known, driver: driver || undefined, bbox: bbox || undefined,
    over: isSpeed ? format.readAmount(parameters.over) : undefined, seconds: format.readAmount(parameters.seconds),
    map: /^-?\d+\.\d+,-?\d+\.\d+,\d+(\.\d+)?$/.test(map) ? map : undefined,
    shown: format.readShown(parameters) };
}

/** Returns the query. The API takes a driver or a group; with a driver, the address keeps the group to go back to. */
const makeQuery = ({ start, end, behaviour, driver, group, over, seconds, bbox }) => (
  { start_date: start, end_date: end, event_type: TYPES[behaviour], driver_id: driver, bbox, group: driver ? undefined : group,
    min_over_mph: over || undefined, min_seconds: seconds || undefined, order: "newest", limit: LIMIT });

/** Returns the controls that leave events out. */
function filters({ behaviour, over, seconds, driver, group, bbox }, link, info) {
  const behaviours = [["All", undefined], ...Object.entries(format.LABELS).map(([name, label]) => [label, name])];
  const isSpeed = (name) => !name || name === "overspeeding";
  const only = (what, without) => el("span", {}, what, " ", without);
  return el("div", { class: "controls" },
    ui.choice("Behaviour", behaviours.map(([label, name]) =>
      [label, link({ behaviour: name, over: isSpeed(name) ? over : undefined }), name === behaviour])),
    isSpeed(behaviour) && ui.amountBox("over", ["At least", `${format.units().speed} over the limit`], over,
      format.inUnits(1), (mph) => link({ over: mph })),
    ui.amountBox("seconds", ["At least", "s long"], seconds, 1, (least) => link({ seconds: least })),
    driver && only(["Only ", ui.name(info)], el("a", { href: link({ driver: undefined }) }, "Show all drivers",
      group && [" of ", groupName(group)])),
    bbox && only("Only the frame on the map", el("a", { href: link({ bbox: undefined }) }, "Show all places")));
}

/** What was read of the events: how many, on a map, by places and as a list. */
class EventsView {
  constructor(list, choices, link, names) {
    Object.assign(this, { list, choices, link, names });
    this.box = el("div", { class: "map", role: "region", "aria-label": "Map of the events" });
    this.summary = el("div", {});
    this.rest = el("div", { class: "parts" });
    this.map = el("section", {}, this.box, ui.mapAttribution(), ui.behaviourLegend(),
      el("p", { class: "quiet" }, ui.gridNote(), "A circle has the number of events that are close to each other. A click " +
        "opens it."));
    // A file may be on its way while more events are read for the page.
    this.button = ui.csvButton("Download CSV", ["events", choices.behaviour, format.fileDates(choices), choices.driver ?? choices.group],
      ["events"], makeQuery(choices));
    this.node = el("div", { class: "parts" }, this.summary, this.map, this.rest);
  }

  /** Writes what was read. */
  async fill() {
    const { elements: events, hasMore } = this.list, table = events.length > 0 && await this.makeTable();
    this.map.hidden = !events.some(isPlaced);
    this.summary.replaceChildren(...this.describe(events, hasMore));
    this.rest.replaceChildren(...events.length ? [this.choices.bbox ? "" : this.placeList(events),
      el("section", {}, el("h2", {}, "Newest first"), table, this.button)] : []);
  }

  /** Returns how many events were read, and that there may be more. */
  describe(events, hasMore) {
    const { start, end } = this.choices, lost = events.filter((event) => !isPlaced(event)).length;
    const drivers = new Set(events.map((event) => event.driver_id)).size, dates = format.dates(start, end);
    const when = start === end && start === format.yesterday() ? `yesterday, ${dates}` : dates;
    const what = events.length ? `${format.count(events.length, "event")} of ${format.count(drivers, "driver")}` : "No events";
    return [el("p", { class: "lead" }, `${what}: ${when}. `,
      hasMore && ["These are the newest, and there may be more. ", this.moreButton()]),
    lost ? el("p", { class: "quiet" }, `${format.count(lost, "event")} of a device without a position ${
      lost === 1 ? "is" : "are"} in the list only.`) : ""];
  }

  moreButton() {
    return ui.actionButton("Read on", "Read", async () => {
      await this.list.readTo(this.list.elements.length + MAX_READ);
      this.choices.shown = this.rest.querySelector("tbody")?.children.length;
      await this.fill();
      if (this.showOnMap) this.showOnMap(this.list.elements);
      else await this.drawMap();
    });
  }

  makeTable() {
    const { elements } = this.list;
    return growingTable("events-list", COLUMNS, this.choices.shown, (count) => count < elements.length,
      async (from, to) => {
        const events = elements.slice(from, to), unknown = events.filter(({ driver_id: id }) => !this.names.has(id));
        const drivers = await fetchDrivers(unknown.map((event) => event.driver_id));
        for (const [id, driver] of drivers) this.names.set(id, driver);
        return events.map((event) => this.row(event));
      });
  }

  row(event) {
    const { driver_id: id, event_start_timestamp: start } = event, { group } = this.choices, { behaviour } = EVENTS[event.event_type];
    const only = el("a", { href: this.link({ driver: id }) }, "Only this driver");
    return el("tr", {}, el("th", { scope: "row" },
      el("a", { href: tripAddress(event, group) }, `${format.shortDay(start)}, ${format.clock(start)}`), el("br", {}),
      el("a", { href: format.address("driver", id, { group }) }, ui.name(this.names.get(id))),
      !this.choices.driver && el("small", {}, only)),
      el("td", {}, el("i", { class: behaviour }), el("b", {}, format.LABELS[behaviour]),
        el("small", {}, describeAlone(event))));
  }

  /** Returns the places with most events. */
  placeList(events) {
    const places = findPlaces(events.filter(isPlaced)).filter((place) => place.events.length > 1).slice(0, MAX_PLACES);
    return el("section", {}, el("h2", {}, "Places with most events"),
      el("p", { class: "quiet" }, "A place is about 150 by 150 metres."),
      places.length ? el("ol", { class: "found places" }, places.map((place) => this.placeItem(place)))
        : ui.empty("No place has more than one event."));
  }

  placeItem({ box, events, drivers }) {
    const [west, south, east, north] = box, kinds = Object.groupBy(events, (event) => EVENTS[event.event_type].behaviour);
    const middle = [(south + north) / 2, (west + east) / 2], goUp = () => this.box.scrollIntoView({ block: "nearest" });
    return el("li", {}, el("a", { href: this.link({ bbox: writeBox(box) }), onclick: goUp },
      `${format.count(events.length, "event")} of ${format.count(drivers.size, "driver")}`),
    el("ul", { class: "counts" }, Object.keys(format.LABELS).filter((name) => kinds[name]).map((name) => el("li", {},
      el("i", { class: name }), `${format.LABELS[name]} ${format.number(kinds[name].length)}`))),
    el("small", {}, `At ${format.position(middle)}. `,
      el("a", { href: placeUrl(middle), rel: "noreferrer" }, "OpenStreetMap")));
  }

  /** Draws the map, which needs its place in the page. */
  async drawMap() {
    const { bbox: area, map: view } = this.choices;
    if (this.map.hidden || !this.box.isConnected) return;
    try {
      this.showOnMap = await drawEventMap(this.box, this.list.elements, { area, view: view?.split(",").map(Number),
        onMove: (moved) => format.keep("map", moved.join()),
        onOpen: (events) => {
          location.hash = events.length > 1 ? this.link({ bbox: writeBox(boxOf(events)) }) : tripAddress(events[0], this.choices.group);
        } });
    } catch (error) {
      console.error(error);
      this.box.replaceWith(ui.empty("The map could not be drawn."));
    }
  }
}

const tripAddress = ({ trip_id: id, event_index: index }, group) => format.address("trip", id, { event: index, group });
