"""The lock files, the Makefile and .pre-commit-config.yaml agree with one another."""

import configparser
import re

import pytest
import yaml

from tests.service_process import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()


def read_pins(name):
    """Return what a lock file pins: packages and versions, without the markers that say where."""
    return {*re.findall(r"^([\w.-]+)==([^ ]+) .*\\$", (ROOT / name).read_text(), re.MULTILINE)}


def requirements(*extras):
    """Return the packages that setup.cfg names for running and for extras."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options"]["install_requires"].splitlines()
    for extra in extras:
        lines += setup["options.extras_require"][extra].splitlines()
    names = [re.match(r"[\w.-]+", line.strip()) for line in lines if line and not line.startswith("#")]
    return {name[0].lower().replace(".", "-").replace("_", "-") for name in names if name}


def extras():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return [*setup["options.extras_require"]]


LOCKS = {
    "requirements.lock": ["reports", "build"],
    "requirements-run.lock": ["reports", "build", "lock", "embedded", "mcp"],
    "requirements-dev.lock": extras(),
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_pins_all_that_setup_cfg_names(name):
    assert requirements(*LOCKS[name]) <= {package for package, _ in read_pins(name)}


@pytest.mark.parametrize("name", LOCKS)
def test_the_smaller_lock_files_pin_what_the_largest_pins(name):
    assert read_pins(name) <= read_pins("requirements-dev.lock")


def test_production_does_not_install_what_only_development_needs():
    production = {package for package, _ in read_pins("requirements.lock")}
    assert production.isdisjoint(requirements("embedded", "test", "lock", "mcp") - requirements("reports", "build"))


def test_every_target_is_explained_or_a_part_of_others():
    phony = re.search(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE)[1].split()
    explained = re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)
    assert {*phony} - {*explained} == {"resilience-tools"}


def test_pre_commit_runs_what_make_lint_runs():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1]
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [hook["entry"] for hook in local["hooks"]]
    assert entries == re.findall(r"^\t@(.*)", recipe.replace("$(BIN)", ".venv/bin"), re.MULTILINE)
    assert not any(hook["pass_filenames"] for hook in local["hooks"])
