"""Tests see nothing of the user's home, and leave it as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir

import pytest

from fewbit.base.cache import cache_folder
from fewbit.cost.hardware.host import host
from fewbit.tune.database import Database, Key, Result, default_path, versions_of
from fewbit.tune.iree.apply import PACKAGES, TARGET
from fewbit.tune.schedule import Schedule

ROOT = Path(__file__).resolve().parent.parent


def test_the_home_of_tests_is_a_temporary_folder() -> None:
    temporary = Path(gettempdir()).resolve()
    for path in (Path.home(), cache_folder(), default_path()):
        assert path.resolve().is_relative_to(temporary)
    assert Path(os.environ["FEWBIT_TEST_HOME"]) == Path.home()


def test_processes_that_tests_start_have_it_too() -> None:
    code = "from fewbit.base.cache import cache_folder; print(cache_folder())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(cache_folder())


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME", "FEWBIT_CACHE_DIR"])
def test_what_a_user_has_tuned_changes_no_test(tmp_path: Path, variable: str) -> None:
    """A compile for IREE with tuned tiles goes another way, on which errors say less."""
    home = tmp_path / "home"
    below = {"HOME": ".cache/fewbit", "XDG_CACHE_HOME": "fewbit", "FEWBIT_CACHE_DIR": "."}
    key = Key(TARGET, "4px5px6r", host().identity, versions_of(*PACKAGES))
    result = Result(key, Schedule((4, 0), (2, 16)), 0.5, 0.01, 1e-3, 12, "analytic")
    Database(home / below[variable] / "tuning.db").put(result)
    before = contents(home)
    inner = {name: value for name, value in os.environ.items() if name != "FEWBIT_TEST_HOME"}
    for name in ("XDG_CACHE_HOME", "FEWBIT_CACHE_DIR"):
        inner.pop(name, None)
    test = "tests/targets/iree/test_diagnostics.py::test_an_error_names_the_layer_and_its_line"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test],
        cwd=ROOT,
        env={**inner, variable: str(home), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert contents(home) == before
    assert [path.name for path in temporary.iterdir() if path.name.startswith("fewbit")] == []
