"""schemas/mask.py: how a field mask is read, and what it leaves of a shape."""

import pytest

from schemas.introspection import RawFields, fields_of
from schemas.mask import MaskError, ParseError, apply_mask, make_pruner, parse, select_fields
from schemas.page import DailyAggregates, TripDetailPage

PAGE = fields_of(TripDetailPage)
TRIP = PAGE["trips"]
EVENT = TRIP["events"]
INCONSISTENT = "Mask error: Mask is inconsistent with model"
COMMA, CLOSING, OPENING = "Unexpected comma", "Unexpected closing bracket", "Unexpected opening bracket"
MISSING = "Missing closing bracket"
DEEP = 50_000


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("{}", {}),
        ("{ }", {}),
        (".", {}),
        ("a", {"a": None}),
        ("{a,b}", {"a": None, "b": None}),
        ("a b;c.d\te", dict.fromkeys("abcde")),
        ("a\xa0b\x85c", dict.fromkeys("abc")),
        ("a:b,-x,1,_,é,a*", dict.fromkeys(["a:b", "-x", "1", "_", "é", "a*"])),
        ("a,", {"a": None}),
        ("{a,}", {"a": None}),
        ("a{b,}", {"a": {"b": None}}),
        ("a{b}c", {"a": {"b": None}, "c": None}),
        ("{a{b}}", {"a": {"b": None}}),
        ("a;{b}", {"a": {"b": None}}),
        ("a {}", {"a": {}}),
        ("a{},", {"a": {}}),
        ("*{a}", {"*": {"a": None}}),
        ("a{b{c},d},e", {"a": {"b": {"c": None}, "d": None}, "e": None}),
    ],
)
def test_a_mask_is_read(text, mask):
    assert parse(text) == mask


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (",", COMMA),
        (",a", COMMA),
        ("a,,b", COMMA),
        ("a, ,b", COMMA),
        ("{,a}", COMMA),
        ("a{,b}", COMMA),
        ("a{b},,c", COMMA),
        ("}", CLOSING),
        ("a}", CLOSING),
        ("{a}}", CLOSING),
        ("{a},{b}", CLOSING),
        ("{a},b{c}", CLOSING),
        ("a{b}}", CLOSING),
        ("{", MISSING),
        ("{a", MISSING),
        ("{a}b", MISSING),
        ("{a},b", MISSING),
        ("a{", MISSING),
        ("a{b", MISSING),
        ("{a{b}", MISSING),
        ("a{b{c}", MISSING),
        ("{{}}", OPENING),
        ("a,{b}", OPENING),
        ("a{b}{c}", OPENING),
        ("a{{b}}", OPENING),
        ("a{},{b}", OPENING),
        ("a,,b}", COMMA),
        ("a}b,,c", CLOSING),
    ],
)
def test_a_syntax_error_is_reported_by_its_first_fault(text, reason):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert str(caught.value) == f"Mask parse error: {reason}"


def test_a_field_named_again_keeps_its_place_and_takes_the_later_mask():
    assert list(parse("a{b},c,a{d}").items()) == [("a", {"d": None}), ("c", None)]
    assert list(parse("a{b},c,a").items()) == [("a", None), ("c", None)]


@pytest.mark.parametrize("text", ["", " ", "  ", "\t", "\xa0", "\x1f \x85"])
def test_nothing_but_spaces_is_no_mask(text):
    assert select_fields(PAGE, text) is PAGE


def test_spaces_around_a_mask_do_not_count():
    assert select_fields(PAGE, " \t{ count }\xa0 ") == {"count": None}


@pytest.mark.parametrize("text", ["*", "{*}", "**,*", "*{a}", "nope,*"])
def test_a_star_selects_every_field_in_order(text):
    assert list(select_fields(PAGE, text).items()) == list(PAGE.items())


def test_a_star_puts_the_others_after_those_named_wherever_it_stands():
    for text in ("trips,limit,*", "*,trips,limit", "trips,*,limit"):
        assert list(select_fields(PAGE, text)) == ["trips", "limit", "count", "current_page", "next_page"]


def test_fields_come_in_the_order_of_the_mask_at_every_depth():
    result = select_fields(PAGE, "trips{events{event_name,event_type},trip_id},count")
    assert list(result) == ["trips", "count"]
    assert list(result["trips"]) == ["events", "trip_id"]
    assert list(result["trips"]["events"]) == ["event_name", "event_type"]


def test_a_part_selected_as_a_whole_is_the_same_object():
    for text in ("trips", "trips{}", "trips{events{}}"):
        result = select_fields(PAGE, text)["trips"]
        assert result is TRIP or result["events"] is EVENT


def test_a_mask_leaves_the_shape_as_it_was():
    before = repr(PAGE)
    select_fields(PAGE, "trips{trip_id,events{event_data{x}},*},*")
    assert repr(PAGE) == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nope,COUNT,$where,count:limit,_id", {}),
        ("nope{a{b}},count", {"count": None}),
        ("trips{nope}", {"trips": {}}),
        ("trips{events{event_data{nope}}}", {"trips": {"events": {"event_data": {}}}}),
    ],
)
def test_unknown_names_are_left_out_with_all_below_them(text, expected):
    assert select_fields(PAGE, text) == expected


@pytest.mark.parametrize(
    "text", ["count{x}", "count{}", "*,count{*}", "trips{trip_id{x}}", "trips{events{event_type{}}}"]
)
def test_a_mask_on_a_plain_value_is_inconsistent(text):
    with pytest.raises(MaskError, match=INCONSISTENT):
        select_fields(PAGE, text)


