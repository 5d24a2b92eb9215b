"""Compressed answers, and what caches and clients are told of them."""

import gzip
import http.client
import json
import shutil
import subprocess
from urllib.parse import urlencode, urlsplit

import httpx
import pytest

from app.content_encoding import MIN_BYTES
from app.middleware.compression import ENCODINGS, zstd
from app.store import Store
from scripts.admin.keys import issue_key
from tests.factories import make_driver
from tests.served import serving
from tests.stores import load

DECODERS = {None: bytes, "gzip": gzip.decompress, "zstd": zstd.decompress}
DOCUMENT = "/openapi.json"
UNKNOWN = urlencode([("driver_id", f"{number:0100}") for number in range(20)])
LONG_ERROR = f"/driver-aggregate/daily?start_date=2026-03-10&{UNKNOWN}"
PATHS = ["/drivers", "/drivers?limit=100", "/drivers?limit=0", "/nothing", "/healthz", "/docs", DOCUMENT]
CHOICES = {
    **dict.fromkeys((None, "", "identity", "br", "deflate, br;q=1.0", "gzip;q=0", "*;q=0", "identity;q=0"), None),
    **dict.fromkeys(("gzip;q=0.5, identity", "zstd;q=0, gzip;q=0.0", "x-gzip", "gzip;q=x", ";,=;q=", "\xff"), None),
    **dict.fromkeys(("gzip", "GZIP", "gzip, deflate, br", "gzip;q=0.1", "gzip, identity", "gzip, *;q=0"), "gzip"),
    **dict.fromkeys(("gzip, identity;q=0", "zstd;q=0.5, gzip", "zstd;q=0, *"), "gzip"),
    **dict.fromkeys(("zstd", "gzip, deflate, br, zstd", "*", "identity;q=0, *"), "zstd"),
}


@pytest.fixture
def drivers(load, service):
    """Ask for a page of 100 drivers, by whatever encodings: `drivers("gzip", method=...)`."""
    load(drivers=[make_driver(f"d{number}", first_name="Zoë") for number in range(100)])

    def ask(accepted=None, path="/drivers?limit=100", **options):
        headers = {} if accepted is None else {"Accept-Encoding": accepted}
        return service.get(path, headers=headers | options.pop("headers", {}), **options)

    return ask


def document(service, accepted=None, held=None, method="GET"):
    """Return the OpenAPI document, which has a tag."""
    sent = {"Accept-Encoding": accepted, "If-None-Match": held}
    sent = {name: value for name, value in sent.items() if value}
    return service.get(DOCUMENT, fleet=None, headers=sent, method=method)


@pytest.mark.parametrize(("accepted", "encoding"), CHOICES.items())
def test_a_client_gets_the_encoding_that_it_likes_best(drivers, accepted, encoding):
    answer = drivers(accepted)
    assert answer.headers.get("Content-Encoding") == encoding
    assert DECODERS[encoding](answer.data) == drivers().data


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_compressed_answer_tells_its_own_length_and_is_much_shorter(drivers, encoding):
    answer = drivers(encoding)
    assert int(answer.headers["Content-Length"]) == len(answer.data) < len(drivers().data) / 5


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_answer_is_compressed_from_a_size_on(drivers, encoding):
    size = len(drivers(path="/drivers?limit=1").data)
    assert size < MIN_BYTES
    assert "Content-Encoding" not in drivers(encoding, path="/drivers?limit=1").headers
    assert drivers(encoding, path=f"/drivers?limit={MIN_BYTES // 100}").headers["Content-Encoding"] == encoding


def test_a_client_that_refuses_it_plain_gets_even_a_short_answer_compressed(drivers):
    answer = drivers("gzip, identity;q=0", path="/drivers?limit=1")
    assert DECODERS[answer.headers["Content-Encoding"]](answer.data) == drivers(path="/drivers?limit=1").data


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("accepted", [None, "gzip"])
def test_every_answer_tells_caches_that_the_encoding_matters(drivers, path, accepted):
    assert "Accept-Encoding" in drivers(accepted, path=path).vary


def test_what_else_matters_to_caches_stays_told(drivers):
    assert set(drivers("gzip").vary) == {"X-Fields", "Accept-Encoding"}
    assert set(drivers("gzip", path="/nothing").vary) == {"Accept", "Accept-Encoding"}


