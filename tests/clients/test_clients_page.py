"""docs/clients.md, the page for client developers: what it shows is what happens."""

import datetime
import json
import re
from pathlib import Path

import httpx
import pytest

from app.config import API

pytestmark = pytest.mark.clients

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
# The examples of each section, by title and language; `json` or `text` is what they print, `bash` makes the clients.
SECTIONS = {
    part.partition("\n")[0]: dict(re.findall(r"^```(\w+)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL))
    for part in PAGE.split("\n## ")
}
# How an example prints the title of its section, before what it prints itself.
PRINT_TITLE = {"sh": "printf '\\n## {}\\n'", "python": "print('\\n## {}')", "typescript": "console.log('\\n## {}')"}
MASKS = re.findall(r"^\| `(/.+?)` \| `(.+?)` \| (.+?) \|$", PAGE, re.MULTILINE)
KINDS = re.findall(r"^\| (\d{3}) \| (.+?) \|", PAGE, re.MULTILINE)
# What differs from run to run: dates, and identifiers of requests.
CHANGING = re.compile(r'\d{4}-\d\d-\d\d|(?<="request_id":")\w+')
TSC = "tsc --strict --target es2022 --module nodenext example.mts"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, node_modules, live, make_client):
    """The folder of somebody who did as the page says."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "node_modules").symlink_to(node_modules)
    (commands,) = (section["bash"] for section in SECTIONS.values() if "bash" in section)
    make_client("bash", "-euc", commands, cwd=folder, SERVICE=live.url)
    return folder


def bare(text):
    """Return the values of a text without what differs from run to run, and without its spaces."""
    return re.split(r"(?<=[,{\[])", "".join(CHANGING.sub("#", text).split()))


@pytest.mark.parametrize(
    ("language", "name", "command"),
    [
        ("sh", "example.sh", "sh -eu example.sh"),
        ("python", "example.py", "python -W error example.py"),
        ("typescript", "example.mts", f"{TSC} && node example.mjs"),
    ],
    ids=["curl", "python", "typescript"],
)
def test_the_examples_print_what_the_page_shows_after_a_429(folder, busy, run, language, name, command):
    sections = {title: section for title, section in SECTIONS.items() if language in section}
    parts = [f"{PRINT_TITLE[language].format(title)}\n{section[language]}" for title, section in sections.items()]
    (folder / name).write_text("\n".join(parts))
    ran = run("sh", "-c", command, cwd=folder, SERVICE=busy.url, KEY=busy.key)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = dict(part.split("\n", 1) for part in ran.stdout.split("\n## ")[1:])
    for title, section in sections.items():
        assert bare(printed[title]) == bare(section.get("json") or section["text"]), title
    assert '"status":429' in busy.stop()


def test_every_section_has_an_example_in_every_language():
    languages = [set(section) - {"json", "text"} for section in SECTIONS.values() if section]
    every = {"sh", "python", "typescript"}
    assert languages == [every] * 11 + [{"bash", "python", "typescript"}, every]


@pytest.mark.parametrize(("path", "mask", "shown"), MASKS, ids=[f"{path} {mask}" for path, mask, _ in MASKS])
def test_a_mask_gives_what_the_page_shows(live, path, mask, shown):
    today = datetime.datetime.now(datetime.UTC).date()
    path = path.replace("$since", str(today - datetime.timedelta(days=30)))
    path = path.replace("$monday", str(today - datetime.timedelta(days=today.weekday() + 7)))
    response = httpx.get(f"{live.url}{API}{path}", headers={"Authorization": f"APIKEY {live.key}", "X-Fields": mask})
    if response.status_code == 200:
        assert f"`{response.text}`" == shown
    else:
        assert f"{response.status_code} {response.json()['error']}, `{response.json()['message']}`" == shown


def test_the_page_names_every_kind_of_error_with_its_status(document):
    described = json.loads(document.read_text())
    kinds_on_page = {kind for _, kinds in KINDS for kind in re.findall(r"`(\w+)`", kinds)}
    assert kinds_on_page == set(described["components"]["schemas"]["ErrorBody"]["properties"]["error"]["enum"])
    statuses = {status for path in described["paths"].values() for status in path["get"]["responses"]}
    assert {status for status, _ in KINDS} == {status for status in statuses if status >= "400"}


def test_the_operation_ids_that_the_page_names_are_those_of_the_document(document):
    paths = json.loads(document.read_text())["paths"].values()
    named = set(re.findall(r"`((?:list|get)[A-Z]\w+)`", PAGE))
    assert {"listDrivers", "listTrips"} <= named <= {path["get"]["operationId"] for path in paths}
