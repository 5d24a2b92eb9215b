// Copying of tables: a spreadsheet gets a cell for each cell, although some have several lines on the page.

import { el } from "./ui.js";

/** Returns the text of a cell in one line. A spreadsheet would compute what begins like a formula. */
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
