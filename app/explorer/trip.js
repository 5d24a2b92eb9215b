// A trip: the trail on a map, the speed over time, and what happened where.

import { fetchJson, fetchResponse, fetchTripPages } from "./api.js";
import { makeChart } from "./speed-chart.js";
import * as format from "./format.js";
import { readGroup } from "./groups.js";
import { fetchImplausible, note } from "./implausible.js";
import { drawMap } from "./map.js";
import { EVENTS, areaUrl, describe, highest, indexAt, isMeasured, measure, milesAt, placeEvents, placeUrl } from "./trail.js";
import * as ui from "./ui.js";

const { actionButton, el, empty, grade, heading, homeLink, legend, name, stepper, tiles, words } = ui;
const REPLAY_STEPS = 600;
const STEP_MS = 50;
const NEIGHBOURS_MASK = "{driver_info{driver_id,first_name,last_name,alias},series{start_date}}";
const NO_TRAIL = ["There is no trail to draw.", "There is only one point to draw."];

export async function show({ id, parameters, fleet, settle, render }) {
  const { trips: [trip] } = await fetchJson(["trip", "trip_id", id]);
  const rest = `${words("among yours", "in this fleet")}. A trip appears ${format.DELAY} after its end.`;
  if (!trip) {
    return render(heading("No such trip"), el("p", {}, "There is no trip ", el("bdi", {}, id), ` ${rest}`),
      el("p", {}, homeLink()));
  }
  const date = format.dateOf(trip.trip_start_time);
  const [{ driver, previous, next }, { trips: implausible }] = await Promise.all([fetchNeighbours(trip),
    fetchImplausible(date, format.shift("day", date, 1), trip.driver_id)]);
  const doubt = implausible.find(({ trip_id: other }) => other === id);
  const trail = measure(trip), events = placeEvents(trip, trail), { trip_start_time: start, trip_end_time: end } = trip;
  const view = new TripView(trip, trail, events);
  const week = format.nearestStart("week", format.dateOf(start), format.today());
  const group = readGroup(parameters), link = (other) => other && format.address("trip", other, { group });
  const isOneDay = format.dateOf(start) === format.dateOf(end);
  const { event, about } = settle({ ...readParameters(parameters, events), group });
  render(el("div", { class: "up" },
    el("span", {}, words("Back to ", "Driver "),
      el("a", { href: format.address("driver", trip.driver_id, { at: week, group }) }, words("your score", name(driver)))),
    (previous || next) && stepper("trip", "Trip", link(previous), link(next))),
    heading(`Trip on ${format.moment(start)} – ${isOneDay ? format.time(end) : format.moment(end)} ${format.zone}`),
    el("p", { class: "lead" }, "Trip ", el("code", {}, el("bdi", {}, id))),
    doubt && note(fleet, `this trip, whose data look wrong: ${doubt.why}.`), summary(trip, trail, Boolean(doubt)), view.node,
    el("p", { class: "downloads" }, downloadButton(id, "JSON"), " ",
      downloadButton(id, "GeoJSON", "application/geo+json"),
      trail.positions.length > 0 && [" ", mapLink("Open the trip in OpenStreetMap", areaUrl(trail.positions))]));
  const isAbout = ({ event_type: type }) => EVENTS[type].behaviour === about;
  await view.start(events.findIndex(event === undefined ? isAbout : ({ index }) => index === Number(event)), event !== undefined);
}

/** Returns the driver of a trip and the ids of the trips before and after it, as far as the API lists them. */
async function fetchNeighbours({ trip_id: id, driver_id: driverId, trip_start_time: start }) {
  const date = format.dateOf(start), oldest = format.oldestDate(), ids = [];
  const query = { start_date: oldest, end_date: format.today(), interval: "day" }, mask = NEIGHBOURS_MASK;
  const { driver_info: driver, series } = await fetchJson(["driver", driverId, "score"], query, { mask });
  if (date < oldest) return { driver };
  const dayBefore = series.findLast((day) => day.start_date < date)?.start_date;
  for await (const trips of fetchTripPages(driverId, dayBefore ?? date, "trip_id")) {
    ids.push(...trips.map((trip) => trip.trip_id));
    const index = ids.indexOf(id);
    if (index >= 0 && index + 1 < ids.length) break;
  }
  const index = ids.indexOf(id);
  return index < 0 ? { driver } : { driver, previous: ids[index - 1], next: ids[index + 1] };
}

