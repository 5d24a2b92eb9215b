// The groups of the fleet's drivers, such as depots: the choice of one, and the way to compare two.

import { fetchJson, getKey } from "./api.js";
import * as format from "./format.js";
import { el, nameNode } from "./ui.js";

// As many groups as a page of the API has.
const LIMIT = 100;
const MASK = "{next_page,groups{group}}";
const ALL = "All drivers";
const byName = new Intl.Collator("en", { numeric: true });
// The names of the groups, and the key with which they were requested.
let known = {};

/** Returns the names of the groups of the fleet. They are requested once, or again. */
export async function fetchGroups(isAgain) {
  const key = getKey(), names = [];
  for (let page = isAgain || known.key !== key ? 1 : null; page;) {
    const { groups, next_page: next } = await fetchJson(["groups"], { limit: LIMIT, page }, { mask: MASK });
    names.push(...groups.map(({ group }) => group));
    page = next;
    if (!page) known = { key, names: names.sort(byName.compare) };
  }
  return known.names;
}

export const readGroup = ({ group }) => group || undefined;

const write = (group) => (format.isVisible(group) ? group : JSON.stringify(group));
export const groupName = (group) => nameNode(write(group));
/** Returns the end of a heading: the group, if one is chosen. */
export const ofGroup = (group) => group && [" · ", groupName(group)];

/** Returns a box to choose one of these groups, or `none`, if there is a text for it. `link` makes an address. */
export function groupBox(id, label, names, group, link, none) {
  // Who has the link of a new group may have older names.
  const all = new Set(group ? [...names, group] : names);
  const texts = [none && ["", none], ...[...all].map((name) => [name, write(name)])].filter(Boolean);
  const options = texts.map(([value, text]) => el("option", { value, dir: "auto", selected: value === (group ?? "") }, text));
  const choose = ({ target }) => { location.hash = link(target.value); };
  return el("label", { class: "inline group" }, label, " ", el("select", { id, onchange: choose }, options));
}

/** Returns the choice of a group, and a link to compare it with another one, if the fleet has groups. */
export function groupChoice(names, group, link, when = {}) {
  if (!names.length && !group) return undefined;
  const [first, second] = [...new Set([group ?? names[0], ...names])];
  const compare = format.address("compare", undefined, { ...when, group: first, with: second });
  return el("div", { class: "controls" }, groupBox("group", "Group", names, group, (chosen) => link({ group: chosen }), ALL),
    el("a", { href: compare }, second ? "Compare groups" : "Compare with the fleet"));
}
