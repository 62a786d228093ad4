"""Post-training quantization of programs: layers become few-bit as a recipe says.

A layer is named by its weight: the constant `layers.0.mlp.up.weight` makes the layer
`layers.0.mlp.up`. Its float weight in the store is replaced by packed integers and their scales,
and its op gets the activations' width. Where another tool has chosen the integers and scales of a
weight (GPTQ, AWQ), `weights` has them, and they are packed as they are. The program that is given
is not changed; the one that is made shares the tensors that stay as they were.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.arith import ConstantOp as ArithConstantOp
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    f32,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.base.garbage import collect_rarely
from fewbit.base.progress import progress
from fewbit.base.spool import Spool
from fewbit.dialects.mico import (
    ConstantOp,
    EmbeddingOp,
    GetConstantOp,
    HadamardOp,
    LayerOp,
    QuantizedLayerOp,
    RefAttr,
    element_width,
    few_bit_type,
    shape_of,
)
from fewbit.errors import Error, FloatWeightsWarning, Place, UsageError
from fewbit.ir.layers import Layer, layer_name, layers, registered_layers
from fewbit.ir.locations import place_of
from fewbit.ir.symbols import SymbolTable, value_name
from fewbit.ir.verify import verify
from fewbit.numerics import Quantized
from fewbit.program.program import Program
from fewbit.program.references import weight_ref
from fewbit.program.store import BLOCK, WeightStore
from fewbit.quant.attention_scheme import quantize_attention
from fewbit.quant.cache_scheme import check_noted
from fewbit.quant.calibration import Calibration
from fewbit.quant.given import GivenWeights, check_names, check_shape, reconcile, same_weight
from fewbit.quant.large_weights import has_own_scales, pack_by_rows, quantize_by_rows
from fewbit.quant.recipe import Recipe, RecipeLike
from fewbit.quant.scheme import LayerScheme, check_blocks


@collect_rarely()
def quantize(
    program: Program,
    recipe: RecipeLike,
    calibration: Calibration | Mapping[str, float] | None = None,
    *,
    weights: GivenWeights | None = None,
    strict: bool = False,
) -> Program:
    """Quantize a program; `fewbit.quantize` takes models, too, and says what the arguments are."""
    recipe = Recipe.of(recipe)
    quantized = _Quantization(
        program, recipe, Calibration.of(calibration or {}), weights or {}
    ).program()
    from fewbit.quant.weights import float_weights, refuse_floats

    if strict:
        refuse_floats(quantized)
    elif (floats := float_weights(quantized)) is not None and floats.names:
        warnings.warn(str(floats), FloatWeightsWarning, stacklevel=2)
    return quantized


def schemes_of(program: Program, recipe: RecipeLike) -> dict[str, LayerScheme]:
    """The scheme of every layer, and of every weight that no layer reads.

    MiCo's lists go by the model's own order, which counts layers that are never called. A weight
    that no layer reads stays float whatever its scheme is, but a recipe may say that it is to.
    """
    from fewbit.quant.weights import unreached_weights

    recipe = Recipe.of(recipe)
    registered = registered_layers(program.module)
    known = dict.fromkeys((*layers(program.module), *unreached_weights(program)))
    others = [name for name in known if name not in registered]
    if recipe.order is not None and registered:
        return recipe.resolve(registered) | dict.fromkeys(others, LayerScheme())
    return recipe.resolve([*registered, *others])


@dataclass(frozen=True)
class _Stored:
    """Names and types of a quantized weight's constants."""

    weight: ConstantOp
    parts: dict[str, ConstantOp]
    """Its scale, and its zero point or offset, by the names that a layer has for them."""