/** Returns the index of an event in the trip, as text, and a behaviour. */
const readParameters = ({ event, about }, events) => ({
  event: /^\d+$/.test(event) && events[event] ? event : undefined,
  about: Object.hasOwn(format.LABELS, about) ? about : undefined,
});

function summary(trip, trail, isDoubtful) {
  const hours = trip.duration_seconds / 3600;
  return tiles(["Score", grade({ ...format.rateTrip(trip), isDoubtful })], ["Distance", format.distance(trip.distance_miles)],
    ["Duration", format.duration(trip.duration_seconds)],
    ["Mean speed", hours > 0 ? format.speed(trip.distance_miles / hours) : "–"],
    trail.mph.some(isMeasured) && ["Highest speed", format.speed(highest(trail.mph)), el("small", {}, "by GPS")],
    ["Highway", format.share(trip.highway_miles, trip.distance_miles)],
    ["At night", format.share(trip.night_driving_seconds, trip.duration_seconds)],
    trip.insurance_period !== null && ["Insurance period", String(trip.insurance_period)]);
}

const downloadButton = (id, label, accept) => actionButton(`Download as ${label}`, "Downloaded", async () => {
  const response = await fetchResponse(["trip", "trip_id", id], {}, { accept });
  const href = URL.createObjectURL(await response.blob());
  el("a", { href, download: `trip-${encodeURIComponent(id)}.${label.toLowerCase()}` }).click();
  URL.revokeObjectURL(href);
});

/** Returns a link to another host, which learns nothing of the page that it was opened from. */
const mapLink = (label, href) => el("a", { class: "button small", href, rel: "noreferrer" }, label);

/** The map, the chart, the slider and the list of events, which show the same point of the trail, if it has some. */
class TripView {
  constructor(trip, trail, events) {
    Object.assign(this, { trip, trail, events, index: 0 });
    this.hover = (index) => this.timer || this.select(index);
    this.box = el("div", { class: "map", role: "region", "aria-label": "Map of the trail" });
    this.chart = trail.times.length > 1 && makeChart(trail, events, this.hover);
    this.readout = el("output", { for: "slider" });
    this.placeLink = mapLink("Open this place in OpenStreetMap", false);
    this.placeLink.hidden = true;
    this.slider = el("input", { id: "slider", type: "range", min: 0, max: trail.times.length - 1, value: 0,
      "aria-label": "Point of the trail", oninput: () => this.goTo(Number(this.slider.value)) });
    this.playButton = el("button", { onclick: () => (this.timer ? this.pause() : this.play()) }, "Replay");
    this.buttons = events.map((event, number) => this.makeEventButton(event, number));
    this.node = el("div", { class: "trip" }, el("div", { class: "trip-map" }, this.trailNodes()),
      el("section", { class: "trip-events" }, eventsHeading(trip, events),
        events.length > 0 && el("ol", { class: "events" }, this.buttons.map((button) => el("li", {}, button)))));
  }

  /** Returns as much as the trail and the events have positions for. */
  trailNodes() {
    const points = this.trail.times.length, map = [this.box, ui.mapAttribution()];
    const player = el("div", { class: "player" }, this.playButton, this.slider, this.readout, this.placeLink);
    const { otherTime, otherPlace, starts } = this.trail, positions = (count) => format.count(count, "position");
    const are = otherTime === 1 ? "is" : "are";
    const left = [otherTime > 0 && `${positions(otherTime)} ${are} not from the time of the trip. `,
      otherPlace > 0 && `${positions(otherPlace)} left out: no car gets so far in so short a time.`];
    const source = el("p", { class: "quiet" }, `Times are in ${format.zone}, by the clock of the recording device. `,
      "Speeds are computed from its positions. ",
      words(null, ui.gridNote()), left);
    if (this.chart) return [map, speedLegend(starts.size > 1), this.chart.node, player, source];
    return [el("p", {}, NO_TRAIL[points], " ", left),
      (points > 0 || this.events.length > 0) && [map, el("div", { class: "player" }, this.readout, this.placeLink)]];
  }

  makeEventButton(event, number) {
    const { behaviour, letter } = EVENTS[event.event_type];
    return el("button", { id: `event-${number}`, "aria-pressed": "false", onclick: () => this.showEvent(number) },
      el("span", { class: `marker ${behaviour}`, "aria-hidden": "true" }, letter),
      el("span", {}, el("time", {}, this.write(event.event_start_timestamp)), el("b", {}, format.LABELS[behaviour]),
        el("small", {}, describe(event, this.trail))));
  }

