"""StableHLO modules as programs: the way in for JAX, Keras and TensorFlow.

`read` takes text or bytecode through the binaries of the wheels, `generic` makes plain objects of
it, `emit` writes the program: layers by `layers`, other ops of ours by `convert`, loops and
branches by `control_flow`, others through `islands`. Function calls are inlined. Constants, and
arguments that the caller declares to be weights, go to the program's store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region
from xdsl.transforms.dead_code_elimination import dce

from fewbit.base.files import PathLike
from fewbit.errors import ShapeError, UnsupportedError, UsageError
from fewbit.frontends.layers import find_layers
from fewbit.frontends.stablehlo.constants import Constant
from fewbit.frontends.stablehlo.convert import is_annotation
from fewbit.frontends.stablehlo.dense import Array
from fewbit.frontends.stablehlo.emit import Emitter, Output, Transposed
from fewbit.frontends.stablehlo.islands import PREFIX, unsupported_error
from fewbit.frontends.stablehlo.names import name_hint, parameter_path
from fewbit.frontends.stablehlo.ops import Function, Module, Op, TensorType, Value, all_ops
from fewbit.frontends.stablehlo.read import read_module
from fewbit.ir.context import make_context
from fewbit.ir.verify import verify
from fewbit.passes.graph.inline import Inline
from fewbit.pipeline.compilation import apply_passes
from fewbit.program.program import Program
from fewbit.program.store import WeightStore

Weights = Mapping[int, tuple[str, Array]]
"""Arguments that are no inputs: by position, what the model calls them and their data."""


def import_stablehlo(
    source: PathLike | bytes,
    weights: Weights | None = None,
    *,
    name: str | None = None,
    input_names: Sequence[str] = (),
    unused: Mapping[int, TensorType] | None = None,
) -> Program:
    """A program of a StableHLO file, or of its text or bytecode.

    `weights` are arguments of the entry function; those of a file `NAME.mlir` may also stand in
    `NAME.safetensors`, under the arguments' names. `input_names` are what the others are called.
    `unused` are inputs that the model has and the module does not, by position among the inputs.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    shown = name or ("<stablehlo>" if isinstance(source, bytes) else str(source))
    module = read_module(data, shown)
    if weights is None and not isinstance(source, bytes):
        weights = _weights_beside(Path(source), module)
    return _Import(module, weights or {}, input_names, unused or {}).program()


def _weights_beside(path: Path, module: Module) -> Weights:
    """Arguments that `NAME.safetensors` beside `NAME.mlir` has data for, by their names."""
    file, entry = path.with_suffix(".safetensors"), module.entry()
    if entry is None or not file.is_file():
        return {}
    store = WeightStore.open(file)
    named = {i: parameter_path(value.name) for i, value in enumerate(entry.body.arguments)}
    return {i: (name, store[name]) for i, name in named.items() if name in store}


class _Import:
    def __init__(
        self,
        module: Module,
        weights: Weights,
        input_names: Sequence[str],
        unused: Mapping[int, TensorType],
    ) -> None:
        entry = module.entry()
        if entry is None:
            raise UsageError(
                "the module has no function to start with",
                hint="name one 'main', or make one of them public",
            )
        self.entry = entry
        self.module = module
        self.weights = weights
        self.input_names = list(input_names)
        self.unused = unused

    def program(self) -> Program:
        self._check_types()
        output = Output(self.module)
        main = self._main(output)
        functions = output.islands.lower(make_context())
        for function in functions:
            function.properties["sym_visibility"] = StringAttr("private")
        ops: list[Operation] = [*output.constants, main, *functions]
        module = ModuleOp(ops)
        program = Program(module, output.store)
        if functions:
            apply_passes(program, Inline(only=(f"re:{re.escape(PREFIX)}.*",)))
        dce(module)
        program = find_layers(program)
        verify(module, stage="import")
        return program

    def _main(self, output: Output) -> FuncOp:
        arguments = self.entry.body.arguments
        if self.weights and max(self.weights) >= len(arguments):
            raise UsageError(f"the module has {len(arguments)} arguments, fewer than weights name")
        inputs = [value for i, value in enumerate(arguments) if i not in self.weights]
        for position, type in sorted(self.unused.items()):
            inputs.insert(position, Value(type))
        block = Block(arg_types=[value.tensor.signless() for value in inputs])
        emitter = Emitter(output, block)
        for i, (position_name, data) in self.weights.items():
            emitter.bind(arguments[i], self._weight(arguments[i], position_name, data))
        for i, (value, argument) in enumerate(zip(inputs, block.args, strict=True)):
            argument.name_hint = name_hint(
                self.input_names[i] if i < len(self.input_names) else value.name
            )
            emitter.bind(value, Transposed.plain(argument, value.tensor.rank))
        emitter.emit_block(self.entry.body)
        emitter.op = self.entry.body.ops[-1]
        results = [emitter.value(value) for value in self.entry.body.returned]
        block.add_op(ReturnOp(*results))
        types = ([arg.type for arg in block.args], [value.type for value in results])
        return FuncOp("main", types, Region(block))

    def _weight(self, argument: Value, name: str, data: Array) -> Constant:
        constant = Constant.of(np.asarray(data), parameter_path(name))
        if constant.type != argument.type:
            raise ShapeError(
                f"the weight '{name}' is {constant.type}, the module takes {argument.type}"
            )
        return constant

    def _check_types(self) -> None:
        """Refuse what no program holds, all at once: dynamic sizes, complex numbers, tokens."""
        for argument in self.entry.body.arguments:
            if isinstance(argument.type, str) and "?" in argument.type:
                raise UnsupportedError(
                    f"the input '{argument.name}' has a dynamic size: {argument.type}",
                    hint="export the model with static shapes",
                )
        values = (*self.entry.body.arguments, *self.entry.body.returned)
        for value in values:
            if isinstance(value.type, TensorType) and value.type.is_unsigned:
                raise UnsupportedError(
                    f"an input or output of unsigned integers, {value.type}",
                    hint="convert it inside of the model, from or to signed integers",
                )
        bad = [
            op
            for function in _reachable(self.module, self.entry)
            for op in all_ops(function.body)
            if _is_foreign(op)
        ]
        if bad:
            raise unsupported_error(bad)


NEVER = frozenset((
    "fft", "cholesky", "triangular_solve", "rng", "rng_bit_generator", "infeed", "outfeed",
    "send", "recv", "all_reduce", "all_gather", "all_to_all", "reduce_scatter",
    "collective_permute", "collective_broadcast", "after_all", "create_token",
    "get_tuple_element", "tuple",
))  # fmt: skip
"""Ops that nothing here computes; they are named together with all others that cannot be."""


def _is_foreign(op: Op) -> bool:
    if op.kind in NEVER or (op.kind == "custom_call" and not is_annotation(op)):
        return True
    if op.kind in ("call", "return"):
        return False
    return any(isinstance(value.type, str) for value in (*op.operands, *op.results))


def _reachable(module: Module, entry: Function) -> list[Function]:
    reachable = [entry]
    for function in reachable:
        for op in all_ops(function.body):
            callee = module.functions.get(_callee(op))
            if callee is not None and callee not in reachable:
                reachable.append(callee)
    return reachable


def _callee(op: Op) -> str:
    return op.symbol("callee") or op.symbol("decomposition")
