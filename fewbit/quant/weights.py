"""The weights of a program, and those of them that stay float.

A weight is a constant by which a run multiplies what it computes: that of a layer, or a matrix in
any other contraction, such as a `matmul` of its own, also where it is computed from other
constants first, as weight norms are. So is a table of which a run looks up rows, to add them or to
compute with them; rows that only scale something, such as the sines of a rotation, are none.
Vectors are not weights either: they are biases, norms and frequencies.

Values are followed from the constants on, through functions and the bodies of loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, tensor
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, SSAValue

from fewbit.dialects.mico import (
    ConcatOp,
    ConstantOp,
    EmbeddingOp,
    FlattenOp,
    GetConstantOp,
    LayerOp,
    MulOp,
    QuantizedLayerOp,
    ReshapeOp,
    TransposeOp,
    element_width,
    shape_of,
)
from fewbit.dialects.mico.types import is_float_tensor
from fewbit.dialects.upstream.ml_program import GlobalLoadOp
from fewbit.dialects.upstream.tensor import GatherOp, RankOp
from fewbit.errors import FloatWeightsError, UsageError
from fewbit.ir.layers import WEIGHT, layer_name, layers, registered_layers
from fewbit.ir.symbols import SymbolTable, using
from fewbit.passes.graph.calls import Call, Callable, callee_of
from fewbit.program.float_weights import FloatWeights
from fewbit.program.program import Program
from fewbit.program.references import constant_bytes
from fewbit.quant.recipe import Recipe


@dataclass(frozen=True)
class Origin:
    """What is known of a value."""

    computed: bool = False
    """Whether it depends on the inputs of the run."""
    constants: frozenset[str] = frozenset()
    """The float constants behind it; of a computed value, the tables of which it is rows."""


CONSTANT, COMPUTED = Origin(), Origin(computed=True)


def float_weights(program: Program) -> FloatWeights | None:
    """The weights that stay float; None for a program that has no few-bit ones, or none other."""
    constants = _constants(program)
    few = [op for op in constants.values() if element_width(op.type) is not None]
    if not few and program.recipe is None:
        return None
    weights = _float_constants(program, constants)
    if not weights:
        return None
    asked = [name for name, layers in weights.items() if _is_asked(program, layers)]
    floats = (constants[name] for name in weights)
    size = {op.sym_name.data: constant_bytes(op, program.store) for op in (*few, *floats)}
    share = sum(size[name] for name in weights) / max(sum(size.values()), 1)
    return FloatWeights(
        names=tuple(name for name in weights if name not in asked),
        asked=tuple(asked),
        weights=len(size),
        percent=round(100 * share, 1),
    )


def refuse_floats(program: Program) -> None:
    """Refuse a program with weights that stay float although no recipe asks for it."""
    if program.recipe is None and not _has_few_bits(program):
        raise UsageError(
            "the program is not quantized, so all of its weights are float",
            hint="give a recipe, such as w8a8, or do not ask for strictness",
        )
    floats = float_weights(program)
    if floats is None or not floats.names:
        return
    raise FloatWeightsError(
        f"{floats.amount}, {floats.stay} float: {', '.join(floats.names)}",
        hint="name them in the recipe as they are to be (NAME=fp), or write them as layers",
    )


def unreached_weights(program: Program) -> list[str]:
    """The float weights that no layer reads, as a recipe would call them."""
    weights = _float_constants(program, _constants(program))
    own = layers(program.module)
    return [name for names in weights.values() for name in sorted(names) if name not in own]


def _has_few_bits(program: Program) -> bool:
    return any(element_width(op.type) is not None for op in _constants(program).values())


def _constants(program: Program) -> dict[str, ConstantOp]:
    ops = program.module.body.block.ops
    return {op.sym_name.data: op for op in ops if isinstance(op, ConstantOp)}


def _is_asked(program: Program, layers: set[str]) -> bool:
    """Return whether the recipe itself leaves a weight float that these layers read."""
    if program.recipe is None:
        return False
    recipe, registered = Recipe.of(program.recipe), registered_layers(program.module)
    if recipe.order is None:
        schemes = {layer: recipe.layer(layer) for layer in layers}
    elif len(registered) == len(recipe.order):
        schemes = recipe.resolve(registered)
    else:
        return False
    return all(layer in schemes and schemes[layer].weight is None for layer in layers)


def _float_constants(program: Program, constants: Mapping[str, ConstantOp]) -> dict[str, set[str]]:
    """Float weights, each with the layers that read it, as a recipe would call them."""
    trace = _Trace(constants)
    with using(SymbolTable(program.module)):
        for op in program.module.body.block.ops:
            if isinstance(op, Callable):
                trace.call(op, [COMPUTED] * len(op.function_type.inputs))
    return trace.weights


class _Trace:
    """Follows values through functions; a callee is gone through once for what it is given."""

    def __init__(self, constants: Mapping[str, ConstantOp]) -> None:
        self.constants = constants
        self.weights: dict[str, set[str]] = {}
        self.origins: dict[SSAValue, Origin] = {}
        self.called: dict[tuple[Callable, tuple[Origin, ...]], list[Origin]] = {}

    def call(self, callee: Callable, given: Sequence[Origin]) -> list[Origin]:
        key = (callee, tuple(given))
        if key not in self.called:
            self.called[key] = []
            for block in callee.body.blocks:
                self.called[key] = self._block(block, given)
        return self.called[key]

    def _block(self, block: Block, given: Sequence[Origin]) -> list[Origin]:
        """The origins of what the last op of a block hands on."""
        self.origins.update(zip(block.args, given, strict=False))
        for op in block.ops:
            self.origins.update(zip(op.results, self._results(op), strict=False))
        return [] if block.last_op is None else self._of(block.last_op.operands)

    def _of(self, values: Iterable[SSAValue]) -> list[Origin]:
        return [self.origins.get(value, COMPUTED) for value in values]

    def _results(self, op: Operation) -> Sequence[Origin]:
        given = self._of(op.operands)
        if isinstance(op, Call):
            callee = callee_of(op)
            return [COMPUTED] * len(op.results) if callee is None else self.call(callee, given)
        return [self._result(op, given)] * len(op.results)

    def _result(self, op: Operation, given: Sequence[Origin]) -> Origin:
        match op:
            case GetConstantOp():
                name = op.symbol.root_reference.data
                return Origin(
                    constants=frozenset([name] if is_float_tensor(op.result.type) else ())
                )
            case tensor.EmptyOp() | tensor.DimOp() | RankOp():
                return CONSTANT
            case GlobalLoadOp():
                return COMPUTED
            case tensor.ExtractOp() | tensor.ExtractSliceOp() | GatherOp():
                return _looked_up(given[0], _join(given[1:]))
            case MulOp() | arith.MulfOp() if all(origin.computed for origin in given):
                return COMPUTED
            case LinalgStructuredOperation():
                return self._loops(op, given)
            case QuantizedLayerOp() | EmbeddingOp():
                self._multiply(given[1], given[0], layer=layer_name(op), vectors=True)
                self._use_rows(given)
            case ReshapeOp() | TransposeOp() | ConcatOp() | FlattenOp() | MulOp():
                pass
            case LayerOp() | arith.AddfOp() | arith.SubfOp():
                self._use_rows(given)
            case _:
                pass
        return _join([*given, *self._regions(op)])

    def _loops(self, op: LinalgStructuredOperation, given: Sequence[Origin]) -> Origin:
        """The origin of the elements that an op computes; factors of its sums are weights."""
        results = self._block(op.body.block, given)
        if IteratorTypeAttr.reduction() in op.get_iterator_types().data:
            for product in op.body.block.ops:
                if isinstance(product, arith.MulfOp):
                    left, right = self._of(product.operands)
                    self._multiply(left, right)
                    self._multiply(right, left)
                    self._use_rows((left, right))
        return _join(results)

    def _regions(self, op: Operation) -> list[Origin]:
        """Return what the regions of an op hand on; those of tensor ops are given indices only."""
        given = CONSTANT if op.dialect_name() == "tensor" else COMPUTED
        blocks = (block for region in op.regions for block in region.blocks)
        return [origin for b in blocks for origin in self._block(b, [given] * len(b.args))]

    def _multiply(
        self, factor: Origin, other: Origin, layer: str | None = None, vectors: bool = False
    ) -> None:
        if other.computed and not factor.computed:
            self._note(factor.constants, layer, vectors)

    def _use_rows(self, given: Iterable[Origin]) -> None:
        for origin in given:
            if origin.computed:
                self._note(origin.constants)

    def _note(self, names: frozenset[str], layer: str | None = None, vectors: bool = False) -> None:
        ordered = [name for name in self.constants if name in names] if names else []
        matrices = [name for name in ordered if _is_matrix(self.constants[name])]
        for name in matrices or (ordered if vectors else ()):
            self.weights.setdefault(name, set()).add(layer or name.removesuffix(WEIGHT))


def _is_matrix(constant: ConstantOp) -> bool:
    return sum(size != 1 for size in shape_of(constant.type)) > 1


def _looked_up(source: Origin, index: Origin) -> Origin:
    """Return what an index takes out of a tensor; by one that a run computes, rows of a table."""
    if source.computed or not index.computed:
        return source
    return Origin(computed=True, constants=source.constants)


def _join(origins: Iterable[Origin]) -> Origin:
    """The origin of what is computed from several; of constants beside rows, nothing is known."""
    known = list(origins)
    computed = any(origin.computed for origin in known)
    behind = [origin.constants for origin in known if origin.computed is computed]
    return Origin(computed, frozenset[str]().union(*behind))
