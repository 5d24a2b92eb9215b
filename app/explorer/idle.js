// Who did not drive in a week or month, by driver id.

import { fetchJson } from "./api.js";
import { readPeriod } from "./fleet.js";
import * as format from "./format.js";
import { fetchGroups, groupChoice, ofGroup, readGroup } from "./groups.js";
import * as ui from "./ui.js";

const { el } = ui;
// How many drivers a page of the API has, how many pages are requested at once, and at most for a view.
const LIMIT = 100;
const BATCH = 5;
const WINDOW = ["driver-aggregate", "window"];
// The row of a driver without a summary, whose columns are the last ones.
const IDLE = /,,\r\n$/;
const MAX_PAGES = 50;
const DRIVER = "driver_id,first_name,last_name,alias,last_travel_date";
const MASK = `{count,next_page,data{driver_info{${DRIVER}},driving_summary{trip_count}}}`;

export async function show({ parameters, settle, render }) {
  const group = readGroup(parameters), choices = { ...readPeriod(parameters), page: format.readPage(parameters), group };
  const { period, start, page } = choices;
  const parametersOfLinks = { ...settle(choices, format.stay("start", period, start)), page: undefined };
  const [{ drivers, count, next }, groups] = await Promise.all([findIdle(choices), fetchGroups()]);
  const fleet = format.address("fleet", undefined, parametersOfLinks), when = format.period(period, start);
  const last = next ? (next - 1) * LIMIT : count, isPast = page > 1 && (page - 1) * LIMIT >= count;
  const link = (changed) => format.address("idle", undefined, { ...parametersOfLinks, ...changed });
  render(el("div", { class: "up" }, el("span", {}, "Fleet in ", el("a", { href: fleet }, when))),
    ui.heading("Who did not drive", ofGroup(group)), groupChoice(groups, group, link, { interval: period, at: start }),
    !isPast && el("p", { class: "lead" }, `${describe(drivers.length, page, last, count)} did not drive in ${when}.`),
    el("section", {}, drivers.length ? el("ul", { class: "found" }, drivers.map((driver) => item(driver, group)))
      : ui.empty(isPast ? "This page is past the end." : "None.")),
    (drivers.length > 0 || next) && ui.csvButton("Download CSV", ["idle", format.filePeriod(period, start), group], WINDOW, makeQuery(choices),
      { total: count, isWanted: (row) => IDLE.test(row) }),
    next && el("p", {}, el("a", { href: link({ page: next }) }, `Drivers from ${format.number(last + 1)} on`)));
}

/** Returns how many drivers were found among which: all, or those of a page and the ones after it. */
function describe(found, page, last, count) {
  const [from, to] = [(page - 1) * LIMIT + 1, last].map((number) => format.number(number));
  if (page === 1 && last === count) return `${format.number(found)} of ${format.count(count, "driver")}`;
  return `Of drivers ${from} to ${to} of ${format.number(count)} by driver id, ${format.number(found)}`;
}

const makeQuery = ({ period, start, group }) => ({ group, start_date: start, limit: LIMIT,
  end_date: format.earlier(format.shift("day", format.shift(period, start, 1), -1), format.today()) });

/** Returns about a page of the drivers, how many the fleet has, and the page of the API to go on from, if any. */
async function findIdle(choices) {
  const fetchPage = (page) => fetchJson(WINDOW, { ...makeQuery(choices), page }, { mask: MASK });
  const drivers = [];
  let count, next = choices.page, size = 1;
  do {
    const pages = await Promise.all(Array.from({ length: size }, (_, number) => fetchPage(next + number)));
    const idle = pages.flatMap(({ data }) => data).filter(({ driving_summary: summary }) => !summary);
    drivers.push(...idle.map(({ driver_info: driver }) => driver));
    ({ count } = pages[0]);
    next += size;
    size = Math.min(BATCH, Math.ceil(count / LIMIT) - next + 1);
  } while (size > 0 && drivers.length < LIMIT && next - choices.page < MAX_PAGES);
  return { drivers, count, next: size > 0 && next };
}

const item = (driver, group) => el("li", {},
  el("a", { href: format.address("driver", driver.driver_id, { group }) }, ui.name(driver)), el("small", {}, ui.aliases(driver)),
  el("small", {}, driver.last_travel_date ? `The last trip ${format.wasOn(driver.last_travel_date)}.`
    : "No trips yet."));
