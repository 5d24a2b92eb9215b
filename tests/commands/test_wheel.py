"""The project as `pip install` installs it, with one extra, in an empty folder and without the clone."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from tests.factories import make_trip
from tests.service_process import ROOT, ServiceProcess, wait_until

pytestmark = pytest.mark.large


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The programs of an environment with the extra `embedded`."""
    clone, environment = tmp_path_factory.mktemp("source") / "clone", tmp_path_factory.mktemp("environment")
    locks = "".join((ROOT / name).read_text() for name in ("requirements.lock", "requirements-run.lock"))
    pins = re.findall(r"^[\w.-]+==[^\\\n]+", locks, re.MULTILINE)
    (environment / "pins").write_text("\n".join(pins))
    untracked = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "node_modules")
    shutil.copytree(ROOT, clone, symlinks=True, ignore=untracked)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "-c", environment / "pins"]
    subprocess.run([*pip, f"{clone}[embedded]"], check=True)
    shutil.rmtree(clone)
    return environment / "bin"


@pytest.fixture(scope="module")
def service(programs, tmp_path_factory):
    """A running `serve --demo`, which has printed how to try it."""
    folder = tmp_path_factory.mktemp("empty")
    words = (programs / "driver-analytics", "serve", "--demo")
    with ServiceProcess(folder / "data", words=words, folder=folder) as service:
        service.read(13)
        yield service


@pytest.fixture
def run(programs, service, tmp_path):
    """Run a command on the store of the service, in another empty folder; return how it ended."""

    def run(*words):
        program = programs / "driver-analytics"
        settings = {"cwd": tmp_path, "env": {**service.environment, "MIRROR_KEY": "k"}, "stdin": subprocess.DEVNULL}
        return subprocess.run([program, *words], capture_output=True, text=True, check=False, **settings)

    return run


def test_the_demonstration_fleet_is_served(service):
    key = service.output[1].split()[-1]
    assert service.get("/drivers", key)[1]["count"] == 20
    assert service.output[-1].startswith("Last week's report as a page: ")


@pytest.mark.parametrize(
    "path", ["/", "/explorer/main.js", "/api/v1/docs", "/api/v1/docs/docs.js", "/api/v1/docs/data.md"]
)
def test_pages_and_documents_are_served(service, path):
    with service.open(path) as response:
        assert response.status == 200


def test_a_file_is_imported_and_served(run, service, tmp_path):
    (tmp_path / "trips").write_text(json.dumps(make_trip()))
    assert run("import", "--fleet", "f1", "--trips", "trips").returncode == 0
    key = run("keys", "issue", "--fleet", "f1").stdout.strip()
    assert service.get("/drivers", key)[1]["count"] == 1


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("export", "export --fleet demo --out out --format parquet"),
        ("mirror", "mirror --from http://127.0.0.1 --fleet f1"),
        ("mcp", "mcp"),
        ("mcp", "mcp --http 127.0.0.1:8011"),
    ],
)
def test_a_missing_extra_is_named_in_one_line(run, extra, words):
    ended = run(*words.split())
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert ended.stderr.startswith(f"Error: The extra {extra} is not installed (")


def test_the_openapi_document_is_that_of_the_service(run, service):
    assert json.loads(run("openapi").stdout)["paths"] == service.get("/openapi.json")[1]["paths"]


def test_gunicorn_serves_with_the_settings_of_the_package(programs, mongod_uri, tmp_path):
    words = (programs / "gunicorn", "-c", "python:scripts.server.gunicorn_conf", "wsgi:app")
    with ServiceProcess(tmp_path, words=words, folder=tmp_path, MONGODB_URI=mongod_uri) as process:
        wait_until(process.responds)
        assert process.get("/healthz") == (200, {"status": "ok"})