@pytest.mark.parametrize("inner", ["user_speed_mph{x}", "user_speed_mph{}", "nope{}", "*{}", "*,nope{x}"])
def test_a_mask_below_the_keys_of_a_raw_object_is_inconsistent(inner):
    with pytest.raises(MaskError, match=INCONSISTENT):
        select_fields(PAGE, f"trips{{events{{event_data{{{inner}}}}}}}")


def test_a_parse_error_comes_before_a_mask_error():
    with pytest.raises(ParseError):
        select_fields(PAGE, "count{x},,")


def test_a_part_that_may_be_absent_is_masked_as_any_other():
    row = fields_of(DailyAggregates)["data"]
    assert apply_mask(row, parse("driving_summary{fm_score}")) == {"driving_summary": {"fm_score": None}}


HUGE = {
    "opening brackets": ("{" * DEEP, MISSING),
    "closing brackets": ("}" * DEEP, CLOSING),
    "brackets in pairs": ("{" * DEEP + "}" * DEEP, OPENING),
    "commas": ("," * DEEP, COMMA),
    "deep and never closed": ("a{" * DEEP, MISSING),
    "deep within brackets and once too few": ("{" + "trips{" * DEEP + "}" * DEEP, MISSING),
    "deep and once too often": ("trips{" * DEEP + "}" * (DEEP + 1), CLOSING),
    "deep, then broken": ("nope{" * DEEP + "}" * DEEP + ",,", COMMA),
    "deep below a plain value": ("count{" + "a{" * DEEP + "}" * DEEP + "}", INCONSISTENT),
    "deep below a raw object": ("trips{events{event_data{" + "a{" * DEEP + "}" * (DEEP + 3), INCONSISTENT),
    "deep below a star of a raw object": ("trips{events{event_data{" + "*{" * DEEP + "}" * (DEEP + 3), INCONSISTENT),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_mask_that_is_wrong_is_refused_as_a_small_one_is(name):
    text, reason = HUGE[name]
    with pytest.raises(MaskError) as caught:
        select_fields(PAGE, text)
    assert str(caught.value).endswith(reason)


LARGE = {
    "unknown names": ("nope{" * DEEP + "}" * DEEP, {}),
    "unknown names below a known one": ("trips{" + "nope{" * DEEP + "}" * DEEP + "}", {"trips": {}}),
    "the same known name": ("trips{" * DEEP + "}" * DEEP, {"trips": {}}),
    "stars": ("*{" * DEEP + "}" * DEEP, PAGE),
    "stars below a known name": ("trips{" + "*{" * DEEP + "}" * DEEP + "}", {"trips": TRIP}),
    "one name again and again": ("count," * 2 * DEEP, {"count": None}),
    "as many names, one of them known": (f"{' '.join(f'n{n}' for n in range(2 * DEEP))},limit", {"limit": None}),
    "empty brackets": ("trips{}," * DEEP, {"trips": TRIP}),
    "one long name": ("c" * DEEP, {}),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_huge_mask_that_is_right_is_served_as_a_small_one_is(name):
    text, result = LARGE[name]
    assert select_fields(PAGE, text) == result


WHOLE = {"a": None, "b": {"c": None, "d": None}, "e": None}


def pruned(mask, value, whole=WHOLE):
    """Return what pruning leaves of the value, as text: order counts."""
    return str(make_pruner(mask, whole)(value))


def test_fields_outside_the_mask_are_left_out():
    result = {"a": 1, "b": {"c": 2, "d": 3}, "e": 4}
    assert pruned({"b": {"c": None}, "e": None}, result) == "{'b': {'c': 2}, 'e': 4}"
    assert pruned({}, result) == pruned({}, {}) == "{}"


def test_of_a_list_every_element_is_pruned():
    assert (
        pruned({"b": {"c": None}}, [{"a": 1, "b": [{"c": 2, "d": 3}]}, {"b": []}]) == "[{'b': [{'c': 2}]}, {'b': []}]"
    )


def test_a_part_selected_as_a_whole_is_unchanged():
    result = {"b": {"d": 1, "c": 2}, "a": 3}
    assert pruned(WHOLE, result) == str(result)
    assert pruned({"a": None, "b": WHOLE["b"]}, result) == "{'a': 3, 'b': {'d': 1, 'c': 2}}"


def test_fields_are_sorted_into_the_order_of_the_mask():
    assert pruned({"e": None, "a": None}, {"a": 1, "e": 2}) == "{'e': 2, 'a': 1}"


def test_nested_fields_are_sorted_into_the_order_of_the_mask():
    mask = {"a": None, "b": {"d": None, "c": None}}
    assert pruned(mask, {"a": 1, "b": {"c": 2, "d": 3}}) == "{'a': 1, 'b': {'d': 3, 'c': 2}}"
    assert pruned(mask, {"a": 1, "b": [{"c": 2, "d": 3}, {"c": 4, "d": 5}]}) == (
        "{'a': 1, 'b': [{'d': 3, 'c': 2}, {'d': 5, 'c': 4}]}"
    )


def test_null_and_empty_parts_stay_so():
    mask = {"b": {"d": None, "c": None}}
    assert [pruned(mask, {"b": part}) for part in (None, [], {})] == ["{'b': None}", "{'b': []}", "{'b': {}}"]


def test_fields_that_a_raw_object_lacks_are_not_made_up():
    whole = {"raw": RawFields({"x": None, "y": None})}
    assert pruned({"raw": {"y": None, "x": None}}, {"raw": {"x": 1}}, whole) == "{'raw': {'x': 1}}"


def test_a_field_that_a_value_lacks_is_left_out():
    assert pruned({"e": None, "b": {"c": None}, "a": None}, {"a": 1}) == "{'a': 1}"