@pytest.mark.parametrize("accepted", [None, *ENCODINGS])
def test_head_tells_what_get_does(drivers, accepted):
    whole, head = drivers(accepted), drivers(accepted, method="HEAD")
    told = ("Content-Type", "Content-Encoding", "Content-Length", "Vary")
    assert [head.headers.get(name) for name in told] == [whole.headers.get(name) for name in told]
    assert head.data == b""


def test_a_long_error_is_compressed_too(service):
    answer = service.get(LONG_ERROR, headers={"Accept-Encoding": "gzip", "X-Request-ID": "r1"})
    assert (answer.status_code, answer.headers["Content-Encoding"]) == (404, "gzip")
    assert gzip.decompress(answer.data) == service.get(LONG_ERROR, headers={"X-Request-ID": "r1"}).data


def test_a_picture_is_left_as_it_is(service):
    answer = service.get("/docs/favicon-32x32.png", fleet=None, headers={"Accept-Encoding": "gzip"}, buffered=True)
    assert not {"Content-Encoding", "Vary"} & {*answer.headers.keys()}


def test_the_log_tells_the_bytes_that_are_sent(drivers, log):
    size = len(drivers("gzip").data)
    assert log()[-1]["bytes"] == size


def test_each_encoding_has_a_tag_of_its_own(service):
    tag = document(service).headers["ETag"].strip('"')
    tags = {encoding: document(service, encoding).headers["ETag"] for encoding in ENCODINGS}
    assert tags == {encoding: f'"{tag}-{encoding}"' for encoding in ENCODINGS}


@pytest.mark.parametrize("accepted", [None, *ENCODINGS, "gzip, zstd", "identity"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_whoever_holds_it_in_any_encoding_is_not_sent_it_again(service, accepted, method):
    for encoding in (None, *ENCODINGS):
        tag = document(service, encoding).headers["ETag"]
        for held in (tag, f"W/{tag}", f'"other", {tag}'):
            answer = document(service, accepted, held, method)
            assert (answer.status_code, answer.data, answer.headers["ETag"]) == (304, b"", tag)
            assert "Accept-Encoding" in answer.vary
            assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize(("accepted", "preferred"), [(None, None), ("gzip", "gzip"), ("gzip, zstd", "zstd")])
def test_of_several_that_are_held_the_one_that_would_be_sent_is_named(service, accepted, preferred):
    tags = {encoding: document(service, encoding).headers["ETag"] for encoding in (None, *ENCODINGS)}
    assert document(service, accepted, ", ".join(tags.values())).headers["ETag"] == tags[preferred]


@pytest.mark.parametrize("held", ['"other"', '"other-gzip"', "x", '""'])
def test_whoever_holds_something_else_is_sent_it(service, held):
    assert document(service, "gzip", held).status_code == 200


@pytest.fixture
def live(mongod_uri, tmp_path):
    """Run the service, with a page of drivers: its URL, and the headers to send."""
    with serving(mongod_uri, tmp_path, "compression") as (served, db):
        load(db, drivers=[make_driver(f"d{number}") for number in range(100)])
        yield (
            f"http://{served.bind}/api/v1/drivers?limit=100",
            {"Authorization": f"APIKEY {issue_key(Store.of(db), 'f1')}"},
        )


def test_over_the_wire_each_encoding_arrives_whole_on_a_connection_that_goes_on(live):
    url, headers = live
    connection, bodies = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10), set()
    for encoding in ("identity", *ENCODINGS, "identity"):
        connection.request("GET", url, headers=headers | {"Accept-Encoding": encoding})
        answer = connection.getresponse()
        bodies.add(DECODERS[answer.getheader("Content-Encoding")](answer.read()))
    connection.close()
    assert [len(json.loads(body)["drivers"]) for body in bodies] == [100]


def test_clients_read_what_they_get(live):
    url, headers = live
    answer = httpx.get(url, headers=headers)
    assert (answer.headers["Content-Encoding"] in ENCODINGS, answer.json()["count"]) == (True, 100)
    if curl := shutil.which("curl"):
        command = [curl, "-sS", "--compressed", "-H", f"Authorization: {headers['Authorization']}", url]
        assert subprocess.run(command, check=True, capture_output=True).stdout == answer.content
