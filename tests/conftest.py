"""Settings for all tests: they see nothing of the user's, and leave nothing behind.

Home and cache are a temporary folder, named by environment variables, so that processes which tests
start have it too. Processes that run tests beside each other share it: kernels that one compiled are
there for all. The process that made the folder removes it.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings

from fewbit.base import progress
from fewbit.base.garbage import THRESHOLDS
from fewbit.pipeline.compilation import VERIFY

# Machines that run tests are busy: how long an example took says nothing about the code. What
# failed in an earlier run is not tried first in this one. Continuous integration tries the same
# examples each time, so that a change is judged by itself; other runs look for new ones.
settings.register_profile(
    "fewbit", deadline=None, database=None, derandomize=os.environ.get("CI") == "true"
)
settings.load_profile("fewbit")

MARK = "FEWBIT_TEST_HOME"
FOLDERS = {
    "HOME": "",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
CLEARED = (
    "FEWBIT_CACHE_DIR", "KERAS_BACKEND", "KERAS_HOME", "TORCH_HOME", "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_HOME", "TRITON_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "HF_HOME", "MPLCONFIGDIR",
)  # fmt: skip
"""Where a user may have said that something else is to be read."""

_made: Path | None = None


def pytest_configure() -> None:
    global _made
    gc.set_threshold(*THRESHOLDS)
    if MARK in os.environ:
        return
    _made = Path(mkdtemp(prefix="fewbit-tests-"))
    os.environ[MARK] = str(_made)
    os.environ[VERIFY] = "1"
    for name in CLEARED:
        os.environ.pop(name, None)
    for name, folder in FOLDERS.items():
        os.environ[name] = str(_made / folder)


def pytest_unconfigure() -> None:
    if _made is not None:
        os.environ.pop(MARK)
        shutil.rmtree(_made, ignore_errors=True)


@pytest.fixture(autouse=True)
def same_verbosity() -> Iterator[None]:
    """A test that calls a verb with `-q` does not silence those after it."""
    before = progress.verbosity()
    yield
    progress.set_verbosity(before)
