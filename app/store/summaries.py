"""The Daily, Weekly and Monthly summaries of drivers."""

from collections.abc import Callable, Sequence

from app.store import Document, Result, Store
from app.store.driver_periods import BREAKDOWN_FRAGMENT, HAS_SUMMARY, SUMMARY_FRAGMENT, check_known
from app.store.rendering import join_fragments, make_renderer
from app.store.scope import Scope
from schemas.introspection import Fields, fields_of
from schemas.periods import DAY, PROFILE, PeriodName
from schemas.summary import DrivingSummary

DRIVING_SUMMARY_FIELDS = fields_of(DrivingSummary)
# A request reads at most two documents for each of 20 drivers, so one batch is enough.
MAX_DOCUMENTS = 100


def find_aggregates(
    store: Store, scope: Scope, period: PeriodName, *, driver_ids: Sequence[str], start_date: str, fields: Fields
) -> Result:
    """Return the aggregates of one day, week or month: an element for each driver, in the order of `driver_ids`.

    The element of a driver who did not drive has no `driving_summary`. Index: driver_periods (fleet, period,
    driver_id, start_date). Raises UnknownRecord.
    """
    element: Fields = fields.get("data") or {}
    # Every driver has a profile, so the profiles also show which drivers the scope does not have.
    kinds: list[Document] = [{"period": PROFILE}]
    if "driving_summary" in element:
        kinds.append({"period": period, "start_date": start_date})
    fragments = {fragment: 1 for name in element for fragment in _find_fragments(period, name, element)}
    documents = _find_documents(store, scope, driver_ids, kinds, fragments)
    check_known(driver_ids, {driver_id for name, driver_id in documents if name == PROFILE})
    found = [documents.get((kind["period"], driver_id)) for driver_id in driver_ids for kind in kinds]
    version = "".join(document["version"] if document else "-" for document in found)
    render = _make_element_renderer(period, element)
    data = [render(documents[PROFILE, driver_id], documents.get((period, driver_id))) for driver_id in driver_ids]
    content = {"data": data}
    return Result(version, {name: content[name] for name in fields})


def _find_documents(
    store: Store, scope: Scope, driver_ids: Sequence[str], kinds: Sequence[Document], fragments: Document
) -> dict[tuple[str, str], Document]:
    """Return the documents of drivers that match any of `kinds`, by period and driver_id."""
    match = {**scope.match_drivers(driver_ids), "$or": kinds, **HAS_SUMMARY}
    projection = {"_id": 0, "period": 1, "driver_id": 1, "version": 1} | fragments
    with store.snapshot().bind():
        documents = list(store.driver_periods.find(match, projection, batch_size=MAX_DOCUMENTS))
    return {(document["period"], document["driver_id"]): document for document in documents}


def _find_fragments(period: PeriodName, name: str, element: Fields) -> list[str]:
    """Return the names of the fragments that contain the fields of a part of an element, the profile or the summary."""
    if name == "driver_info" or period == DAY:
        return ["json"]
    fields = element[name] or {}
    needed = {BREAKDOWN_FRAGMENT if field not in DRIVING_SUMMARY_FIELDS else SUMMARY_FRAGMENT for field in fields}
    return [fragment for fragment in (SUMMARY_FRAGMENT, BREAKDOWN_FRAGMENT) if fragment in needed]


def _make_element_renderer(period: PeriodName, element: Fields) -> Callable[[Document, Document | None], Document]:
    """Return a function that makes an element for orjson from a driver's profile and summary, which may be None."""
    renderers = {name: make_renderer(below) for name, below in element.items()}
    fragments = {name: _find_fragments(period, name, element) for name in element}

    def render(profile: Document, summary: Document | None) -> Document:
        parts = {"driver_info": profile, "driving_summary": summary}
        return {
            name: render_part(join_fragments(*(part[fragment] for fragment in fragments[name])))
            for name, render_part in renderers.items()
            if (part := parts[name])
        }

    return render
