"""What results say of implausible trips."""

from collections.abc import Sequence

from schemas.param_fields import get_first_date
from schemas.plausibility import COUNTED
from scripts.mcp_server.client import PAGE_SIZE, ApiClient, read_list
from scripts.mcp_server.models import NOTICE, Window

DOUBT = "Figures of {} include implausible trips, whose data look wrong: say so, and do not rely on these figures."


async def make_notice(api: ApiClient, whose: str) -> str:
    """Return the notice of a result with figures of whom there are implausible trips, if it is not an empty text."""
    includes = whose and (await api.get_info()).implausible_trips == COUNTED
    return f"{NOTICE} {DOUBT.format(whose)}" if includes else NOTICE


async def make_notice_of_drivers(api: ApiClient, driver_ids: Sequence[str], window: Window, before: Window) -> str:
    """Return the notice of a result with figures of drivers in a window and the one before.

    It has no identifier, because identifiers are data.
    """
    info = await api.get_info()
    if not driver_ids or info.implausible_trips != COUNTED:
        return NOTICE
    params = {
        "start_date": str(max(before.start_date, get_first_date(info.today, "day"))),
        "end_date": str(window.end_date),
        "driver_id": driver_ids,
        "implausible": "true",
    }
    rows, _ = await read_list(api, "trips", params=params, most=PAGE_SIZE)
    found = {row["trip"]["driver_id"] for row in rows}
    numbers = [str(number) for number, driver_id in enumerate(driver_ids, 1) if driver_id in found]
    whose = "the driver" if len(driver_ids) == 1 else f"driver {', '.join(numbers)} of {len(driver_ids)}"
    return await make_notice(api, whose if numbers else "")
