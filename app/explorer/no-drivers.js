// Why the list of the fleet has no drivers, and what to do.

import { MAX_LIMIT, fetchJson } from "./api.js";
import { inBox } from "./fleet.js";
import * as format from "./format.js";
import { el, empty } from "./ui.js";

/** Returns why there are no drivers, and a link to some, or the command that loads them. */
export async function describe({ period, start, page, group, miles }, drove, link, fleet) {
  if (page > 1) return empty("This page is past the end. ", el("a", { href: link({}) }, "Go to the first page"));
  if (drove) {
    return empty(`${format.count(drove, "driver")} drove less than ${inBox(miles)} ${format.unitsName}. `,
      el("a", { href: link({ miles: 0 }) }, "Show all who drove"));
  }
  const mask = "{count,drivers{last_travel_date}}";
  const { count, drivers } = await fetchJson(["drivers"], { limit: MAX_LIMIT, group }, { mask });
  const last = drivers.map((driver) => driver.last_travel_date || "").sort().at(-1);
  if (!last) return empty(count ? "Nobody has driven yet." : "No drivers and trips are stored yet.", !group && howToImport(fleet));
  const other = format.nearestStart(period, last);
  return empty(`Nobody drove in this time. The last trip ${format.wasOn(last)}. `,
    other !== start && other === format.startOf(period, last)
      && el("a", { href: link({ start: other }) }, `Look at ${format.period(period, other)}`));
}

const howToImport = (fleet) => [" Whoever runs this service imports drivers and trips:", el("br", {}), el("code", {},
  `driver-analytics import --fleet '${fleet.replaceAll("'", "'\\''")}' --drivers drivers.ndjson --trips trips.ndjson`)];
