"""Daily and weekly summaries of drivers."""

from collections.abc import Callable
from typing import NamedTuple

from app.store import Document, Result, Store, UnknownDrivers
from app.store.pagination import Selection, make_renderer
from schemas.introspection import Fields, fields_of
from schemas.page import DailyAggregates, WeeklyAggregates

# The period of a driver's profile, and its start_date.
PROFILE, ANY_DATE = "all", ""
# The period whose documents hold a calendar of the driver's days.
MONTH = "month"
# Two for each of 20 drivers, at the most.
MAX_DOCUMENTS = 100


class Period(NamedTuple):
    """A kind of summary: its name in `driver_periods`, and the fields of an element of its response."""

    name: str
    element: Fields


DAY = Period("day", fields_of(DailyAggregates)["data"] or {})
WEEK = Period("week", fields_of(WeeklyAggregates)["data"] or {})


def find_aggregates(
    store: Store, fleet: str, period: Period, *, driver_ids: list[str], start_date: str, selection: Selection
) -> Result:
    """Return the aggregates of one day or week: an element a driver, in the order of `driver_ids`.

    The element of a driver who did not drive has no `driving_summary`. Index: driver_periods (fleet, period,
    driver_id, start_date). Raises UnknownDrivers.
    """
    element: Fields = selection.fields.get("data") or {}
    # Also tells which drivers there are.
    starts = {PROFILE: ANY_DATE}
    if "driving_summary" in element:
        starts[period.name] = start_date
    match = {
        "fleet": fleet,
        "period": {"$in": list(starts)},
        "driver_id": {"$in": driver_ids},
        "start_date": {"$in": list(starts.values())},
    }
    projection = {"_id": 0, "period": 1, "driver_id": 1, "version": 1} | (
        selection.projection("json") if element else {}
    )
    with store.snapshot() as session:
        documents = list(store.driver_periods.find(match, projection, batch_size=MAX_DOCUMENTS, session=session))
    found = {(document["period"], document["driver_id"]): document for document in documents}
    if unknown := [driver_id for driver_id in driver_ids if (PROFILE, driver_id) not in found]:
        raise UnknownDrivers(unknown)
    keys = [(name, driver_id) for driver_id in driver_ids for name in starts]
    version = "".join(found[key]["version"] if key in found else "-" for key in keys)
    if not selection.include_content:
        return Result(version, {})
    render = _renderer(period, element)
    data = [render(found[PROFILE, driver_id], found.get((period.name, driver_id))) for driver_id in driver_ids]
    return Result(version, dict.fromkeys(selection.fields, data))


def _renderer(period: Period, element: Fields) -> Callable[[Document, Document | None], Document]:
    """Return a function that makes an element for orjson of a driver's profile and summary, None without one."""
    renderers = {name: make_renderer(below, period.element[name]) for name, below in element.items()}

    def render(profile: Document, summary: Document | None) -> Document:
        parts = {"driver_info": profile, "driving_summary": summary}
        return {name: render(part["json"]) for name, render in renderers.items() if (part := parts[name])}

    return render
