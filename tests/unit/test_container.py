"""Dockerfile and compose.yaml agree with the settings, and with what the image needs."""

import dataclasses
import json
import re
import tomllib

import pytest
import yaml

from app.config import API, Config
from scripts.mongodb.embedded_mongod import TRANSACTION_SECONDS
from scripts.server.gunicorn_server import SETTINGS
from tests.service_process import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
SETTING_NAMES = {field.name.upper() for field in dataclasses.fields(Config)}


def instructions(name):
    """Return the arguments of each instruction of this name, in the last stage of the Dockerfile."""
    stage = DOCKERFILE.rpartition("\nFROM ")[2]
    return re.findall(rf"^{name} +(.*)", stage, re.MULTILINE)


def in_image():
    """Return the paths that .dockerignore leaves in the image, as git lists them."""
    return {line.removeprefix("!") for line in IGNORED if line.startswith("!")}


@pytest.fixture(scope="module")
def environment():
    """The variables that the image sets."""
    return dict(pair.split("=", 1) for line in instructions("ENV") for pair in line.split())


def test_it_runs_the_production_command_as_another_user_than_root():
    assert json.loads(instructions("CMD")[0]) == ["driver-analytics", "serve"]
    assert int(instructions("USER")[0]) > 0


def test_it_serves_on_the_port_that_it_exposes_and_checks(environment):
    (port,) = instructions("EXPOSE")
    assert Config.from_environment(environment).bind == f"0.0.0.0:{port}"
    (check,) = instructions("HEALTHCHECK")
    assert f"HTTPConnection('127.0.0.1', {port}, timeout=2)" in check
    assert f"request('GET', '{API}/livez')" in check
    assert SERVICES["service"]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_the_health_check_is_a_program_that_compiles():
    name, option, program = json.loads(re.search(r"CMD (\[.*\])", instructions("HEALTHCHECK")[0])[1])
    assert (name, option) == ("python", "-c")
    compile(program, "HEALTHCHECK", "exec")


def test_the_image_has_each_file_that_the_service_and_its_installation_read():
    packages = {name.partition(".")[0] for name in setup_packages()}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    assert build["build-backend"] == "setuptools.build_meta"
    needed = {"setup.cfg", "pyproject.toml", "wsgi.py", SETTINGS.name, "requirements.lock", "README.md", "LICENSE"}
    assert in_image() == packages | needed | {"docs"}
    assert all((ROOT / name).exists() for name in in_image())


def setup_packages():
    text = (ROOT / "setup.cfg").read_text()
    return re.search(r"^packages =\n((?: +\S+\n)+)", text, re.MULTILINE)[1].split()


def test_compose_sets_nothing_but_settings():
    assert SERVICES["service"]["environment"].keys() <= SETTING_NAMES


def test_compose_takes_the_secret_key_from_the_environment_and_demands_it():
    assert SERVICES["service"]["environment"]["SECRET_KEY"].startswith("${SECRET_KEY:?")


def test_the_settings_of_compose_can_be_used():
    filled = {
        name: re.sub(r"\$\{\w+:[?-].*?\}", "", value) for name, value in SERVICES["service"]["environment"].items()
    }
    config = Config.from_environment(filled)
    assert (config.counts_in_redis, config.mongodb_uri) == (True, "mongodb://mongodb:27017/?replicaSet=rs0")


def test_the_service_waits_until_mongodb_is_a_replica_set_and_redis_responds():
    healthy = {"condition": "service_healthy"}
    assert SERVICES["service"]["depends_on"] == {"mongodb": healthy, "redis": healthy}
    check = SERVICES["mongodb"]["healthcheck"]["test"][-1]
    assert 'rs.initiate({_id: "rs0", members: [{_id: 0, host: "mongodb:27017"}]})' in check
    assert "--replSet rs0" in " ".join(SERVICES["mongodb"]["command"])


def test_mongodb_ends_open_transactions_as_early_as_the_embedded_one():
    assert SERVICES["mongodb"]["command"][-1] == f"transactionLifetimeLimitSeconds={TRANSACTION_SECONDS}"


def test_the_data_of_mongodb_are_in_a_volume():
    assert [volume.partition(":")[0] for volume in SERVICES["mongodb"]["volumes"]] == [*COMPOSE["volumes"]]
