"""Programs in the documentation are programs, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.ir import Dialect

from fewbit.dialects.graph import Graph
from fewbit.dialects.kernel import Kernel
from fewbit.dialects.mico import Mico
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from tests.commands import run_python

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHER = {"dialect.md", "cli.md", "passes.md", "weights.md"}
"""Pages whose blocks need a plug-in, are fragments, or are wrong on purpose."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in OTHER], ids=lambda p: p.name)
def test_programs_of_a_page_round_trip(page: Path) -> None:
    for text in blocks(page, "mlir"):
        module = parse_module(text, page.name)
        verify(module)
        printed = print_module(module)
        assert print_module(parse_module(printed)) == printed


@pytest.mark.parametrize("dialect", [Mico, Graph, Kernel], ids=lambda dialect: dialect.name)
def test_reference_shows_every_op(dialect: Dialect) -> None:
    page = ROOT / "docs" / "dialects" / f"{dialect.name}.md"
    shown = "".join(blocks(page, "mlir"))
    for op in dialect.operations:
        assert re.search(rf"\b{re.escape(op.name)}\b", shown), op.name


def test_python_of_the_import_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(ROOT / "docs" / "pytorch.md", "python")
    run_python(code)
    assert capsys.readouterr().out.startswith("(1, 17, ")


def test_python_of_the_page_on_other_frameworks_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax", reason="JAX is not installed (pip install 'fewbit[jax]')")
    (code,) = blocks(ROOT / "docs" / "frontends.md", "python")
    run_python(code)
    assert capsys.readouterr().out.count("[[") == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
