// The orders of the list of the fleet that the API has not: by name, and by how much the score changed.

import { MAX_LIMIT } from "./api.js";
import { CHANGES, LIMIT, fetchRanking, fetchScoresById, inBox } from "./fleet.js";
import * as format from "./format.js";
import { fetchImplausible } from "./implausible.js";

// Of how many drivers the scores before are requested.
const MAX_COMPARED = 500;
const byName = new Intl.Collator("en", { numeric: true });
const nameOf = ({ driver_info: driver }) => format.driverName(driver);

/** Returns a page of the list: {count, drivers, ranked, text}: how many drivers it has and the ranking, and what it is. */
export const fetchList = (query, { order, page, ...choices }, fleet) =>
  (CHANGES.includes(order) ? fetchChanged(query, order === "improved", page, choices, fleet) : fetchByName(query, page));

async function fetchByName(query, page) {
  const { count, drivers } = await fetchRanking({ ...query, limit: MAX_LIMIT, page });
  return { count, drivers: drivers.sort((a, b) => byName.compare(nameOf(a), nameOf(b))), ranked: count,
    text: count > MAX_LIMIT && "Each page is sorted by name. The pages are in order of the score." };
}

/**
 * Returns those who drove worse, or better, than in the period before, of MAX_COMPARED with the lowest, or highest,
 * score. Scores that count trips whose data look wrong are not compared.
 */
async function fetchChanged(query, isBetter, page, { period, start, miles, group }, { implausible_trips: policy }) {
  const previous = format.shift(period, start, -1), end = format.shift(period, start, 1);
  const fetchPage = (number) => fetchRanking({ ...query, limit: MAX_LIMIT, page: number });
  const first = await fetchPage(1), size = Math.min(first.count, MAX_COMPARED);
  const rest = Array.from({ length: Math.max(0, Math.ceil(size / MAX_LIMIT) - 1) }, (_, i) => fetchPage(i + 2));
  const all = [first, ...await Promise.all(rest)].flatMap(({ drivers }) => drivers);
  const [before, { trips }] = await Promise.all([fetchScoresById(period, previous, all.map((entry) => entry.driver_info)),
    policy === "counted" ? fetchImplausible(previous, end, undefined, group) : { trips: [] }]);
  for (const { driver_id: id } of trips) before.delete(id);
  const gainOf = ({ driver_info: { driver_id: id }, driving_summary: { fm_score: score } }) =>
    (before.get(id)?.distance_miles >= miles ? format.difference(score, before.get(id).fm_score) : 0) * (isBetter ? 1 : -1);
  const changed = all.filter((entry) => gainOf(entry) > 0).sort((a, b) => gainOf(b) - gainOf(a));
  const drivers = changed.map((entry, i) => ({ ...entry, rank: i + 1 })).slice((page - 1) * LIMIT, page * LIMIT);
  const of = size < first.count ? `the ${size} with the ${isBetter ? "highest" : "lowest"} scores` : format.count(size, "driver");
  return { count: changed.length, drivers, ranked: first.count,
    text: `${format.number(changed.length)} of ${of} drove ${isBetter ? "better" : "worse"} than in the ${period} before. `
      + `Who drove less than ${inBox(miles)} ${format.unitsName} in it, or has data that look wrong, is left out.` };
}
