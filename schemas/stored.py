"""The stored documents that MongoDB validates: sources, reports and keys."""

from collections.abc import Mapping

from marshmallow import Schema

from schemas.driver import Driver, GroupNames
from schemas.fields import Choice, Count, Date, FleetName, Identifier, Int64, Object, Text
from schemas.periods import LONG_PERIODS
from schemas.source import SourceSchema
from schemas.trip import ImportedTrip


class StoredDriver(Driver):
    """A document of `drivers`, a source collection: a driver as imported, and the fleet."""

    fleet = FleetName()


class StoredDriverGroups(SourceSchema):
    """A document of `driver_groups`, a source collection: the groups that a driver is in. It may be absent.

    It is no part of the driver's source, which `mirror` replaces, and which a driver known from trips alone lacks.
    """

    fleet = FleetName()
    driver_id = Identifier()
    groups = GroupNames()


class StoredTrip(ImportedTrip):
    """A document of `trips`, a source collection: a trip as imported, and the fleet."""

    fleet = FleetName()


class StoredFile(Schema):
    """A file of a report: its identifier in GridFS, its length in bytes, and a digest of its content."""

    file_id = Text()
    bytes = Count()
    digest = Text()


class StoredReport(Schema):
    """A document of `reports`: a report on the week or month before `report_date`. `built_at` is epoch milliseconds.

    `report_date` and `period` are those of a ReportWindow. `units` are those of the page: miles or km. `trips_version`
    is a version of what the report shows of trips and groups.
    """

    fleet = FleetName()
    report_date = Date()
    period = Choice(choices=LONG_PERIODS)
    built_at = Int64()
    drivers = Count()
    csv = Object(StoredFile)
    page = Object(StoredFile)
    units = Text()
    trips_version = Text()


class StoredKey(Schema):
    """A document of `keys`: an API key, with a digest instead of the key. Times are epoch milliseconds.

    `driver_id` is that of the only driver that the key opens, or null for a key of the fleet.
    """

    key_id = Text()
    digest = Text()
    fleet = FleetName()
    driver_id = Identifier(allow_none=True)
    label = Identifier(allow_none=True)
    created_at = Int64()
    expires_at = Int64(allow_none=True)
    revoked_at = Int64(allow_none=True)


# The schema of each collection that has one, and the identifier in the `_id` of a source.
STORED: Mapping[str, type[Schema]] = {
    "drivers": StoredDriver,
    "driver_groups": StoredDriverGroups,
    "trips": StoredTrip,
    "reports": StoredReport,
    "keys": StoredKey,
}
IDENTIFIERS = {"drivers": "driver_id", "driver_groups": "driver_id", "trips": "trip_id"}
