"""`fewbit export-dialect`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from xdsl.universe import Universe

from fewbit.cli import main
from fewbit.cli.export_dialect import Format, export
from fewbit.cli.guard import guarded
from fewbit.dialects.export.irdl import export_irdl
from fewbit.dialects.export.tablegen import export_tablegen
from fewbit.dialects.graph import Graph
from fewbit.errors import UnsupportedError


def test_irdl_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main.run, ["export-dialect", "graph"]) == 0
    assert capsys.readouterr().out == export_irdl(Graph)


def test_tablegen_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "GraphDialect.td"
    command = ["export-dialect", "graph", "--format", "tablegen", "-o", str(path)]
    assert guarded(main.run, command) == 0
    assert path.read_text() == export_tablegen(Graph)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["mica"], 2, "did you mean 'mico'?"),
        (["zzz"], 2, "known dialects: "),
        (["mico", "--format", "xml"], 2, "xml"),
        (["arith"], 3, "arith.fastmath"),
        (["builtin"], 3, "has no dialect in its name"),
        (["tensor", "-f", "tablegen"], 3, "op 'tensor."),
    ],
)
def test_mistakes(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(main.run, ["export-dialect", *arguments]) == status
    assert message in capsys.readouterr().err


def test_an_output_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(main.run, ["export-dialect", "graph", "-o", str(tmp_path)]) == 1
    assert "it is a folder" in capsys.readouterr().err


@pytest.mark.parametrize("format", Format)
def test_every_dialect_is_exported_or_refused_in_words(format: Format) -> None:
    exported: set[str] = set()
    for name, load in Universe.get_multiverse().all_dialects.items():
        with suppress(UnsupportedError):
            export(load(), format)
            exported.add(name)
    assert exported >= {"graph", "mico"}