class _Quantization:
    def __init__(
        self, given: Program, recipe: Recipe, calibration: Calibration, weights: GivenWeights
    ) -> None:
        self.given = given
        self.module = given.module.clone()
        self.calibration = calibration
        self.symbols = SymbolTable(self.module)
        self.originals = {
            op.sym_name.data: op for op in given.module.body.block.ops if isinstance(op, ConstantOp)
        }
        self.store, self.spool = WeightStore(), Spool()
        self.stored: dict[tuple[str, LayerScheme], _Stored] = {}
        self.layers = layers(self.module)
        if not self.layers:
            raise UsageError("the program has no layer whose weight could be quantized")
        check_noted(self.module, recipe.cache)
        self.schemes = schemes_of(Program(self.module, given.store), recipe)
        self.weights = dict.fromkeys(self._kept_as_given(), given.own_weights)
        self.weights |= dict.fromkeys(weights, weights)
        self.taken: dict[tuple[str, LayerScheme], str] = {}
        self.recipe = self._take(recipe)
        self.uses = self._uses()

    def _kept_as_given(self) -> list[str]:
        """The layers whose weights a recipe leaves open, and that the program has integers for."""
        schemes = {name: self.schemes.get(name, LayerScheme()) for name in self.given.own_weights}
        return [name for name, s in schemes.items() if s.weight is None and s.act is not None]

    def _take(self, recipe: Recipe) -> Recipe:
        """Note the weights that are given; the recipe with the schemes that they fill in.

        They may be read from a file, so none is held.
        """
        check_names(list(self.weights), list(self.schemes))
        filled: dict[str, LayerScheme] = {}
        for name, weights in self.weights.items():
            if name not in self.layers:
                continue  # Registered in the model, and never called.
            op, weight = self.layers[name][0], weights[name]
            check_shape(name, weight, cast(TensorType[Any], op.weight.type).get_shape())
            try:
                scheme, weight = reconcile(self.schemes[name], weight)
            except Error as e:
                raise e.at(layer=name) from None
            constant = _constant_name(op)
            other = self.taken.setdefault((constant, scheme), name)
            if other != name and not same_weight(weight, self._given(other, scheme)):
                raise UsageError(
                    f"two weights are given for '{constant}', which several layers share",
                    place=Place(layer=name),
                )
            if scheme != self.schemes[name]:
                filled[name] = scheme
        self.schemes |= filled
        if not filled:
            return recipe
        if recipe.order is not None:
            order = registered_layers(self.module) or list(self.layers)
            return recipe.with_layers(order=tuple(self.schemes[name] for name in order))
        if filled.keys() <= self.given.own_weights.keys():
            short = Recipe.with_exceptions(self.schemes)
            return recipe.with_layers(default=short.default, layers=short.layers)
        return recipe.with_layers(layers=recipe.layers | filled)

    def _given(self, name: str, scheme: LayerScheme) -> Quantized:
        """The weight that is given for a layer, in the form that its scheme says."""
        return reconcile(scheme, self.weights[name][name])[1]

    def _uses(self) -> dict[str, set[LayerScheme | None]]:
        """Map each constant to the schemes by which its weight is quantized, None for float."""
        uses: dict[str, set[LayerScheme | None]] = {}
        for read in self.module.walk():
            if not isinstance(read, GetConstantOp):
                continue
            name = read.symbol.root_reference.data
            for use in read.result.uses:
                op = use.operation
                scheme = None
                if isinstance(op, QuantizedLayerOp | EmbeddingOp) and op.weight is read.result:
                    scheme = self.schemes[layer_name(op) or ""]
                few_bit = scheme is not None and scheme.weight is not None
                uses.setdefault(name, set()).add(scheme if few_bit else None)
        return uses

    def program(self) -> Program:
        with progress("Quantizing", total=len(self.layers)) as step:
            for name, ops in self.layers.items():
                for op in ops:
                    self._quantize(name, op, self.schemes[name])
                step(1)
        if self.recipe.attention is not None:
            quantize_attention(self.module, self.recipe.attention)
        self._drop_unused()
        result = Program(self.module, self._complete_store(), str(self.recipe), self.given.files)
        verify(self.module, stage="quantize")
        return result

    def _quantize(self, name: str, op: Layer, scheme: LayerScheme) -> None:
        if scheme.is_float:
            return
        if element_width(op.weight.type) is not None:
            raise UsageError(
                "the layer is quantized already",
                place=place_of(op),
                hint="quantize the float program, or name the layer 'fp' in the recipe",
            ).at(layer=name)
        named: dict[str, Any] = dict(_attributes(op))
        weight: SSAValue = op.weight
        if scheme.weight is not None:
            stored = self._weight(name, op, scheme)
            weight = self._read(stored.weight, op)
            named |= {f"weight_{part}": self._read(c, op) for part, c in stored.parts.items()}
        if isinstance(op, QuantizedLayerOp) and scheme.act is not None:
            named["act_bits"] = scheme.act
            try:
                check_blocks(scheme, shape_of(op.weight.type))
            except Error as e:
                raise e.at(layer=name) from None
            if scheme.act_group is not None:
                named["act_group"] = scheme.act_group
            if scheme.static:
                named["act_scale"] = self._static_scale(name, op)
                if not scheme.symmetric:
                    zero_point = self._zero_point(name)
                    named["act_zero_point"] = self._scalar(IntegerAttr(zero_point, i32), op)
        operands = [op.operands[0], weight]
        if isinstance(op, QuantizedLayerOp):
            operands[0] = self._rotate(operands[0], scheme, op)
            operands += [op.bias] if op.bias is not None else []
        layer = cast(LayerOp, type(op).of(*operands, result_types=[op.result.type], **named))
        layer.location = op.location
        Rewriter.insert_op(layer, InsertPoint.before(op))
        result = layer.results[0]
        if isinstance(op, EmbeddingOp):
            result = self._rotate(result, scheme, op)
        result.name_hint = op.result.name_hint
        Rewriter.replace_op(op, [], [result])

    def _rotate(self, value: SSAValue, scheme: LayerScheme, before: Operation) -> SSAValue:
        """Return what a layer is given, rotated as its weight is; or rows of a table, back again.

        A rotation is its own inverse.
        """
        if scheme.hadamard is None:
            return value
        rotation = HadamardOp.of(value, block=scheme.hadamard)
        rotation.location = before.location
        Rewriter.insert_op(rotation, InsertPoint.before(before))
        return rotation.results[0]

    def _weight(self, name: str, op: Layer, scheme: LayerScheme) -> _Stored:
        """The constants of a layer's weight; layers that share weight and scheme share them."""
        constant = _constant_name(op)
        key = (constant, scheme)
        if key not in self.stored:
            try:
                if key in self.taken:
                    quantized = self._given(self.taken[key], scheme)
                else:
                    quantized = self._quantize_weight(constant, scheme)
            except Error as e:
                raise e.at(layer=name) from None
            shared = len(self.uses[constant]) > 1
            name = f"{constant}${scheme}" if shared else constant
            self.stored[key] = self._constants(name, constant, quantized)
        return self.stored[key]

    def _quantize_weight(self, constant: str, scheme: LayerScheme) -> Quantized:
        from fewbit.interpreter.mico.constants import constant_value

        op, store = self.originals[constant], self.given.store
        ref = weight_ref(op)
        if ref is None or store.nbytes(ref.key) <= BLOCK or not has_own_scales(scheme, ref.shape):
            return scheme.quantize_weight(constant_value(op, store))
        store.check(ref)
        return quantize_by_rows(store.blocks(ref.key), ref.shape, scheme, self.spool)

    def _constants(self, name: str, original: str, quantized: Quantized) -> _Stored:
        arrays: dict[str, tuple[npt.NDArray[Any], Attribute]] = {"scale": (quantized.scale, f32)}
        # Those of a symmetric weight beside asymmetric activations are 0, and do nothing.
        if quantized.zero_point is not None and quantized.zero_point.any():
            arrays["zero_point"] = (quantized.zero_point, i32)
        if quantized.offset is not None:
            arrays["offset"] = (quantized.offset, f32)
        parts = {
            part: self._constant(f"{name}.{part}", array, TensorType(element, array.shape))
            for part, (array, element) in arrays.items()
        }
        shape = quantized.values.shape
        packed = pack_by_rows(quantized.values.reshape(shape[0], -1), quantized.width, self.spool)
        few = TensorType(few_bit_type(quantized.width), shape)
        weight = self._constant(name, packed, few, parts)
        before = self.symbols[original]
        for op in (*parts.values(), weight):
            op.location = before.location
            Rewriter.insert_op(op, InsertPoint.before(before))
        return _Stored(weight, parts)

    def _constant(
        self,
        name: str,
        data: np.ndarray[Any, Any],
        type: TensorType[Any],
        parts: Mapping[str, ConstantOp] | None = None,
    ) -> ConstantOp:
        ref = self.store.add(name, data, spool=self.spool)
        named = {part: op.sym_name.data for part, op in (parts or {}).items()}
        return ConstantOp(name, type, RefAttr(ref.key, ref.sha256), **named)

    def _read(self, constant: ConstantOp, before: Operation) -> SSAValue:
        read = GetConstantOp(constant.sym_name.data, constant.type)
        read.location = before.location
        read.result.name_hint = value_name(constant.sym_name.data)
        Rewriter.insert_op(read, InsertPoint.before(before))
        return read.result

    def _static_scale(self, name: str, op: Operation) -> SSAValue:
        if name not in self.calibration:
            raise UsageError(
                f"the recipe asks for a static scale of '{name}', and calibration gave none",
                hint="pass calibration=fewbit.quant.calibrate(program, data, recipe); that of a "
                "torch model sees only modules, and functions of a weight as it is held",
            )
        return self._scalar(FloatAttr(float(self.calibration[name]), f32), op)

    def _zero_point(self, name: str) -> int:
        if name not in self.calibration.zero_points:
            raise UsageError(
                f"the recipe asks for a zero point of '{name}', and calibration gave none",
                hint="calibrate with the same recipe: fewbit.quant.calibrate(model, data, recipe)",
            )
        return self.calibration.zero_points[name]

    def _scalar(
        self, value: FloatAttr[Any] | IntegerAttr[IntegerType], before: Operation
    ) -> SSAValue:
        constant = ArithConstantOp(value)
        constant.location = before.location
        Rewriter.insert_op(constant, InsertPoint.before(before))
        return constant.result

    def _drop_unused(self) -> None:
        """Reads of float weights that nothing uses any more, and those weights."""
        for op in list(self.module.walk()):
            if isinstance(op, GetConstantOp) and not op.result.uses:
                Rewriter.erase_op(op)
        for (constant, _), stored in self.stored.items():
            original = self.symbols[constant]
            unused = stored.weight.sym_name.data == constant or None not in self.uses[constant]
            if unused and original.parent is not None:
                Rewriter.erase_op(original)

    def _complete_store(self) -> WeightStore:
        """Join what was made, and what the program still refers to of the old store."""
        constants = [op for op in self.module.body.block.ops if isinstance(op, ConstantOp)]
        keys = [op.value.key for op in constants if isinstance(op.value, RefAttr)]
        self.store.merge(self.given.store.select({k: k for k in keys if k not in self.store}))
        return self.store


def _constant_name(op: Layer) -> str:
    return cast(GetConstantOp, op.weight.owner).symbol.root_reference.data


def _attributes(op: LayerOp) -> Iterator[tuple[str, Any]]:
    for name in op.attribute_names():
        if name in op.properties:
            yield name, op.properties[name]
