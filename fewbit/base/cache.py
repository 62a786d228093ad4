"""Where fewbit keeps what it can get again: compiled tiles, measurements, data."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_VARIABLE = "FEWBIT_CACHE_DIR"


def cache_folder() -> Path:
    """Return `FEWBIT_CACHE_DIR`, or `fewbit` in the user's cache folder."""
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fewbit"
