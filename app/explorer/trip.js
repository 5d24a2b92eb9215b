// A trip: the trail on a map, the speed over time, and what happened where.

import { fetchJson, fetchResponse, knownDrivers, remember } from "./api.js";
import { makeChart } from "./chart.js";
import * as format from "./format.js";
import { SPEED_STEPS, drawMap } from "./map.js";
import { EVENTS, describe, highest, indexAt, measure, positionOf } from "./trail.js";
import { el, empty, heading, name, tiles } from "./ui.js";

const REPLAY_SECONDS = 30;

export async function show({ id, parameters, render }) {
  const { trips: [trip] } = await fetchJson(["trip", "trip_id", id]);
  if (!trip) return render("No such trip", ...notFound(id));
  const driver = await fetchDriver(trip.driver_id);
  const trail = measure(trip.trail_path);
  const events = [...trip.events].sort((a, b) => a.event_start_timestamp - b.event_start_timestamp);
  const title = `Trip on ${format.day(trip.trip_start_time)}`;
  const view = new TripView(trail, events);
  const driverLink = el("a", { href: format.address("driver", trip.driver_id, { at: findWeek(trip) }) }, name(driver));
  render(title, el("p", { class: "up" }, "Driver ", driverLink),
    heading(title, `, ${format.time(trip.trip_start_time)} – ${format.time(trip.trip_end_time)} UTC`),
    el("p", { class: "lead" }, "Trip ", el("code", {}, el("bdi", {}, id))), summary(trip, trail),
    view.node, downloads(id));
  await view.start(readEvent(parameters, events));
}

/** Returns the week of a trip, if a driver's view can show it. A trip may be of any year. */
function findWeek({ trip_start_time: start }) {
  if (start < Date.parse(format.oldestStart("week")) || start > Date.parse(format.today()) + 86_400_000) return undefined;
  return format.startOf("week", format.dateOf(start));
}

const notFound = (id) => [heading("No such trip"), el("p", {}, "There is no trip with the id ", el("bdi", {}, id),
  ` in this fleet${format.delay() ? `, or it ended less than ${format.delay()} ago` : ""}.`)];

/** Returns the index of the event that the address names, or of the first one of the behaviour that it names. */
function readEvent({ event, about }, events) {
  const first = events.findIndex(({ event_type }) => EVENTS[event_type].behaviour === about);
  return /^\d{1,5}$/.test(event) && events[event] ? Number(event) : first;
}

/** Returns the Driver; the trip has only the id. */
async function fetchDriver(id) {
  if (!knownDrivers.has(id)) {
    const query = { start_date: format.yesterday(), driver_id: id };
    const { data } = await fetchJson(["driver-aggregate", "daily"], query, { mask: "{data{driver_info}}" });
    remember(data[0].driver_info);
  }
  return knownDrivers.get(id);
}

function summary(trip, trail) {
  const hours = trip.duration_seconds / 3600;
  return tiles(["Distance", format.miles(trip.distance_miles)], ["Duration", format.duration(trip.duration_seconds)],
    ["Mean speed", hours > 0 ? `${format.number(trip.distance_miles / hours)} mph` : "–"],
    trail.mph.length > 1 && ["Highest speed", `${format.number(highest(trail.mph))} mph`],
    ["Highway", format.share(trip.highway_miles, trip.distance_miles)],
    ["At night", format.share(trip.night_driving_seconds, trip.duration_seconds)],
    trip.insurance_period !== null && ["Insurance period", String(trip.insurance_period)]);
}

function downloads(id) {
  const make = (label, accept, ending) => {
    const status = el("span", { role: "status" });
    async function download() {
      const response = await fetchResponse(["trip", "trip_id", id], {}, { accept }).catch(() => null);
      const blob = await response?.blob();
      status.textContent = blob ? "" : " The download failed. Try again.";
      if (!blob) return;
      const url = URL.createObjectURL(blob);
      el("a", { href: url, download: `trip-${encodeURIComponent(id)}.${ending}` }).click();
      URL.revokeObjectURL(url);
    }
    return [el("button", { class: "small", onclick: download }, label), status];
  };
  return el("p", { class: "downloads" }, make("Download as JSON", "application/json", "json"), " ",
    make("Download as GeoJSON", "application/geo+json", "geojson"));
}

