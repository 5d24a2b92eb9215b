"""What an installation, the image and compose.yaml need, which the tests do not install, build or start."""

import configparser
import dataclasses
import re

import pytest
import yaml

from app.config import Config
from tests.service_process import ROOT

COMPOSE_SETTINGS = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["service"]["environment"]


@pytest.fixture
def setup():
    """The file setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return setup


def test_the_lock_file_of_production_pins_all_that_setup_cfg_names(setup):
    extras = setup["options.extras_require"]
    needed = setup["options"]["install_requires"] + extras["mirror"] + extras["mcp"]
    names = {name.lower() for name in re.findall(r"^([\w.-]+)", needed, re.MULTILINE)}
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert {name.replace(".", "-") for name in names} <= {*pinned}


def test_the_image_has_each_file_that_the_service_and_its_installation_read():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    needed = {"app", "schemas", "scripts", "docs", "setup.cfg", "pyproject.toml", "requirements.lock", "wsgi.py"}
    assert needed | {"README.md", "LICENSE"} <= {line.removeprefix("!") for line in lines}


def test_the_image_serves_on_the_port_that_it_exposes_and_checks():
    dockerfile = (ROOT / "Dockerfile").read_text()
    (port,) = re.findall(r"^EXPOSE (\d+)", dockerfile, re.MULTILINE)
    assert f"BIND=0.0.0.0:{port}\n" in dockerfile
    assert f"HTTPConnection('127.0.0.1', {port}, timeout=2)" in dockerfile


def test_compose_sets_nothing_but_settings_that_can_be_used():
    assert COMPOSE_SETTINGS.keys() <= {field.name.upper() for field in dataclasses.fields(Config)}
    filled = {name: re.sub(r"\$\{\w+:[?-].*?\}", "", value) for name, value in COMPOSE_SETTINGS.items()}
    assert Config.from_environment(filled).counts_in_redis
