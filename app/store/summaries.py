"""The Daily, Weekly and Monthly summaries of drivers."""

from collections.abc import Sequence

from orjson import Fragment

from app.store import Document, Result, Store
from app.store.driver_periods import BREAKDOWN_FRAGMENT, HAS_SUMMARY, SUMMARY_FRAGMENT, check_known
from app.store.scope import Scope
from schemas.periods import PROFILE, PeriodName

# Where the JSON of a profile or a day is, and that of a week or a month.
FRAGMENTS = ("json", SUMMARY_FRAGMENT, BREAKDOWN_FRAGMENT)


def find_aggregates(
    store: Store, scope: Scope, period: PeriodName, *, driver_ids: Sequence[str], start_date: str
) -> Result:
    """Return the aggregates of one day, week or month: an element for each driver, in the order of `driver_ids`.

    The element of a driver who did not drive has no `driving_summary`. Index: driver_periods (fleet, period,
    driver_id, start_date). Raises UnknownRecord.
    """
    # Every driver has a profile, so the profiles also show which drivers the scope does not have.
    kinds = [{"period": PROFILE}, {"period": period, "start_date": start_date}]
    match = {**scope.match_drivers(driver_ids), "$or": kinds, **HAS_SUMMARY}
    projection = {"_id": 0} | dict.fromkeys(("period", "driver_id", "version", *FRAGMENTS), 1)
    with store.snapshot():
        documents = list(store.driver_periods.find(match, projection))
    profiles, summaries = (
        {document["driver_id"]: document for document in documents if document["period"] == name}
        for name in (PROFILE, period)
    )
    check_known(driver_ids, profiles)
    data, version = list[Document](), ""
    for driver_id in driver_ids:
        profile, summary = profiles[driver_id], summaries.get(driver_id)
        driven = {"driving_summary": _render(summary)} if summary else {}
        data.append({"driver_info": _render(profile), **driven})
        version += profile["version"] + (summary["version"] if summary else "-")
    return Result(version, {"data": data})


def _render(document: Document) -> Fragment:
    """Return the JSON of a document, which a week or a month has in two fragments."""
    texts = [document[name] for name in FRAGMENTS if name in document]
    return Fragment(texts[0] if len(texts) == 1 else f"{{{','.join(text[1:-1] for text in texts)}}}")
