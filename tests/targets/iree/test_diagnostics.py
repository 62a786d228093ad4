"""IREE's messages: errors with status 0, and errors that lead back to a layer of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.parser import Parser

import fewbit
from fewbit.errors import ParseError, PassError
from fewbit.targets.iree.diagnostics import error_of, read_messages

TEXT = """
mico.constant @w : tensor<512x512xf32> = dense<1.0>
func.func @main(%x: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %w = mico.get_constant @w : tensor<512x512xf32>
  %y = mico.bitlinear(%x, %w) : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32> loc("model.fc"("net.py":7:3))
  func.return %y : tensor<256x512xf32>
}
"""


HUGE = """
#iree_codegen.compilation_info<
  lowering_config = #iree_cpu.lowering_config<distribution = [64, 256, 0], vector_common_parallel = [64, 256, 0], vector_reduction = [0, 0, 2]>,
  translation_info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>>
"""


def test_an_error_with_status_0_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "net.mlir"
    path.write_text(
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    )
    flag = "--iree-preprocessing-pass-pipeline=builtin.module(no-such-pass)"
    with pytest.raises(PassError, match="'no-such-pass' does not refer to a registered pass"):
        fewbit.compile(str(path), "iree-cpu", iree_flags=[flag])


def test_an_error_names_the_layer_and_its_line() -> None:
    def break_layer(module: ModuleOp) -> None:
        """Ask for tiles of more elements than any processor has registers for."""
        context = Context(allow_unregistered=True)
        for op in module.walk():
            if isinstance(op, linalg.GenericOp):
                op.attributes["compilation_info"] = Parser(context, HUGE).parse_attribute()

    with pytest.raises(PassError) as caught:
        fewbit.compile(fewbit.Program.parse(TEXT), "iree-cpu", passes={"linalg": [break_layer]})
    place = caught.value.place
    assert (place.layer, place.file, place.line) == ("model.fc", "net.py", 7)
    assert place.stage == "iree-compile"


def test_a_syntax_error_shows_file_line_and_caret(tmp_path: Path) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(
        "func.func @f(%a: f32) -> f32 {\n  %b = arith.addf %a, %c : f32\n  return %b : f32\n}\n"
    )
    with pytest.raises(ParseError) as caught:
        fewbit.compile(str(path), "iree-cpu")
    assert (caught.value.place.file, caught.value.place.line) == (str(path), 2)
    line, caret = str(caught.value.excerpt).splitlines()
    assert line[caret.index("^") :].startswith("%c")


def test_messages_are_told_apart() -> None:
    text = "a.mlir:3:5: warning: slow\nb:1:1: error: 'foo.bar' op is bad\n  foo\n  ^\nc:1:1: note: see\n"
    warning, error = read_messages(text)
    assert (warning.kind, warning.file, warning.line, warning.column) == ("warning", "a.mlir", 3, 5)
    assert (error.kind, error.what, error.excerpt) == ("error", "'foo.bar' op is bad", "  foo\n  ^")


@pytest.mark.parametrize(
    ("status", "stderr", "words"),
    [
        (-11, "", "crashed"),
        (245, "include the crash backtrace.", "crashed"),
        (3, "out of luck", "out of luck"),
        (0, "ERROR: mismatched parenthesis", "mismatched parenthesis"),
    ],
)
def test_ends_without_a_message(status: int, stderr: str, words: str) -> None:
    assert words in str(error_of(status, stderr))


def test_no_error() -> None:
    assert error_of(0, "x.mlir:1:1: warning: slow") is None
