"""Headers of every answer."""

import pytest

ORIGIN = "https://app.example.com"


@pytest.mark.parametrize("path", ["/drivers?limit=0", "/nothing", "/healthz"])
def test_answers_are_private_and_of_the_type_they_say(service, path):
    headers = service.get(path).headers
    assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("private", "nosniff")


def test_without_the_setting_no_origin_is_allowed(service):
    headers = service.get("/drivers", headers={"Origin": ORIGIN}).headers
    assert not [name for name in headers.keys() if name.startswith("Access-Control")]


def test_an_origin_on_the_list_is_allowed_and_another_is_not(make_service):
    service = make_service(cors_origins=(ORIGIN,))
    mine = service.get("/drivers", headers={"Origin": ORIGIN}).headers
    theirs = service.get("/drivers", headers={"Origin": ORIGIN + ".evil"}).headers
    assert mine["Access-Control-Allow-Origin"] == ORIGIN
    assert "X-RateLimit-Remaining" in mine["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Origin" not in theirs
    assert mine["Vary"] == theirs["Vary"] == "X-Fields, Accept-Encoding, Origin"


def test_a_browser_may_ask_first(make_service):
    headers = (
        make_service(cors_origins=(ORIGIN,))
        .get(
            "/drivers", method="OPTIONS", fleet=None, headers={"Origin": ORIGIN, "Access-Control-Request-Method": "GET"}
        )
        .headers
    )
    assert headers["Access-Control-Allow-Methods"] == "GET, HEAD"
    assert "Authorization" in headers["Access-Control-Allow-Headers"]
