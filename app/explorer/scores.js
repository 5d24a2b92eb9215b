// The scores of a driver or of the fleet, by the first date of each day, week or month.

import { fetchJson } from "./api.js";
import * as format from "./format.js";
import { INTERVALS } from "./score-chart.js";

const TOTALS = "trip_count,distance_miles,duration_seconds,night_driving_seconds,highway_miles,events_summary";
const TOTALS_MASK = `{data{driving_summary{fm_score,fm_grade,${TOTALS}}}}`;

export const readInterval = ({ interval }) => (Object.hasOwn(INTERVALS, interval) ? interval : "week");

/** Returns {driver, byStart}: the driver, and the explanation of each interval in which the driver drove. */
export async function fetchScores(id, interval) {
  const query = { start_date: format.oldestDate(), end_date: format.today(), interval };
  const { driver_info: driver, series } = await fetchJson(["driver", id, "score"], query);
  // The first interval of the response begins with the window. The oldest month may begin before it.
  const byStart = new Map(series.map((element) => [format.startOf(interval, element.start_date), element.explanation]));
  const oldest = format.oldestStart(interval);
  const whole = oldest < query.start_date && await fetchTotals(id, interval, oldest);
  if (whole) byStart.set(oldest, whole);
  return { driver, byStart };
}

/** Returns {byStart}: the summary of each interval in which somebody of the fleet, or of a group of it, drove. */
export async function fetchFleetScores(interval, fleet, group) {
  const query = { start_date: format.oldestStart(interval), interval, group };
  const { series } = await fetchJson(["fleet-aggregate"], query, { mask: format.FLEET_MASK });
  return { byStart: format.fleetByStart(series, fleet) };
}

/** Returns a driver's summary of a period with what its behaviours cost. There is none of one that begins today. */
export async function fetchTotals(id, interval, start) {
  if (start === format.today()) return undefined;
  const query = { start_date: start, driver_id: id };
  const { data } = await fetchJson(["driver-aggregate", INTERVALS[interval][2]], query, { mask: TOTALS_MASK });
  const summary = data[0].driving_summary;
  return summary && { ...summary, behaviours: format.explain(summary) };
}
