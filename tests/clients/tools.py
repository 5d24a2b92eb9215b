"""The programs that these tests run: those of the virtual environment, of npm, and of the system."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
NODE_MODULES = HERE / "node_modules"
# The programs do not check for updates, and npm does not speak of its own settings.
ENVIRONMENT = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(NODE_MODULES / ".bin"), os.environ["PATH"]]),
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "npm_config_update_notifier": "false",
    "npm_config_loglevel": "error",
}


def require(path: str | Path | None, remedy: str) -> Path:
    """Return the path of a program or file. Without it the test fails in CI, and is skipped elsewhere."""
    if path is None or not Path(path).exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(remedy)
    return Path(path)


def require_npm() -> Path:
    """Return the folder of what npm installed."""
    require(NODE_MODULES / ".installed", "npm's packages are not installed: 'make test-clients' does that")
    return NODE_MODULES


def run(*command: str | Path, cwd: Path = HERE, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with these programs: `run("redocly", "lint", path, KEY=...)`."""
    options: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "timeout": 300}
    return subprocess.run(command, cwd=cwd, env={**ENVIRONMENT, **environment}, **options)


def generate(*command: str | Path, **options: Any) -> None:
    """Run a generator of clients, which has to end well and without a warning."""
    completed = run(*command, **options)
    output = completed.stdout + completed.stderr
    assert completed.returncode == 0, output
    assert "warn" not in output.lower(), output
