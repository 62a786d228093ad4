"""The exported IRDL, loaded by MLIR's own tools: good programs pass, bad ones are refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, f32, i32
from xdsl.ir import Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    eq,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_region_def,
    param_def,
    prop_def,
    result_def,
    successor_def,
)
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.export.irdl import export_irdl
from fewbit.dialects.graph import Graph
from fewbit.dialects.mico import IntType, Mico
from fewbit.errors import Error, UnsupportedError
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify

CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parents[2]
TOOLS = ("iree-opt", "torch-mlir-opt")
DIALECTS = {"mico": Mico, "graph": Graph}
SEPARATOR = "// -----\n"


def good(name: str) -> list[ModuleOp]:
    """Programs that are right: those of the corpus, and the examples of the dialect's page."""
    page = (ROOT / "docs" / "dialects" / f"{name}.md").read_text(encoding="utf-8")
    corpus = (CORPUS / f"{name}.mlir").read_text(encoding="utf-8").split(SEPARATOR)
    examples = re.findall(r"```mlir\n(.*?)```", page, re.DOTALL)
    return [parse_module(part) for part in (*corpus, *examples)]


def generic(module: ModuleOp) -> str:
    """Return the form for tools that know the dialect from IRDL.

    There `graph.return` ends no block, because IRDL has no traits. An op that the tool does not
    know at all may end one, so it takes the place of the terminator.
    """
    text = print_module(module, generic=True, properties_as_attributes=True)
    return text.replace('"graph.return"', '"outside.return"')


def run_tool(
    tool: str, folder: Path, dialect: Dialect, text: str, *options: str
) -> subprocess.CompletedProcess[str]:
    irdl, program = folder / "dialect.mlir", folder / "program.mlir"
    irdl.write_text(export_irdl(dialect))
    program.write_text(text)
    command = [str(Path(sys.executable).with_name(tool)), f"--irdl-file={irdl}", str(program)]
    options = ("--split-input-file", "--allow-unregistered-dialect", *options)
    return subprocess.run([*command, *options], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_good_corpus_has_every_op_type_and_attribute(name: str) -> None:
    used = {op.name for module in good(name) for op in module.walk()}
    assert {op.name for op in DIALECTS[name].operations} <= used
    text = "".join(map(generic, good(name)))
    for attribute in DIALECTS[name].attributes:
        assert re.search(rf"[!#]{re.escape(attribute.name)}\b", text), attribute.name


@pytest.mark.parametrize("name", DIALECTS)
def test_the_good_corpus_is_valid(name: str) -> None:
    for module in good(name):
        verify(module)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_mlir_accepts_the_good_corpus_and_gives_it_back(
    tmp_path: Path, tool: str, name: str
) -> None:
    modules = good(name)
    done = run_tool(tool, tmp_path, DIALECTS[name], SEPARATOR.join(map(generic, modules)))
    assert done.returncode == 0, done.stderr
    returned = done.stdout.replace('"outside.return"', '"graph.return"').split(SEPARATOR)
    assert len(returned) == len(modules)
    for module, text in zip(modules, returned, strict=True):
        again = parse_module(text)
        verify(again)
        assert again.is_structurally_equivalent(module)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_mlir_refuses_the_bad_corpus(tmp_path: Path, tool: str, name: str) -> None:
    """Each module says which error it must give; no other may come, and none be missing."""
    text = (CORPUS / f"{name}_bad.mlir").read_text()
    done = run_tool(tool, tmp_path, DIALECTS[name], text, "--verify-diagnostics")
    assert done.returncode == 0, done.stderr


def bad_modules() -> list[str]:
    texts = [(CORPUS / f"{name}_bad.mlir").read_text() for name in DIALECTS]
    return [part for text in texts for part in text.split(SEPARATOR)]


@pytest.mark.parametrize("text", bad_modules())
def test_fewbit_refuses_the_bad_corpus(text: str) -> None:
    assert "expected-error" in text
    with pytest.raises(Error):
        verify(parse_module(text.replace("outside.return", "graph.return")))


def test_every_width_and_no_other(tmp_path: Path) -> None:
    parts: list[str] = []
    for width in range(-1, 20):
        if not _is_width(width):
            what = f"'{width} : i64' does not satisfy the constraint"
            parts.append(f"// expected-error @below {{{{{what}}}}}\n")
        parts.append(f"func.func private @f(tensor<2x!mico.int<{width}>>)\n{SEPARATOR}")
    done = run_tool("iree-opt", tmp_path, Mico, "".join(parts), "--verify-diagnostics")
    assert done.returncode == 0, done.stderr


def _is_width(width: int) -> bool:
    try:
        IntType(width)
    except VerifyException:
        return False
    return True


@pytest.mark.parametrize("name", DIALECTS)
def test_the_committed_file_is_up_to_date(name: str) -> None:
    committed = ROOT / "docs" / "dialects" / f"{name}.irdl.mlir"
    assert committed.read_text() == export_irdl(DIALECTS[name]), (
        f"run: fewbit export-dialect {name} -o docs/dialects/{name}.irdl.mlir"
    )


# Constraints that our own dialects do not use


@irdl_attr_definition
class EvenType(ParametrizedAttribute, TypeAttribute):
    name = "trial.even"

    value: IntegerAttr = param_def()

    def verify(self) -> None:
        if self.value.value.data % 2:
            raise VerifyException("odd")


@irdl_op_definition
class SameOp(IRDLOperation):
    """Both operands have one type."""

    name = "trial.same"

    lhs = operand_def(VarConstraint("T", base(EvenType) | eq(f32)))
    rhs = operand_def(VarConstraint("T", base(EvenType) | eq(f32)))
    choice = prop_def(eq(IntegerAttr(1, i32)) | eq(IntegerAttr(2, i32)))
    result = result_def(eq(f32))


@irdl_op_definition
class JumpOp(IRDLOperation):
    name = "trial.jump"

    target = successor_def()


@irdl_op_definition
class MaybeOp(IRDLOperation):
    name = "trial.maybe"

    body = opt_region_def()


SAME = """func.func @f(%x: {lhs}, %y: {rhs}) {{
  %0 = "trial.same"(%x, %y) {{choice = {choice}}} : ({lhs}, {rhs}) -> f32
  return
}}"""


@pytest.mark.parametrize(
    ("lhs", "rhs", "choice", "accepted"),
    [
        ("f32", "f32", "1 : i32", True),
        ("!trial.even<100>", "!trial.even<100>", "2 : i32", True),
        ("!trial.even<100>", "!trial.even<102>", "2 : i32", False),
        ("f32", "!trial.even<100>", "1 : i32", False),
        ("f64", "f64", "1 : i32", False),
        ("f32", "f32", "3 : i32", False),
        ("f32", "f32", "1 : i64", False),
    ],
)
def test_variables_equality_and_choices(
    tmp_path: Path, lhs: str, rhs: str, choice: str, accepted: bool
) -> None:
    trial = Dialect("trial", [SameOp], [EvenType])
    text = SAME.format(lhs=lhs, rhs=rhs, choice=choice)
    done = run_tool("torch-mlir-opt", tmp_path, trial, text)
    assert (done.returncode == 0) == accepted, done.stderr


@pytest.mark.parametrize("op", [JumpOp, MaybeOp])
def test_what_irdl_cannot_say_is_an_error(op: type[IRDLOperation]) -> None:
    with pytest.raises(UnsupportedError, match=op.name):
        export_irdl(Dialect("trial", [op]))
