// The weekly and monthly reports that are built. Links to them expire, so each is made when it is followed.

import { fetchJson } from "./api.js";
import * as format from "./format.js";
import * as ui from "./ui.js";

const { el } = ui;
const LIMIT = 26;

export async function show({ parameters, settle, render }) {
  const page = format.readPage(parameters);
  settle({ page });
  const { count, next_page: next, reports } = await fetchJson(["reports"], { limit: LIMIT, page });
  const link = (other) => format.address("reports", undefined, { page: other });
  render(el("div", { class: "up" }, el("a", { href: "#/fleet" }, "Fleet")), ui.heading("Reports"),
    el("p", { class: "lead" }, "A report covers seven days or a month. To hand one on, print it or save it as PDF: ",
      "an address of a report works for minutes only."),
    reports.length ? el("section", { class: "reports" }, ui.table("", ["Week or month", "Drivers", "Report"], reports.map(row)),
      ui.csvButton("Download CSV of this list", ["reports"], ["reports"], {}, { total: count }))
      : ui.empty(count ? "This page is past the end."
        : "No report is built yet. The operator of this service builds them."),
    ui.pages(page, count, LIMIT, link, next));
}

function row({ report_date: date, period, start_date: start, built_at: builtAt, driver_count: drivers, units }) {
  const id = `report-${date}-${period}`;
  const actions = [["Open", "Opened", open], ["Print", "Opened", print], ["CSV", "Saved", save]];
  const buttons = actions.map(([label, done, follow]) => ui.actionButton(label, done, async () =>
    follow(await fetchJson(["report"], { report_time: `${date}T00:00:00`, period })), id));
  return el("tr", {}, el("th", { scope: "row", id }, el("b", {}, format.period(period, start)),
    el("small", {}, `Built ${format.moment(builtAt)} ${format.zone}`)),
  el("td", {}, format.number(drivers), el("small", {}, `in ${units}`)),
  el("td", {}, el("div", { class: "row" }, buttons)));
}

const open = ({ report_page: page }) => location.assign(page);
const save = ({ report_link: csv }) => location.assign(csv);

/** Opens the page in another tab, which prints it. If the browser allows no other tab, the page opens in this one. */
function print({ report_page: page }) {
  const tab = window.open(page);
  if (tab) tab.addEventListener("load", () => tab.print());
  else location.assign(page);
}
