"""Passes run in order, are verified in between, and are seen by dump, diff and timing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.passes import ModulePass

from fewbit.errors import PassError, UnsupportedError, VerifyError
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.pipeline.context import make_compile_context
from fewbit.pipeline.driver import Driver, Observer, Step
from fewbit.pipeline.observers import Diff, Dump, Timing

TEXT = "func.func @f() {\n  func.return\n}\n"


@dataclass(frozen=True)
class Rename(ModulePass):
    name = "rename"
    to: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            assert isinstance(function, FuncOp)
            function.sym_name = function.sym_name.__class__(self.to)


@dataclass(frozen=True)
class Break(ModulePass):
    """Leaves a function without its return."""

    name = "break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, ReturnOp):
                inner.detach()


@dataclass(frozen=True)
class Raise(ModulePass):
    name = "raise"
    kind: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.kind == "ours":
            raise UnsupportedError("cannot do this")
        raise KeyError("fc1")


def run(
    *passes: ModulePass,
    observers: tuple[Observer, ...] = (),
    verified: bool = True,
    module: ModuleOp | None = None,
) -> ModuleOp:
    module = parse_module(TEXT, "t.mlir") if module is None else module
    driver = Driver(make_compile_context(), {}, observers=observers, verify_passes=verified)
    driver.show(Step(0, "input", "input", 0.0), module)
    for each in passes:
        driver.run_pass(each, module)
    return module


def test_passes_run_in_order() -> None:
    assert "@h()" in print_module(run(Rename("g"), Rename("h")))


def test_invalid_input_is_refused_before_the_first_pass() -> None:
    module = parse_module(TEXT)
    Break().apply(Context(), module)
    with pytest.raises(VerifyError) as caught:
        run(Rename("g"), module=module)
    assert caught.value.place.stage is None


def test_a_pass_that_breaks_the_module_is_named() -> None:
    with pytest.raises(VerifyError) as caught:
        run(Rename("g"), Break(), Rename("h"))
    place = caught.value.place
    assert (place.op, place.stage, place.file, place.line) == ("func.func", "break", "t.mlir", 1)


def test_verification_can_be_left_out() -> None:
    run(Break(), verified=False)


def test_an_error_of_a_pass_keeps_its_kind_and_names_the_pass() -> None:
    with pytest.raises(UnsupportedError, match="in raise: cannot do this"):
        run(Raise("ours"))


def test_an_exception_of_a_pass_becomes_an_error() -> None:
    with pytest.raises(PassError, match="in raise: the pass failed: KeyError: 'fc1'") as caught:
        run(Raise("other"))
    assert isinstance(caught.value.__cause__, KeyError)


def test_every_stage_is_dumped_to_a_numbered_file(tmp_path: Path) -> None:
    run(Rename("g"), Rename("h"), observers=(Dump(tmp_path / "ir", print_module),))
    files = sorted((tmp_path / "ir").iterdir())
    assert [file.name for file in files] == ["00-input.mlir", "01-rename.mlir", "02-rename.mlir"]
    assert files[1].read_text().splitlines()[0] == '// fewbit-opt stage: rename{to="g"}'
    again = parse_module(files[2].read_text())
    assert "@h()" in print_module(again)


def test_a_dump_replaces_an_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "01-mine.mlir").write_text("// my own file\n")
    run(Rename("g"), Rename("h"), observers=(Dump(tmp_path, print_module),))
    run(Rename("g"), observers=(Dump(tmp_path, print_module),))
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "00-input.mlir",
        "01-mine.mlir",
        "01-rename.mlir",
    ]


def test_the_stage_that_fails_is_dumped_too(tmp_path: Path) -> None:
    with pytest.raises(VerifyError):
        run(Break(), observers=(Dump(tmp_path, print_module),))
    assert (tmp_path / "01-break.mlir").is_file()


def test_printing_an_invalid_module_does_not_hide_why_it_is_invalid() -> None:
    def unprintable(step: Step, module: ModuleOp) -> None:
        if step.name == "break":
            raise RuntimeError("cannot print")

    with pytest.raises(VerifyError):
        run(Break(), observers=(unprintable,))


def test_a_diff_shows_what_each_pass_changed() -> None:
    lines: list[str] = []
    run(Rename("g"), Rename("g"), observers=(Diff(lines.append, print_module),))
    assert lines[:2] == ["--- input", '+++ rename{to="g"}']
    assert "-  func.func @f() {" in lines
    assert "+  func.func @g() {" in lines
    assert lines[-1] == '// rename{to="g"}: no change'


def test_timing_lists_the_passes_and_their_sum() -> None:
    timing = Timing()
    run(Rename("g"), Rename("h"), observers=(timing,))
    first, second, total = timing.lines()
    assert first.endswith(' s  rename{to="g"}')
    assert second.endswith(' s  rename{to="h"}')
    assert total.endswith(" s  total")
