"""Compressed responses, and their headers for caches and clients."""

import gzip
from urllib.parse import urlencode

import pytest

from app.middleware.compression import zstd
from app.responses import ENCODINGS
from tests.factories import make_driver
from tests.store_contents import load

DECODERS = {None: bytes, "gzip": gzip.decompress, "zstd": zstd.decompress}
DOCUMENT = "/openapi.json"
UNKNOWN = urlencode([("driver_id", f"{number:0100}") for number in range(20)])
LONG_ERROR = f"/driver-aggregate/daily?start_date=2026-03-10&{UNKNOWN}"
CHOICES = {
    **dict.fromkeys((None, "", "identity", "deflate, br;q=1.0", "gzip;q=0", "*;q=0", "identity;q=0"), None),
    **dict.fromkeys(("gzip;q=0.5, identity", "x-gzip", "gzip;q=x", ";,=;q=", "\xff"), None),
    **dict.fromkeys(("GZIP", "gzip, deflate, br", "gzip;q=0.1", "gzip, identity", "gzip, *;q=0"), "gzip"),
    **dict.fromkeys(("gzip, identity;q=0", "zstd;q=0.5, gzip", "zstd;q=0, *"), "gzip"),
    **dict.fromkeys(("zstd", "gzip, deflate, br, zstd", "*", "identity;q=0, *"), "zstd"),
}


@pytest.fixture(scope="module")
def service(shared_service):
    """The service with 100 drivers."""
    load(shared_service.db, drivers=[make_driver(f"d{number}", first_name="Zoë") for number in range(100)])
    return shared_service


@pytest.fixture
def drivers(service):
    """Get a page of 100 drivers with an Accept-Encoding: `drivers("gzip", method=...)`."""

    def get_compressed(accepted=None, path="/drivers?limit=100", **options):
        headers = {} if accepted is None else {"Accept-Encoding": accepted}
        return service.get(path, headers=headers | options.pop("headers", {}), **options)

    return get_compressed


def document(service, accepted=None, etag=None):
    """Return the OpenAPI document, which has a tag."""
    headers = {"Accept-Encoding": accepted, "If-None-Match": etag}
    headers = {name: value for name, value in headers.items() if value}
    return service.get(DOCUMENT, fleet=None, headers=headers)


@pytest.mark.parametrize(("accepted", "encoding"), CHOICES.items())
def test_a_client_gets_the_encoding_that_it_prefers(drivers, accepted, encoding):
    response = drivers(accepted)
    assert response.headers.get("Content-Encoding") == encoding
    assert DECODERS[encoding](response.data) == drivers().data


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_compressed_response_has_its_own_content_length_and_is_much_shorter(drivers, encoding):
    response = drivers(encoding)
    assert int(response.headers["Content-Length"]) == len(response.data) < len(drivers().data) / 5


def test_a_short_response_is_not_compressed(drivers):
    assert "Content-Encoding" not in drivers("gzip", path="/drivers?limit=1").headers
    assert drivers("gzip", path="/drivers?limit=10").headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize("accepted", [None, *ENCODINGS])
def test_head_has_the_headers_of_a_compressed_get(drivers, accepted):
    whole, head = drivers(accepted), drivers(accepted, method="HEAD")
    names = ("Content-Type", "Content-Encoding", "Content-Length", "Vary")
    assert [head.headers.get(name) for name in names] == [whole.headers.get(name) for name in names]
    assert set(whole.vary) == {"Accept", "X-Fields", "Accept-Encoding"}
    assert head.data == b""


def test_a_long_error_is_compressed_too(service):
    response = service.get(LONG_ERROR, headers={"Accept-Encoding": "gzip", "X-Request-ID": "r1"})
    assert (response.status_code, response.headers["Content-Encoding"]) == (404, "gzip")
    assert gzip.decompress(response.data) == service.get(LONG_ERROR, headers={"X-Request-ID": "r1"}).data


def test_a_picture_is_left_as_it_is(service):
    response = service.get("/docs/favicon-32x32.png", fleet=None, headers={"Accept-Encoding": "gzip"}, buffered=True)
    assert not {"Content-Encoding", "Vary"} & {*response.headers.keys()}


def test_the_log_has_the_number_of_bytes_sent(drivers, log):
    size = len(drivers("gzip").data)
    assert log()[-1]["bytes"] == size


@pytest.mark.parametrize("accepted", [None, *ENCODINGS, "gzip, zstd"])
def test_each_encoding_has_its_own_etag_which_is_not_modified_with_any(service, accepted):
    whole = document(service).headers["ETag"].strip('"')
    for encoding in (None, *ENCODINGS):
        tag = document(service, encoding).headers["ETag"]
        assert tag == (f'"{whole}-{encoding}"' if encoding else f'"{whole}"')
        for etag in (tag, f"W/{tag}", f'"other", {tag}'):
            response = document(service, accepted, etag)
            assert (response.status_code, response.data, response.headers["ETag"]) == (304, b"", tag)
            assert "Accept-Encoding" in response.vary
            assert "Content-Encoding" not in response.headers


def test_a_client_that_refuses_identity_gets_a_short_response_compressed(drivers):
    response = drivers("gzip, identity;q=0", path="/drivers?limit=1")
    assert DECODERS[response.headers["Content-Encoding"]](response.data) == drivers(path="/drivers?limit=1").data


@pytest.mark.parametrize(("accepted", "preferred"), [(None, None), ("gzip", "gzip"), ("gzip, zstd", "zstd")])
def test_a_304_for_several_etags_has_the_etag_of_the_preferred_encoding(service, accepted, preferred):
    tags = {encoding: document(service, encoding).headers["ETag"] for encoding in (None, *ENCODINGS)}
    assert document(service, accepted, ", ".join(tags.values())).headers["ETag"] == tags[preferred]


def test_another_etag_gets_the_full_response(service):
    for etag in ('"other"', '"other-gzip"', "x", '""'):
        assert document(service, "gzip", etag).status_code == 200
