"""Files with personal data or secrets, which only their owner can read."""

import os
from pathlib import Path
from typing import IO, Any

# The permissions of a folder.
OWNER_ONLY = 0o700


def open_private(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Open a file to write, with the permissions 0600 if this creates it. `options` are further arguments of `open`."""
    return open(path, mode, opener=_open_for_owner, **options)


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
