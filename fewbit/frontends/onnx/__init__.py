"""ONNX models as programs.

`load` reads the file, `validate` looks whether it is what it says, and `graph` decodes it.
`evaluate` runs it node by node on torch functions by the table in `ops` while torch traces
(`module`), which the importer of PyTorch's graphs takes over.
Constants have their names in the file; layers are named by their weights. Layers that the file has
quantized stay as they are (`given`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.errors import Error, MissingToolError, UnsupportedError

if TYPE_CHECKING:
    from onnx import ModelProto

    from fewbit.frontends import Shapes
    from fewbit.program.program import Program


def import_onnx(
    model: str | Path | ModelProto,
    input_shapes: Shapes | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Program:
    """The program of a model file.

    `input_shapes` are sizes of inputs, in order or by name, or of dynamic sizes by name. Inputs
    that `constants` gives values are built in: an op may need to know them, such as a shape.
    """
    try:
        import_module("onnx")
    except ImportError as error:
        raise MissingToolError(
            f"onnx cannot be imported: {error}", hint="pip install 'fewbit[onnx]'"
        ) from None
    from fewbit.frontends.onnx.load import check_opsets, load_model

    if isinstance(model, str | Path):
        path = Path(model)
        try:
            return _import(load_model(path), path.name, input_shapes, constants or {})
        except Error as error:
            raise error.at(file=path.name) from None
    check_opsets(model)
    return _import(model, "model.onnx", input_shapes, constants or {})


def _import(
    model: ModelProto, source: str, input_shapes: Shapes | None, constants: Mapping[str, Any]
) -> Program:
    from fewbit.frontends.onnx.functions import opsets_of
    from fewbit.frontends.onnx.fuse import fuse_bias
    from fewbit.frontends.onnx.given import with_given_layers
    from fewbit.frontends.onnx.graph import Reader
    from fewbit.frontends.onnx.inputs import (
        Input,
        dynamic_shapes,
        example_inputs,
        inputs_of,
        refuse_fixed,
        with_one_name,
    )
    from fewbit.frontends.onnx.module import OnnxModule, trace
    from fewbit.frontends.onnx.table import OneSizeError
    from fewbit.frontends.onnx.validate import validate
    from fewbit.frontends.torch import import_torch

    validate(model)
    opsets = opsets_of(model)
    functions = {
        ("" if f.domain == "ai.onnx" else f.domain, f.name, f.overload): f for f in model.functions
    }
    graph = Reader().graph(model.graph)
    check_ops(graph, opsets, functions, source)
    graph = fuse_bias(graph)
    known = {name: known_input(model, name, value) for name, value in constants.items()}
    inputs = inputs_of(graph, known, input_shapes)

    def traced(scale: int, inputs: Sequence[Input] = inputs) -> tuple[OnnxModule, Any]:
        module = OnnxModule(graph, inputs, known, opsets, source)
        module.evaluator.functions = functions
        examples = example_inputs(inputs, scale)
        try:
            return module, trace(module, examples, dynamic_shapes(inputs))
        except OneSizeError as error:
            renamed = with_one_name(inputs, examples, error.examples)
            if renamed is None:
                raise
            return traced(scale, renamed)

    module, exported = _at_some_size(traced, inputs)
    refuse_fixed(exported, inputs)
    program = import_torch(exported)
    name_inputs(program, [input.name for input in inputs])
    name_results(program, [output.name for output in model.graph.output])
    return with_given_layers(program, module.evaluator.given)


def _at_some_size(traced: Any, inputs: Sequence[Any]) -> Any:
    """Trace at small sizes, or at larger ones if the small are less than a window."""
    from fewbit.frontends.onnx.inputs import SCALES

    names = [size for input in inputs for size in input.shape if isinstance(size, str)]
    if not names:
        return traced(SCALES[0])
    refusals: list[Error] = []
    for scale in SCALES:
        try:
            return traced(scale)
        except Error as error:
            refusals.append(error)
    # The file may hold for some sizes only, whatever it declares.
    first = refusals[0]
    hint = first.hint or f"give sizes: --input-shape {names[0]}=1"
    if type(first) is not Error:
        first.hint = hint
        raise first from None
    what = f"{first.what}, with {names[0]!r} dynamic"
    raise UnsupportedError(what, place=first.place, hint=hint) from None


def check_ops(graph: Any, opsets: Mapping[str, int], functions: Any, source: str) -> None:
    """Refuse a graph with ops that are not known; name them all."""
    from fewbit.frontends.onnx.functions import is_defined

    bad = [
        node
        for node in graph.all_nodes()
        if (node.domain, node.op, node.overload) not in functions
        and not is_defined(node, opsets.get(node.domain, 1))
    ]
    if not bad:
        return
    lines = [f"  {_full_name(node)}: {source}:{node.number}, {node.name}" for node in bad]
    raise UnsupportedError(
        "these ops cannot be imported:\n" + "\n".join(line.rstrip(", ") for line in lines),
        hint="write them with other ops, or keep that part outside of the model",
    )


def _full_name(node: Any) -> str:
    return f"{node.domain}.{node.op}" if node.domain else node.op


def known_input(model: ModelProto, name: str, value: Any) -> Any:
    import numpy as np

    from fewbit.errors import UsageError
    from fewbit.frontends.onnx.kinds import array_held
    from fewbit.frontends.onnx.values import Known

    info = next((i for i in model.graph.input if i.name == name), None)
    if info is None:
        raise UsageError(
            f"a value is given for '{name}', which is no input of the model",
            hint=f"there are {', '.join(i.name for i in model.graph.input)}",
        )
    kind = info.type.tensor_type.elem_type
    return Known(array_held(np.asarray(value), kind), kind, name)


def name_inputs(program: Program, names: list[str]) -> None:
    """Call the arguments of the program as the file calls its inputs."""
    import re

    from fewbit.interpreter.signature import choose_function
    from fewbit.ir.symbols import SymbolTable

    entry = choose_function(SymbolTable(program.module), None)
    for argument, name in zip(entry.body.block.args, names, strict=False):
        word = re.sub(r"\W", "_", name, flags=re.ASCII)
        is_name = re.match(r"_*[A-Za-z]", word)
        argument.name_hint = word if is_name else f"input{word.strip('_')}"


def name_results(program: Program, names: list[str]) -> None:
    """Call the results of the program as the file calls its outputs."""
    from fewbit.interpreter.signature import choose_function
    from fewbit.ir.symbols import SymbolTable
    from fewbit.program.output_names import name_outputs

    entry = choose_function(SymbolTable(program.module), None)
    if len(entry.function_type.outputs) == len(names):
        name_outputs(entry, names)
