// Lists that are read as far as somebody wants to see them, and tables that grow with them.

import { fetchJson } from "./api.js";
import * as format from "./format.js";
import { actionButton, el, table } from "./ui.js";

// How many rows a table has at first, and gets at a click.
const ROWS = 50;
// How many pages are read without a question: each may be empty, although there are more.
const MAX_PAGES = 20;

/** A list with a cursor, "trips" or "events" of the fleet. */
export class CursorList {
  elements = [];
  constructor(name, query, fields) {
    Object.assign(this, { name, query, mask: `{next_cursor,${name}{${fields}}}` });
  }

  /** Whether there may be more elements than were read. */
  get hasMore() {
    return this.cursor !== null;
  }

  /** Reads on until there are so many elements, or as many pages as are read without a question. */
  async readTo(count) {
    for (let pages = 0; this.hasMore && this.elements.length < count && pages < MAX_PAGES; pages++) {
      const query = { ...this.query, ...(this.cursor && { cursor: this.cursor }) };
      const page = await fetchJson([this.name], query, { mask: this.mask });
      this.elements.push(...page[this.name]);
      this.cursor = page.next_cursor;
    }
  }
}

/**
 * Returns a table of a list that grows at a click. `readTo` reads up to so many elements and returns whether there may
 * be more, `makeRows` makes rows of the elements from one index to another. The address keeps how many are shown.
 */
export async function growingTable(className, columns, shown, readTo, makeRows) {
  const node = table(className, columns, []), body = node.querySelector("tbody");
  const more = actionButton("Show more", "Shown", async () => {
    await grow(body.children.length + ROWS);
    format.keep("shown", body.children.length);
  });
  async function grow(count) {
    const hasMore = await readTo(count);
    body.append(...await makeRows(body.children.length, count));
    more.hidden = !hasMore;
  }
  await grow(shown ?? ROWS);
  return [node, el("p", {}, more)];
}
