"""The generic text of a module as objects, and these as text again."""

from __future__ import annotations

import pytest

from fewbit.errors import ParseError
from fewbit.frontends.stablehlo.generic import parse_generic, source_of
from fewbit.frontends.stablehlo.ops import TensorType, Value, captured_values, numbers_of, print_op

TEXT = """\
"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<2xf32> loc("x")):
    %0 = "stablehlo.constant"() <{value = dense<"0x0000803F00000040"> : tensor<2xf32>}> : () -> tensor<2xf32> loc(unknown)
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 0 : i64}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<f32>):
      %2 = "stablehlo.compare"(%arg1, %arg2) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%2) : (tensor<i1>) -> ()
    }) {mhlo.note = "a > b {"} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) loc("jit(f)/scope/sort"(callsite("f"("a.py":3:1) at "g"("b.py":7:2))))
    "func.return"(%1#1) : (tensor<2xf32>) -> () loc(unknown)
  }) : () -> () loc(unknown)
}) : () -> ()
"""


def test_ops_regions_and_uses() -> None:
    (function,) = parse_generic(TEXT).functions.values()
    constant, sort, ends = function.body.ops
    assert function.public
    assert function.body.arguments[0].name == "x"
    assert constant.attributes["value"].startswith('dense<"0x')
    assert sort.integer("dimension") == 0
    assert [str(value.type) for value in sort.results] == ["tensor<2xf32>"] * 2
    assert sort.regions[0].ops[0].word("comparison_direction") == "LT"
    assert ends.operands == [sort.results[1]]
    assert (sort.results[0].uses, sort.results[1].uses) == (0, 1)


def test_an_op_is_printed_as_it_was_read() -> None:
    sort = parse_generic(TEXT).functions["main"].body.ops[1]
    names: dict[Value, str] = {operand: f"%{i}" for i, operand in enumerate(sort.operands)}
    text = print_op(sort, names)
    again = parse_generic(
        '"builtin.module"() ({\n"func.func"() <{sym_name = "f"}> ({\n'
        f"^bb0(%0: tensor<2xf32>, %1: tensor<2xf32>):\n{text}"
        '"func.return"() : () -> ()\n}) : () -> ()\n}) : () -> ()'
    )
    op = again.functions["f"].body.ops[0]
    assert op.attributes == sort.attributes
    assert [inner.name for inner in op.regions[0].ops] == ["stablehlo.compare", "stablehlo.return"]


def test_what_a_region_reads_from_outside() -> None:
    text = TEXT.replace('"stablehlo.return"(%2)', '"stablehlo.return"(%3)').replace(
        "    %1:2 =", '    %3 = "stablehlo.iota"() : () -> tensor<i1>\n    %1:2 ='
    )
    body = parse_generic(text).functions["main"].body
    assert captured_values(body.ops[2]) == [body.ops[1].result]


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ('"jit(f)/a/add"(callsite("f"("x.py":3:1) at "g"("y.py":9:1)))', "jit(f)/a/add", 3),
        ('callsite("f"("x.py":3:1) at "g"("y.py":9:1))', "", 3),
        ('"x.py":4:5', "", 4),
        ('"model/dense"', "model/dense", None),
        ("unknown", "", None),
    ],
)
def test_locations(text: str, path: str, line: int | None) -> None:
    source = source_of(text)
    assert (source.path, source.line) == (path, line)


@pytest.mark.parametrize(
    "text",
    [
        "module {}",
        TEXT.replace("(%1#1)", "(%9)"),
        TEXT.replace('"stablehlo.return"(%2)', '^bb1:\n"stablehlo.return"(%2)'),
    ],
)
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_generic(text)


def test_types() -> None:
    assert TensorType.parse("tensor<2x3xbf16>") == TensorType((2, 3), "bf16")
    assert TensorType.parse("tensor<f32>") == TensorType((), "f32")
    assert TensorType.parse("tensor<?xf32>") is None
    assert TensorType.parse("tensor<2xcomplex<f32>>") is None
    assert str(TensorType((2, 3), "ui8").signless()) == "tensor<2x3xi8>"


def test_numbers_of_an_attribute() -> None:
    text = "#stablehlo.gather<offset_dims = [1, 2], index_vector_dim = 1>"
    assert numbers_of(text) == {"offset_dims": [1, 2], "index_vector_dim": [1]}
