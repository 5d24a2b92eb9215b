"""Authentication: which keys are accepted."""

from ipaddress import ip_network

import pytest
from limits import parse

from app.store.api_keys import make_key


@pytest.mark.parametrize("scheme", ["APIKEY", "apikey", "ApiKey"])
def test_the_scheme_is_matched_without_regard_to_case(service, scheme):
    assert service.get("/drivers", headers={"Authorization": f"{scheme} {service.key('f1')}"}).status_code == 200


def refused(service, header):
    return service.get("/drivers", fleet=None, headers={} if header is None else {"Authorization": header})


@pytest.mark.parametrize(
    "header",
    [None, "", "APIKEY", "APIKEY x", "Bearer {key}", "{key}", "APIKEY{key}", "APIKEY {key}x", "APIKEY {key},"]
    + ["APIKEY {key} {key}", "APIKEY da_" + "0" * 36, "APIKEY {other}", "APIKEY \xff"],
)
def test_every_invalid_key_gets_the_same_response(service, header):
    header = header and header.format(key=service.key("f1"), other=make_key())
    response = refused(service, header)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == 'APIKEY realm="fleet"'
    assert {**response.json, "request_id": ""} == {**refused(service, None).json, "request_id": ""}


@pytest.mark.parametrize("path", ["", "/", "/nothing", "/drivers/", "//drivers", "/Drivers"])
def test_an_unknown_path_requires_a_key(service, path):
    assert service.get(path, fleet=None).status_code == 401
    assert service.get(path).status_code == 404


def test_failures_are_counted_by_the_address_that_a_trusted_proxy_sends(make_service):
    service = make_service(auth_failure_limit=parse("1 per minute"), trusted_proxies=(ip_network("127.0.0.1"),))
    addresses = ("198.51.100.1", "198.51.100.2", "6.6.6.6, 198.51.100.1", "198.51.100.2, nonsense")
    responses = [service.get("/drivers", fleet=None, headers={"X-Forwarded-For": address}) for address in addresses]
    assert [response.status_code for response in responses] == [401, 401, 429, 401]


def test_failures_of_one_address_are_limited_and_its_valid_keys_are_accepted(make_service, clock):
    service = make_service(auth_failure_limit=parse("3 per minute"))
    responses = [service.get("/drivers", fleet=None) for _ in range(5)]
    assert [response.status_code for response in responses] == [401, 401, 401, 429, 429]
    assert responses[-1].json["error"] == "RateLimitExceeded"
    assert service.get("/drivers").status_code == 200
    clock.shift(int(responses[-1].headers["Retry-After"]))
    assert service.get("/drivers", fleet=None).status_code == 401