/** The map, the chart, the slider and the list of events, which show the same point of the trail, if it has some. */
class TripView {
  constructor(trail, events) {
    Object.assign(this, { trail, events, index: 0, frame: 0 });
    this.box = el("div", { class: "map", role: "region", "aria-label": "Map of the trail" });
    this.chart = trail.times.length > 1 && makeChart(trail, events, (index) => !this.frame && this.select(index));
    this.readout = el("output", { for: "slider" });
    this.slider = el("input", { id: "slider", type: "range", min: 0, max: trail.times.length - 1, step: 1, value: 0,
      "aria-label": "Point of the trail", oninput: () => this.select(Number(this.slider.value)) });
    this.playButton = el("button", { onclick: () => (this.frame ? this.pause() : this.play()) }, "Replay");
    this.buttons = events.map((event, number) => this.makeEventButton(event, number));
    const list = events.length ? el("ol", { class: "events" }, this.buttons.map((button) => el("li", {}, button)))
      : empty("No risky behaviour on this trip.");
    this.node = el("div", { class: "trip" }, el("div", { class: "trip-map" }, this.trailNodes()),
      el("section", { class: "trip-events" }, el("h2", {}, format.count(events.length, "event")), list));
  }

  /** Returns as much as the trail and the events have positions for. */
  trailNodes() {
    const points = this.trail.times.length;
    if (this.chart) {
      return [this.box, attribution(), speedLegend(), this.chart.node,
        el("div", { class: "player" }, this.playButton, this.slider, this.readout)];
    }
    const text = el("p", {}, points ? "The trail of this trip has only one point." : "This trip has no trail.");
    return points || this.events.length ? [text, this.box, attribution(), this.readout] : text;
  }

  /** Shows an event, if there is one, and draws the map, which needs its place in the page. */
  async start(eventNumber) {
    if (eventNumber >= 0) this.showEvent(eventNumber, false);
    else if (this.trail.times.length) this.select(0);
    if (!this.box.isConnected) return;
    this.map = await drawMap(this.box, this.trail, this.events, (index) => !this.frame && this.select(index),
      (number) => this.showEvent(number));
    if (this.position) this.map.select(this.position);
  }

  makeEventButton(event, number) {
    const { behaviour, label, letter } = EVENTS[event.event_type];
    return el("button", { id: `event-${number}`, "aria-pressed": "false", onclick: () => this.showEvent(number) },
      el("span", { class: `marker ${behaviour}`, "aria-hidden": "true" }, letter),
      el("span", {}, el("time", {}, format.clock(event.event_start_timestamp)), el("b", {}, label),
        el("small", {}, describe(event, this.trail))));
  }

  /** Selects a point of the trail. */
  select(index) {
    this.index = index;
    if (this.chart) this.chart.select(index);
    this.slider.value = index;
    const { times, mph, miles, positions } = this.trail;
    const facts = this.chart ? [`${format.number(mph[index])} mph`, format.miles(miles[index])] : [];
    this.showPosition(times[index], positions[index], facts);
    this.slider.setAttribute("aria-valuetext", this.readout.textContent);
  }

  showPosition(ms, position, facts = []) {
    this.position = position;
    this.map?.select(position);
    this.readout.textContent = [`${format.clock(ms)} UTC`, ...facts, format.position(position)].join(" · ");
  }

  /** Goes to an event. The address then leads to it. */
  showEvent(number, isChosen = true) {
    this.pause();
    const event = this.events[number], start = event.event_start_timestamp;
    if (this.chart) this.select(indexAt(this.trail, start));
    else this.showPosition(start, positionOf(event));
    this.map?.show(this.position);
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
    this.buttons[number].scrollIntoView({ block: "nearest" });
    if (isChosen) history.replaceState(null, "", `${location.hash.split("?")[0]}?event=${number}`);
  }

  play() {
    const { times } = this.trail, duration = times.at(-1) - times[0];
    if (this.index === times.length - 1) this.select(0);
    let before;
    let now = times[this.index];
    const step = (time) => {
      if (!this.node.isConnected) return;
      now += ((time - (before ?? time)) * duration) / (REPLAY_SECONDS * 1000);
      before = time;
      this.select(indexAt(this.trail, now));
      this.map?.show(this.position);
      this.frame = requestAnimationFrame(step);
      if (now >= times.at(-1)) this.pause();
    };
    this.frame = requestAnimationFrame(step);
    this.playButton.textContent = "Pause";
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.playButton.textContent = "Replay";
  }
}

const attribution = () => format.settings.map_tiles_attribution && format.settings.map_tiles_url
  && el("p", { class: "attribution" }, format.settings.map_tiles_attribution);

const speedLegend = () => el("ul", { class: "legend" }, SPEED_STEPS.map((low, i) => {
  const high = SPEED_STEPS[i + 1];
  return el("li", {}, el("i", { class: `speed-${i}` }), high ? `${low}–${high}` : `${low} and more`, i === 0 && " mph");
}));
