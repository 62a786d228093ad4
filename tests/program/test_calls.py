"""Programs and artifacts called by name, and how they are shown."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.errors import UsageError
from fewbit.program.artifact import Manifest, Tensor, open_folder, write_folder
from fewbit.program.calls import Outputs, order_inputs
from fewbit.program.display import html_table, size_text
from fewbit.program.program import Program
from fewbit.runtime import Artifact

TEXT = """
func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (
    tensor<2xf32> {fewbit.name = "sum"}, tensor<2xf32> {fewbit.name = "a"}, tensor<2xf32>) {
  %0 = mico.add(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = mico.mul(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
"""
A, B = np.array([1, 2], np.float32), np.array([10, 20], np.float32)


def to_html(shown: Any) -> str:
    """Return it as a notebook asks for it."""
    return shown._repr_html_()


@pytest.fixture
def program() -> Program:
    return Program.parse(TEXT)


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return fewbit.compile(Program.parse(TEXT), "cpu", name="net")


def test_a_program_is_called_by_name(program: Program) -> None:
    outputs = program(b=B, a=A)
    np.testing.assert_array_equal(outputs.sum, A + B)
    np.testing.assert_array_equal(program(A, b=B)["output2"], A * B)
    assert outputs.keys() == ("sum", "new_a", "output2")
    assert outputs.a is outputs.new_a
    assert [name for name, _ in outputs.items()] == list(outputs.keys())


def test_names_are_kept_on_disk(program: Program, tmp_path: Path) -> None:
    program.save(tmp_path / "p")
    assert Program.load(tmp_path / "p").signature == program.signature


def test_an_artifact_is_called_by_name(artifact: Artifact) -> None:
    outputs = artifact(b=B, a=A, threads=1)
    np.testing.assert_array_equal(outputs.sum, A + B)
    np.testing.assert_array_equal(artifact.run(A, b=B).a, A * B)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((A,), {"bb": B}, r"no input 'bb'\nhint: did you mean 'b'"),
        ((), {"b": B}, r"input 'a' is missing\nhint: inputs are a, b"),
        ((A,), {"a": B}, "'a' is given twice"),
        ((A, B, A), {"a": B}, "takes 2 inputs"),
        ((A, B), {"trheads": 1}, r"no input 'trheads'\nhint: inputs are a, b"),
    ],
)
def test_wrong_names_are_refused(
    program: Program, artifact: Artifact, arguments: Any, named: Any, message: str
) -> None:
    for called in (program, artifact):
        with pytest.raises(UsageError) as caught:
            called(*arguments, **named)
        assert re.search(message, str(caught.value))


def test_state_is_given_whole_or_not_at_all() -> None:
    names = ["x", "keys", "values"]
    assert len(order_inputs(names, (), {"x": A}, {"keys", "values"})) == 1
    with pytest.raises(UsageError, match="'values' is missing"):
        order_inputs(names, (), {"x": A, "keys": A}, {"keys", "values"})


def test_structures_are_taken_apart_by_name() -> None:
    cache = SimpleNamespace(layers=[SimpleNamespace(keys=A), {"keys": B}], length=2)
    names = ["x", "cache_layers_0_keys", "cache_layers_1_keys"]
    given = order_inputs(names, (3,), {"cache": cache})
    assert given[0] == 3
    assert given[1] is A
    assert given[2] is B
    with pytest.raises(UsageError, match="'cache_layers_1_keys' is missing"):
        order_inputs(names, (3,), {"cache": SimpleNamespace(layers=[{"keys": A}])})


def test_outputs_are_a_tuple() -> None:
    outputs = Outputs((1, 2), ("index", "b"))
    first, second = outputs
    assert (first, second) == (1, 2) == outputs
    assert outputs["index"] == 1
    assert outputs[-1:] == (2,)
    assert pickle.loads(pickle.dumps(outputs)).b == 2
    with pytest.raises(UsageError, match="no result 'c'"):
        outputs["c"]
    with pytest.raises(AttributeError, match="no result 'c'"):
        outputs.c  # noqa: B018
    assert not hasattr(outputs, "shape")


def test_a_line_or_two(program: Program, artifact: Artifact) -> None:
    signature = "(a: 2xf32, b: 2xf32) -> (sum: 2xf32, new_a: 2xf32, output2: 2xf32)"
    assert repr(program) == f"Program(main{signature}, float, 0 B of weights)"
    assert repr(artifact).startswith(f"Artifact(net{signature}, cpu")
    assert "float" in repr(artifact)
    wide = ", ".join(f"%x{i}: tensor<2xf32>" for i in range(100))
    many = Program.parse(f"func.func @main({wide}) {{ return }}")
    assert len(repr(many)) < 200


def test_programs_without_an_entry_are_shown_too() -> None:
    program = Program.parse("func.func @f() { return }\nfunc.func @g() { return }")
    assert repr(program).startswith("Program(no single entry")
    assert "<table>" in to_html(program)


def test_html_has_inputs_outputs_target_recipe_and_size(
    program: Program, artifact: Artifact
) -> None:
    html = to_html(artifact)
    for text in ("a: 2xf32", "sum: 2xf32", "target", "cpu", "recipe", "float", "size", "kB"):
        assert text in html
    assert "sum: 2xf32" in to_html(program)


def test_html_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert('x')</script>&"
    tensor = Tensor(name=evil, shape=(None, 2), element="f32")
    manifest = Manifest(
        name=evil, target="cpu", compiler="0", inputs=(tensor,), outputs=(tensor,),
        recipe=evil, files={},
    )  # fmt: skip
    write_folder(tmp_path / "a", manifest, {"x": b"123"})
    html = to_html(Artifact(open_folder(tmp_path / "a")))
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "?x2xf32" in html


def test_long_tables_say_how_many_more() -> None:
    html = html_table("t", [f"x{i}" for i in range(20)], [], {})
    assert "and 12 more" in html
    assert "x19" not in html


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 B"), (999, "999 B"), (44_700, "44.7 kB"), (999_960, "1.0 MB")]
)
def test_sizes(nbytes: int, text: str) -> None:
    assert size_text(nbytes) == text
