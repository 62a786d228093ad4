"""Models in Python files: what their factories may import, and when."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fewbit.frontends.locate import find_module

NET = """
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "lib"))
sys.path.append(str(HERE / "more"))
import fewbit_test_first

def net():
    import fewbit_test_first, fewbit_test_second, fewbit_test_beside
    return fewbit_test_first.VALUE, fewbit_test_second.VALUE + fewbit_test_beside.VALUE
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, folder in (("first", "lib"), ("second", "more"), ("beside", ".")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"fewbit_test_{name}.py").write_text(f"VALUE = '{name}'")
        monkeypatch.delitem(sys.modules, f"fewbit_test_{name}", raising=False)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path / "net.py"


def test_changes_of_the_path_hold_when_the_factory_is_called(file: Path) -> None:
    before = [*sys.path]
    module = find_module(f"{file}:net")
    assert module is not None
    assert (module.model, module.inputs) == ("first", ("secondbeside",))
    folder = file.parent.resolve()
    assert sys.path == [str(folder / "lib"), *before, str(folder / "more")]


def test_a_folder_that_is_on_the_path_stays_there(file: Path) -> None:
    sys.path.append(str(file.parent.resolve()))
    find_module(f"{file}:net")
    assert sys.path.count(str(file.parent.resolve())) == 1
