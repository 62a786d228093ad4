"""IREE's messages: errors with status 0, and errors that lead back to a layer of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.parser import Parser

import fewbit
from fewbit.errors import ParseError, PassError, UnsupportedError
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


class Wide(nn.Module):
    """A layer, and a function of f64 behind it, which IREE does not have."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.fc, self.function = nn.Linear(8, 8), function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.fc(x).double())


def remainder(x: torch.Tensor) -> torch.Tensor:
    return torch.remainder(x, 0.3)


@pytest.mark.parametrize(
    ("function", "op", "words"),
    [
        (torch.sin, "math.sin", "undefined symbol: sin"),
        (torch.tan, "math.tan", "undefined symbol: cos"),
        (remainder, "arith.remf", "undefined symbol: fmod"),
        (torch.erf, "math.erf", "failed to legalize operation 'math.erf'"),
    ],
)
def test_a_function_that_iree_lacks_is_named_with_its_line(
    function: Callable[[torch.Tensor], torch.Tensor], op: str, words: str
) -> None:
    with pytest.raises(UnsupportedError, match=words) as caught:
        fewbit.compile(Wide(function), "iree-cpu", example_inputs=(torch.zeros(2, 8),))
    place, text = caught.value.place, str(caught.value)
    assert (place.op, Path(place.file or "").name) == (op, Path(__file__).name)
    assert "f32" in str(caught.value.hint)
    assert "fewbit-iree-" not in text
    assert "loc(" not in text


def test_what_iree_cannot_read_names_the_layer_and_no_temporary_file() -> None:
    def spoil(module: ModuleOp) -> None:
        context = Context(allow_unregistered=True)
        for op in module.walk():
            if isinstance(op, linalg.GenericOp):
                unknown = Parser(context, "#iree_codegen.no_such<1>").parse_attribute()
                op.attributes["info"] = unknown

    with pytest.raises(PassError) as caught:
        fewbit.compile(fewbit.Program.parse(TEXT), "iree-cpu", passes={"linalg": [spoil]})
    place = caught.value.place
    assert (place.file, place.line, place.layer) == ("net.py", 7, "model.fc")
    assert place.op == "linalg.generic"
    assert "unknown attribute `no_such`" in str(caught.value)
    assert "fewbit-iree-" not in str(caught.value)


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
