"""The types that openapi-typescript makes of the document."""

import json

import pytest

pytestmark = pytest.mark.clients

OPTIONS = ("--strict", "--target", "es2022", "--module", "nodenext")
EXAMPLE = """\
import createClient from "openapi-fetch";
import type { components, paths } from "./api.d.ts";

const headers = { Authorization: `APIKEY ${process.env.KEY}` };
const client = createClient<paths>({ baseUrl: process.env.SERVICE, headers });
const { data, error } = await client.GET("/api/v1/drivers", { params: { query: { limit: 2 } } });
if (error) throw new Error(`${error.error}: ${error.message}`);
const next: number | null = data.next_page;
const names = data.drivers.map((driver: components["schemas"]["Driver"]) => driver.first_name ?? driver.driver_id);
console.log(JSON.stringify({ next, names }));
"""


WRONG = [
    ("data.drivers.map", "data.riders.map"),
    ("number | null", "number"),
    ("driver.first_name ?? driver.driver_id", "driver.first_name.length"),
    ("limit: 2", 'limit: "2"'),
    ("/api/v1/drivers", "/api/v1/driver"),
    ("if (error) throw new Error(`${error.error}: ${error.message}`);", ""),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, document, node_modules, make_client):
    """A folder with the types, the example, and what npm installed."""
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "node_modules").symlink_to(node_modules)
    make_client("openapi-typescript", document, "--output", folder / "api.d.ts")
    (folder / "example.mts").write_text(EXAMPLE)
    return folder


@pytest.fixture(scope="module")
def compiled(folder, run):
    """What the compiler says of the example, and of each wrong one."""
    for number, (valid, wrong) in enumerate(WRONG):
        assert EXAMPLE.count(valid) == 1
        (folder / f"wrong-{number}.mts").write_text(EXAMPLE.replace(valid, wrong))
    return run("tsc", *OPTIONS, *sorted(folder.glob("*.mts")), cwd=folder).stdout


def test_an_example_of_ten_lines_compiles_and_runs(compiled, folder, run, live):
    assert len(EXAMPLE.splitlines()) == 10
    assert "example.mts" not in compiled
    ran = run("node", "example.mjs", cwd=folder, SERVICE=live.url, KEY=live.key)
    assert (json.loads(ran.stdout or "null"), ran.stderr) == ({"next": 2, "names": ["Amina", "Benjamin"]}, "")


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_the_service_does_not_promise_does_not_compile(compiled, number):
    assert f"wrong-{number}.mts(" in compiled, WRONG[number]
