"""The package itself: what `import fewbit` costs, what it offers, and that its metadata agree."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import fewbit

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "torch_mlir", "iree", "xdsl", "numpy", "rich", "typer", "llvmlite", "pydantic")
IMPORT_SECONDS = 0.3


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_loads_no_library() -> None:
    loaded = run_python("import fewbit, sys; print(*{m.partition('.')[0] for m in sys.modules})")
    assert "fewbit" in loaded.split()
    assert set(loaded.split()).isdisjoint(HEAVY)


def test_import_is_fast() -> None:
    timed = "import time; t = time.perf_counter(); import fewbit; print(time.perf_counter() - t)"
    assert min(float(run_python(timed)) for _ in range(5)) < IMPORT_SECONDS


@pytest.mark.parametrize("name", fewbit.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(fewbit, name) is not None
    assert name in dir(fewbit)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'quantise'"):
        _ = fewbit.quantise  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def test_public_names_lead_to_their_homes() -> None:
    from fewbit.ir.parse import parse_module
    from fewbit.ir.verify import verify

    assert fewbit.parse is parse_module
    assert fewbit.verify is verify
    assert fewbit.errors.Error.__module__ == "fewbit.errors"


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert fewbit.__version__ == project["version"] == metadata.version("fewbit")


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "fewbit" / "py.typed").is_file()


def test_torch_is_pinned_exactly() -> None:
    assert "torch==2.13.0" in (metadata.requires("fewbit") or [])
