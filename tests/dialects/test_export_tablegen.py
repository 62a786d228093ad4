"""The exported TableGen: what it says, and that the committed files say it too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.dialects.builtin import (
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    f32,
    i64,
)
from xdsl.ir import Dialect, ParametrizedAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    eq,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    param_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import HasAncestor, HasCanonicalizationPatternsTrait
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.export.tablegen import export_tablegen
from fewbit.dialects.graph import Graph, SubgraphOp
from fewbit.dialects.mico import Mico
from fewbit.errors import UnsupportedError

COMMITTED = Path(__file__).parents[2] / "docs" / "dialects"
FILES = {"MiCoDialect.td": Mico, "GraphDialect.td": Graph}


def record(text: str, name: str) -> str:
    """Return one `def`, from its name to its closing brace."""
    match = re.search(rf"^def {name} :.*?^}}$", text, re.MULTILINE | re.DOTALL)
    assert match is not None, f"{name} is not in the text"
    return match[0]


@pytest.mark.parametrize("name", FILES)
def test_the_committed_file_is_up_to_date(name: str) -> None:
    assert (COMMITTED / name).read_text() == export_tablegen(FILES[name]), (
        f"run: fewbit export-dialect {FILES[name].name} -f tablegen -o docs/dialects/{name}"
    )


@pytest.mark.parametrize("name", FILES)
def test_every_definition_is_there_once(name: str) -> None:
    text = export_tablegen(FILES[name])
    prefix = name.removesuffix("Dialect.td")
    for definition in (*FILES[name].operations, *FILES[name].attributes):
        word = definition.name.split(".", 1)[1]
        assert f'"{word}"' in record(text, f"{prefix}_{definition.__name__}")
    definitions = re.findall(r"^def (\w+)", text, re.MULTILINE)
    assert len(definitions) == len(set(definitions))


def test_a_layer() -> None:
    text = record(export_tablegen(Mico), "MiCo_BitLinearOp")
    assert 'MiCo_Op<"bitlinear", [AttrSizedOperandSegments, Pure]>' in text
    assert "RankedTensorOf<[AnyFloat, MiCo_IntType, MiCo_TernaryType]>:$weight" in text
    assert "Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$weight_scale" in text
    assert "OptionalAttr<I32Attr>:$weight_bits" in text
    assert "operandSegmentSizes" not in text
    assert "let hasVerifier = 1;" in text


def test_the_widths_are_in_the_verifier() -> None:
    text = record(export_tablegen(Mico), "MiCo_IntType")
    assert "width.getInt() < 1 || width.getInt() > 8" in text


def test_a_subgraph() -> None:
    text = export_tablegen(Graph)
    subgraph = record(text, "Graph_SubgraphOp")
    for part in ("IsolatedFromAbove", "Symbol", "TypeAttrOf<FunctionType>", "SizedRegion<1>:$body"):
        assert part in subgraph
    returned = record(text, "Graph_ReturnOp")
    for part in ('ParentOneOf<["SubgraphOp"]>', "Terminator", "Variadic<AnyType>:$arguments"):
        assert part in returned


# Constraints that our own dialects do not use


@irdl_attr_definition
class GappyAttr(ParametrizedAttribute):
    name = "trial.gappy"

    value: IntegerAttr = param_def()

    def verify(self) -> None:
        if self.value.value.data not in (1, 2, 4):
            raise VerifyException("not a power of two")


@irdl_attr_definition
class PairAttr(ParametrizedAttribute):
    name = "trial.pair"

    left: StringAttr = param_def()
    right: FloatAttr = param_def()


@irdl_op_definition
class WideOp(IRDLOperation):
    name = "trial.wide"

    many = var_operand_def(eq(IntegerType(8, Signedness.UNSIGNED)) | base(TensorType))
    perhaps = opt_operand_def(eq(i64))
    pair = prop_def(base(PairAttr) | base(StringAttr))
    number = prop_def(IntegerAttr.constr())
    irdl_options = (AttrSizedOperandSegments(),)
    real = prop_def(FloatAttr.constr(base(Float32Type)))


@irdl_op_definition
class RewrittenOp(IRDLOperation):
    name = "trial.rewritten"

    traits = traits_def(HasCanonicalizationPatternsTrait())


@irdl_op_definition
class OddOp(IRDLOperation):
    name = "trial.odd"

    traits = traits_def(HasAncestor(SubgraphOp))


@irdl_op_definition
class ExactOp(IRDLOperation):
    name = "trial.exact"

    value = operand_def(eq(TensorType(f32, [2])))


def test_other_constraints() -> None:
    text = export_tablegen(Dialect("trial", [WideOp], [PairAttr]))
    wide = record(text, "Trial_WideOp")
    assert "Variadic<AnyTypeOf<[UI8, AnyRankedTensor]>>:$many" in wide
    assert "Optional<I64>:$perhaps" in wide
    assert "AnyAttrOf<[Trial_PairAttr, StrAttr]>:$pair" in wide
    assert "APIntAttr:$number" in wide
    assert "F32Attr:$real" in wide
    assert "hasVerifier" not in wide
    pair = record(text, "Trial_PairAttr")
    assert '"::mlir::StringAttr":$left, "::mlir::FloatAttr":$right' in pair


def test_rewrites_are_left_out() -> None:
    text = export_tablegen(Dialect("trial", [RewrittenOp]))
    assert 'Trial_Op<"rewritten", []>' in text


@pytest.mark.parametrize(
    ("dialect", "what"),
    [
        (Dialect("trial", [OddOp]), "HasAncestor"),
        (Dialect("trial", [ExactOp]), "tensor<2xf32>"),
        (Dialect("trial", [], [GappyAttr]), r"\[1, 2, 4"),
    ],
)
def test_what_has_no_counterpart_is_an_error(dialect: Dialect, what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        export_tablegen(dialect)
