"""What results say of implausible trips."""

from schemas.plausibility import COUNTED
from scripts.mcp_server.client import ApiClient
from scripts.mcp_server.models import NOTICE

DOUBT = "Figures of {} include implausible trips, whose data look wrong: say so, and do not rely on these figures."


async def make_notice(api: ApiClient, whose: str) -> str:
    """Return the notice of a result with figures of whom there are implausible trips, if it is not an empty text."""
    includes = whose and (await api.get_info()).implausible_trips == COUNTED
    return f"{NOTICE} {DOUBT.format(whose)}" if includes else NOTICE
