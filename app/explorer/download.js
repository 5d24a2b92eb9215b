// Lists for a spreadsheet: as CSV files, with all pages of a list of the API in one file; and as copied tables, which get a
// cell for each cell, although some have several lines on the page.

import { MAX_LIMIT, fetchResponse, learnScope } from "./api.js";
import { el } from "./ui.js";

const MARK = "\uFEFF";
// A line of the file; within quotes, there may be line breaks.
const LINE = /(?:"[^"]*"|[^"\n])*\n/g;
const NEXT = /<([^>]*)>; rel="?next/;

/**
 * Saves all pages of a list, whose parts make the name of the file, and returns the number of rows. `isWanted` chooses
 * rows. Of `each`, [name, values], the list is requested with each value of a parameter, which becomes the first column.
 */
export async function download(parts, segments, query, showRead, { isWanted = () => true, each: [name, values] = [undefined, [undefined]] }) {
  const rows = [], { fleet } = await learnScope(), add = (value, row) => (name ? `${value},${row}` : row);
  let columns, read = 0;
  for (const value of values) {
    for (let next = { [name]: value }; next; showRead(read)) {
      const response = await fetchResponse(segments, { limit: MAX_LIMIT, ...query, ...next }, { accept: "text/csv" });
      const [header, ...page] = (await response.text()).match(LINE);
      rows.push(...page.filter(isWanted).map((row) => add(value, row)));
      [columns, read] = [add(name, header), read + page.length];
      const [, link] = NEXT.exec(response.headers.get("Link")) ?? [], found = link && new URL(link).searchParams;
      next = found && { [name]: value, page: found.get("page"), cursor: found.get("cursor") };
    }
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

/** Returns the text of a cell in one line, to be copied. A spreadsheet would compute what begins like a formula. */
function write(cell) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode.data);
  return texts.join(" ").replace(/\s+/g, " ").trim().replace(/^[=+\-@]/, "'$&");
}

document.addEventListener("copy", (event) => {
  const selection = getSelection(), isSelected = (node) => selection.containsNode(node, true);
  // Whoever begins in a table means the table, wherever the selection ends.
  const { anchorNode: node } = selection, table = (node?.closest ? node : node?.parentElement)?.closest("table");
  const rows = [...table?.rows ?? []].filter(isSelected).map((row) => [...row.cells]);
  if (rows.flat().filter(isSelected).length < 2) return;
  const texts = rows.map((cells) => cells.map(write));
  const copy = el("table", {}, texts.map((row) => el("tr", {}, row.map((text) => el("td", {}, text)))));
  event.clipboardData.setData("text/plain", texts.map((row) => row.join("\t")).join("\n"));
  event.clipboardData.setData("text/html", copy.outerHTML);
  event.preventDefault();
});
