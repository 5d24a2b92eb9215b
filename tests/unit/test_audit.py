""".ci/audit: what it makes of what pip-audit finds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).parent.parent.parent / ".ci" / "audit"
SOUND = {"name": "a", "version": "1", "vulns": []}
HOLED = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}]}
UNKNOWN = {"name": "c", "skip_reason": "not found"}


@pytest.fixture
def audit(tmp_path):
    """Run it, with a pip-audit that prints this result for a service, or fails: `audit(pypi=[...], osv=None)`."""

    def audit(**responses):
        for service, result in responses.items():
            (tmp_path / service).write_text("" if result is None else json.dumps({"dependencies": result}))
        stub = tmp_path / "pip-audit"
        stub.write_text(f'#!/bin/sh\nwhile [ "$1" != -s ]; do shift; done\ncat "{tmp_path}/$2"\n')
        stub.chmod(0o755)
        path = f"{tmp_path}:{os.environ['PATH']}"
        return subprocess.run([sys.executable, AUDIT], env={"PATH": path}, capture_output=True, text=True, check=False)

    return audit


def test_a_lock_file_without_known_vulnerabilities_passes(audit):
    done = audit(pypi=[SOUND, UNKNOWN], osv=None)
    assert (done.returncode, done.stderr) == (0, "")
    assert "audit: pypi knows 1 of " in done.stdout


def test_a_known_vulnerability_fails_and_is_named(audit):
    done = audit(pypi=[SOUND, HOLED], osv=None)
    assert done.returncode == 1
    assert "audit: b 2: CVE-1, mended in 2.1\n" in done.stdout


def test_osv_is_queried_for_packages_unknown_to_pypi(audit):
    done = audit(pypi=[UNKNOWN], osv=[HOLED])
    assert (done.returncode, "CVE-1" in done.stdout) == (1, True)


@pytest.mark.parametrize("result", [None, [UNKNOWN]])
def test_the_audit_passes_with_a_message_if_no_database_responds(audit, result):
    done = audit(pypi=result, osv=None)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("audit: COULD NOT LOOK")