  /** Shows an event, if there is one, and draws the map, which needs its place in the page. */
  async start(eventNumber, isShown) {
    if (eventNumber >= 0) this.showEvent(eventNumber, false, isShown);
    else if (this.trail.times.length) this.select(0);
    if (!this.box.isConnected) return;
    try {
      this.map = await drawMap(this.box, this.trail, this.events, this.hover, (number) => this.showEvent(number));
    } catch (error) {
      console.error(error);
      return this.box.replaceWith(empty("The map could not be drawn. ",
        el("button", { onclick: () => location.reload() }, "Load the page again")));
    }
    if (this.position) this.map.select(this.position);
    if (this.number === undefined) return;
    this.map.raise(this.number);
    this.map.show(this.position);
  }

  write(ms) {
    return format.clockAfter(this.trip.trip_start_time, ms);
  }

  /** Selects a point of the trail. */
  select(index) {
    const { times, mph, miles, positions } = this.trail, speed = isMeasured(mph[index]) && format.speed(mph[index]);
    this.showPosition(index, times[index], positions[index], this.chart ? [speed, format.distance(miles[index])] : []);
  }

  /** Shows a time and a position, which may be between two points: the one at or before it has this index. */
  showPosition(index, ms, position, facts) {
    const words = [`${this.write(ms)} ${format.zone}`, ...facts, format.position(position)].filter(Boolean).join(" · ");
    Object.assign(this, { index, position });
    this.slider.value = index;
    if (this.chart) this.chart.select(ms);
    this.map?.select(position);
    Object.assign(this.placeLink, { href: placeUrl(position), hidden: false });
    this.readout.textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
  }

  goTo(index) {
    this.pause();
    this.select(index);
  }

  /** Goes to an event. The address then leads to it. */
  showEvent(number, isChosen = true, isShown = true) {
    this.pause();
    this.number = number;
    const { event_start_timestamp: start, position, outside } = this.events[number];
    const miles = outside ? undefined : milesAt(this.trail, start);
    this.showPosition(indexAt(this.trail, start), start, position, [miles !== undefined && format.distance(miles)]);
    this.map?.raise(number);
    this.map?.show(this.position);
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
    // Of a link about a behaviour, the page starts at its title; only the list scrolls.
    const button = this.buttons[number], list = button.closest("ol");
    if (isShown) button.scrollIntoView({ block: "nearest" });
    else list.scrollTop = button.offsetTop - list.offsetTop;
    if (isChosen) format.keep("event", this.events[number].index);
  }

  play() {
    const { times } = this.trail, step = (times.at(-1) - times[0]) / REPLAY_STEPS;
    if (this.index === times.length - 1) this.select(0);
    let now = times[this.index];
    this.playButton.textContent = "Pause";
    this.timer = setInterval(() => {
      if (!this.node.isConnected) return this.pause();
      now += step;
      this.select(indexAt(this.trail, now));
      this.map?.show(this.position);
      if (now >= times.at(-1)) this.pause();
    }, STEP_MS);
  }

  pause() {
    this.timer = clearInterval(this.timer);
    this.playButton.textContent = "Replay";
  }
}

/** Returns how many events are listed and, if that differs, how many the totals of the trip count. */
function eventsHeading({ event_summary: totals }, events) {
  const kinds = Object.entries(format.LABELS).map(([behaviour, label]) => {
    const listed = events.filter(({ event_type: type }) => EVENTS[type].behaviour === behaviour).length;
    const count = totals[`${behaviour}_count`], seconds = totals[`${behaviour}_time_seconds`];
    return { count, listed, text: `${label}: counted ${ui.extent({ count, seconds })}; ${format.number(listed)} listed` };
  });
  const others = kinds.filter(({ listed, count }) => listed !== count);
  if (!others.length) {
    return [el("h2", {}, format.count(events.length, "event")),
      !events.length && empty("No risky behaviour on this trip.")];
  }
  return [el("h2", {}, `${format.count(events.length, "event")} listed`),
    el("p", {}, "The score is from the totals of the trip, which differ from this list."),
    el("ul", {}, others.map(({ text }) => el("li", {}, text)))];
}

function speedLegend(hasGaps) {
  const { speed, speedSteps } = format.units();
  return legend([...speedSteps.map((low, i) =>
    [`speed-${i}`, i + 1 < speedSteps.length ? `${low}–${speedSteps[i + 1]} ${speed}` : `${low} ${speed} and more`]),
  ...hasGaps ? [["gap", "no position for more than 2 min"]] : []]);
}
