"""The units for systemd in deploy/."""

import pytest

from tests.service_process import ROOT

# Lines that restrict a program, and not those that start it.
FREE = (
    "User=",
    "Group=",
    "Type=",
    "Exec",
    "Environment",
    "Restart",
    "Timeout",
    "Kill",
    "Limit",
    "State",
    "Working",
    "#",
)


def find_restrictions(unit):
    """Return the lines of the section [Service] that restrict the program."""
    service = unit.read_text().partition("[Service]\n")[2].partition("\n[")[0]
    return {line for line in service.splitlines() if line and not line.startswith(FREE)}


@pytest.mark.parametrize("unit", sorted((ROOT / "deploy").glob("*.service")), ids=lambda unit: unit.name)
def test_each_unit_is_as_restricted_as_the_service(unit):
    assert find_restrictions(ROOT / "deploy" / "driver-analytics@.service") <= find_restrictions(unit)
