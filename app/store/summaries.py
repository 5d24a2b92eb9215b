"""Daily and weekly summaries of drivers."""

import dataclasses
from typing import Any

from app.store import Document, Documents, Result, Store
from app.store.drivers import get_profiles
from app.store.pages import renderer
from schemas.derive import Fields, fields_of
from schemas.page import DailyAggregates, WeeklyAggregates


@dataclasses.dataclass(frozen=True)
class Period:
    """A kind of summary: the collection that holds it, how to match one there, and the fields of a response's row."""

    collection: str
    kind: Document
    start: str
    row: Fields | None


DAY = Period("driver_days", {}, "date", fields_of(DailyAggregates)["data"])
WEEK = Period("driver_periods", {"period": "week"}, "start_date", fields_of(WeeklyAggregates)["data"])


def find_aggregates(
    store: Store, fleet: str, period: Period, *, driver_ids: list[str], start_date: str, fields: Fields
) -> Result:
    """Return the `fields` of the aggregates of one day or week: an element a driver, in the order of `driver_ids`.

    The element of a driver who did not drive has no `driving_summary`. Indexes: driver_profiles (fleet, driver_id),
    driver_days (fleet, driver_id, date), driver_periods (fleet, driver_id, period, start_date). Raises UnknownDrivers.
    """
    row: Fields = fields.get("data") or {}
    with store.snapshot() as session:
        profiles = get_profiles(store, fleet, driver_ids, session, rendered="driver_info" in row)
        collection: Documents = getattr(store, period.collection)
        match = {"fleet": fleet, "driver_id": {"$in": driver_ids}, **period.kind, period.start: start_date}
        wanted = {"_id": 0, "driver_id": 1, "version": 1} | ({"json": 1} if "driving_summary" in row else {})
        summaries = {found["driver_id"]: found for found in collection.find(match, wanted, session=session)}
    render = _row_renderer(row, period.row or {})
    pairs = [(profiles[driver_id], summaries.get(driver_id)) for driver_id in driver_ids]
    version = "".join(profile["version"] + (summary["version"] if summary else "-") for profile, summary in pairs)
    data = [render(profile, summary) for profile, summary in pairs]
    return Result(version, dict.fromkeys(fields, data))


def _row_renderer(row: Fields, whole: Fields) -> Any:
    """Return a function that makes an element for orjson of a driver's profile and summary, or None for no summary."""
    renderers = {name: renderer(below, whole[name]) for name, below in row.items()}

    def render(profile: Document, summary: Document | None) -> Document:
        parts = {"driver_info": profile, "driving_summary": summary}
        return {name: render(part["json"]) for name, render in renderers.items() if (part := parts[name])}

    return render
