"""Options that several verbs share mean the same in each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.errors import UsageError

VERBS = {
    "compile": ["compile"],
    "quantize": ["quantize", "-o", "OUT"],
    "eval": ["eval"],
    "bench": ["bench"],
    "bench model": ["bench", "model"],
    "inspect": ["inspect"],
    "inspect layers": ["inspect", "layers"],
    "inspect loops": ["inspect", "loops"],
    "tune": ["tune"],
    "tune search": ["tune", "search"],
    "tune prepare": ["tune", "prepare", "-t", "cuda", "-o", "OUT"],
}
"""Every verb that takes a recipe."""


@pytest.fixture
def untouched(tmp_path: Path) -> str:
    """A model that must not be imported."""
    file = tmp_path / "net.py"
    file.write_text("raise RuntimeError('the model was imported')")
    return f"{file}:net"


@pytest.mark.parametrize("recipe", ["wat", "w8a8,fc1", "missing.json"])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_recipe_is_checked_before_the_model_is_imported(
    verb: list[str],
    recipe: str,
    untouched: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [word.replace("OUT", str(tmp_path / "out")) for word in verb]
    assert guarded(run, [*words, untouched, "-r", recipe]) == 2
    shown = capsys.readouterr().err
    assert "imported" not in shown
    assert recipe.rpartition(",")[2] in shown


def test_a_recipe_is_checked_first_in_python_too(untouched: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="wat"):
        fewbit.compile(untouched, recipe="wat")
    with pytest.raises(UsageError, match="wat"):
        fewbit.quantize(untouched, "wat")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="wat"):
        fewbit.jit(untouched, recipe="wat")
