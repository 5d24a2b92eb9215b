"""What the tools return of a group, and of an insurance period."""

import pytest

from tests.factories import make_driver, make_event, make_event_summary, make_trip

GROUPS = {"ann": ["South"], "bob": ["North", "South"], "cem": ["North"], "dee": []}


@pytest.fixture(autouse=True)
def groups(fleet, load):
    """The fleet in two groups, and a trip of Bob in each of two insurance periods."""
    events = make_event_summary(hard_brake_count=3)
    brake = {"event_summary": events, "events": [make_event(1_773_131_400_000)], "insurance_period": 2}
    load(
        make_trip("2026-03-10T08:00", "bob", trip_id="second", **brake),
        make_trip("2026-03-10T12:00", "bob", trip_id="third", insurance_period=3),
        drivers=[make_driver(driver_id, groups=names) for driver_id, names in GROUPS.items()],
    )


def test_groups_are_listed_with_the_number_of_their_drivers(call):
    data = call("list_groups")
    assert data["groups"] == [{"group": "North", "driver_count": 2}, {"group": "South", "driver_count": 2}]


@pytest.mark.parametrize(
    ("tool", "arguments", "rows"),
    [
        ("find_drivers", {}, ["bob", "cem"]),
        ("find_drivers", {"search": "bob"}, ["bob"]),
        ("who_needs_coaching", {}, ["cem", "bob"]),
        ("who_needs_coaching", {"order": "got_worse"}, []),
        ("list_trips", {"order": "oldest"}, ["bob", "cem", "bob", "bob"]),
        ("list_trips", {"insurance_period": "none"}, ["cem", "bob"]),
        ("list_events", {}, ["bob"]),
    ],
)
def test_a_tool_is_about_the_drivers_of_a_group(call, tool, arguments, rows):
    data = call(tool, group="North", **arguments)
    drivers = [row.get("driver", row) for row in data[tool.removeprefix("list_") if "list" in tool else "drivers"]]
    assert [driver["driver_id"] for driver in drivers] == rows


def test_the_weeks_of_a_group_and_of_an_insurance_period_are_summed_up(call):
    arguments = ({}, {"group": "North"}, {"insurance_period": "2"}, {"group": "South", "insurance_period": "none"})
    counts = [call("fleet_summary", count=1, **each)["intervals"][0]["trip_count"] for each in arguments]
    assert counts == [7, 4, 1, 4]


def test_drivers_are_compared_in_an_insurance_period(call):
    data = call("compare_drivers", driver_ids=["ann", "bob"], insurance_period="3")
    bob, ann = data["drivers"]
    assert (bob["score"]["trip_count"], bob["score_before"], ann["score"]) == (1, "did_not_drive", "did_not_drive")


def test_the_trips_of_a_driver_in_an_insurance_period_are_listed(call):
    assert [trip["trip_id"] for trip in call("list_trips", driver_id="bob", insurance_period="2")["trips"]] == [
        "second"
    ]


@pytest.mark.parametrize("tool", ["fleet_summary", "find_drivers", "who_needs_coaching", "list_trips", "list_events"])
def test_an_unknown_group_is_named_with_the_tool_that_lists_groups(fail, tool):
    message = fail(tool, group="Nowhere")
    assert "Nowhere" in message
    assert "use list_groups" in message
