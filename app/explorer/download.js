// Lists as CSV files: all pages of a list of the API, in one file.

import { fetchResponse, learnScope } from "./api.js";
import * as format from "./format.js";
import { describeFailure, el } from "./ui.js";

// As many rows as a page of most lists has.
export const MAX_LIMIT = 100;
const MARK = "\uFEFF";
// A line of the file; within quotes, there may be line breaks.
const LINE = /(?:"[^"]*"|[^"\n])*\n/g;
const NEXT = /<([^>]*)>; rel="?next/;

/** Returns the dates of a list as they are in the name of its file. */
export const fileDates = ({ start, end }) => (start === end ? start : `${start}-to-${end}`);
/** Returns a day, week or month as it is in the name of a file. */
export const filePeriod = (period, start) => (period === "month" ? start.slice(0, 7) : start);

/**
 * Returns a button that saves a list, and says how far it is, what went wrong, or how many rows were saved.
 * `parts` make the name of the file, `total` is how many rows the API has, if that is known, and `isWanted` chooses rows.
 */
export function csvButton(label, parts, segments, query, { total, isWanted } = {}) {
  const output = el("output", { class: "quiet" });
  let isBusy = false;
  async function run() {
    if (isBusy) return;
    isBusy = true;
    output.textContent = "Downloading";
    const of = total === undefined ? "" : ` of ${format.number(total)}`;
    const showRead = (read) => { output.textContent = `${format.number(read)}${of} rows`; };
    output.textContent = await download(parts, segments, query, isWanted, showRead).then(
      (count) => `${format.count(count, "row")} saved`, describeFailure);
    isBusy = false;
  }
  return el("p", { class: "downloads" }, el("button", { class: "small", onclick: run }, label), " ", output);
}

/** Saves all pages of a list, and returns the number of rows. */
async function download(parts, segments, query, isWanted = () => true, showRead) {
  const rows = [], { fleet } = await learnScope();
  let columns, next = {};
  for (let read = 0; next; showRead(read)) {
    const response = await fetchResponse(segments, { limit: MAX_LIMIT, ...query, ...next }, { accept: "text/csv" });
    const [header, ...page] = (await response.text()).match(LINE);
    rows.push(...page.filter(isWanted));
    [columns, read] = [header, read + page.length];
    const [, link] = NEXT.exec(response.headers.get("Link")) ?? [], found = link && new URL(link).searchParams;
    next = found && { page: found.get("page"), cursor: found.get("cursor") };
  }
  save([fleet, ...parts], new Blob([MARK, columns, ...rows], { type: "text/csv" }));
  return rows.length;
}

/** Saves a file. What a name of a file may not have becomes a hyphen. */
function save(parts, blob) {
  const name = parts.filter(Boolean).join("-").replace(/[^\p{L}\p{M}\p{N}._-]+/gu, "-"), href = URL.createObjectURL(blob);
  el("a", { href, download: `${name}.csv` }).click();
  URL.revokeObjectURL(href);
}
