"""Reads a SavedModel, or a `.keras` file, with TensorFlow and writes it as StableHLO.

It is run as a script by whichever Python has TensorFlow, and so imports nothing of fewbit's. The
graph is loaded as TensorFlow 1 did, which needs no Keras classes and also takes older models; its
variables become arguments of the function that XLA compiles, so that they keep their names.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib import import_module
from typing import Any, Protocol

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"


class Size(Protocol):
    size: int


class Shape(Protocol):
    dim: list[Size]
    unknown_rank: bool


class TensorInfo(Protocol):
    name: str
    dtype: int
    tensor_shape: Shape


class Signature(Protocol):
    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]


def main(path: str, folder: str, shapes: str, signature: str = "") -> None:
    if os.path.isdir(path):
        export(path, folder, json.loads(shapes), signature)
        return
    os.environ["KERAS_BACKEND"] = "tensorflow"
    keras = import_module("keras")
    model = keras.saving.load_model(path, compile=False, safe_mode=True)
    with tempfile.TemporaryDirectory() as saved:
        model.export(saved, verbose=False)
        export(saved, folder, json.loads(shapes), signature)


def export(path: str, folder: str, shapes: list[str] | None, signature: str) -> None:
    import numpy as np

    tf = import_module("tensorflow")
    graph_def, variables, chosen = freeze(tf, path, signature)
    inputs = sorted(chosen.inputs.items())
    outputs = [info.name for _, info in sorted(chosen.outputs.items())]
    wrapped = tf.compat.v1.wrap_function(
        lambda: tf.compat.v1.import_graph_def(graph_def, name=""), []
    )
    tensors = [info.name for _, info in inputs] + [f"{name}:0" for name in variables]
    feeds = [wrapped.graph.as_graph_element(name) for name in tensors]
    pruned = wrapped.prune(feeds, [wrapped.graph.as_graph_element(name) for name in outputs])
    given = [example(tf, inputs[i], shapes, i, len(inputs)) for i in range(len(inputs))]
    arguments = [*given, *(tf.constant(array) for array in variables.values())]
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in arguments]

    def call(*arguments: Any) -> list[Any]:
        return tf.nest.flatten(pruned(*arguments))

    compiled = tf.function(call, jit_compile=True, input_signature=specs)
    text = compiled.experimental_get_compiler_ir(*arguments)(stage="stablehlo")
    with open(os.path.join(folder, "module.mlir"), "w") as file:
        file.write(text)
    declared = {} if shapes else {name: sizes(info) for name, info in inputs}
    named = {str(len(inputs) + i): name for i, name in enumerate(variables)}
    with open(os.path.join(folder, "arguments.json"), "w") as file:
        names = [name for name, _ in inputs]
        json.dump({"weights": named, "inputs": names, "declared": declared}, file)
    arrays = {key: variables[name] for key, name in named.items()}
    np.savez(os.path.join(folder, "weights.npz"), allow_pickle=False, **arrays)


def freeze(tf: Any, path: str, signature: str) -> tuple[Any, dict[str, Any], Signature]:
    """The graph with its variables as constants, these by name, and the signature."""
    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph, v1.Session() as session:
        meta = v1.saved_model.load(session, ["serve"], path)
        signatures: dict[str, Signature] = dict(meta.signature_def)
        chosen = signatures[pick(signatures, signature)]
        names = [info.name.split(":")[0] for info in chosen.outputs.values()]
        before = {node.name for node in graph.as_graph_def().node if node.op == "Const"}
        graph_def = v1.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), names
        )
    variables = {
        node.name: tf.make_ndarray(node.attr["value"].tensor)
        for node in graph_def.node
        if node.op == "Const" and node.name not in before
    }
    return graph_def, variables, chosen


def pick(signatures: dict[str, Signature], wanted: str) -> str:
    if not wanted:
        wanted = "serving_default" if "serving_default" in signatures else next(iter(signatures))
    if wanted not in signatures:
        raise SystemExit(f"there is no signature '{wanted}'; there are {', '.join(signatures)}")
    return wanted


def sizes(info: TensorInfo) -> list[int | None]:
    """The shape of an input, with None for what the model leaves open."""
    return [None if d.size < 0 else d.size for d in info.tensor_shape.dim]


def example(
    tf: Any, named: tuple[str, TensorInfo], shapes: list[str] | None, i: int, count: int
) -> Any:
    """A tensor of an input's shape and type; a batch that is left open is 1."""
    name, info = named
    dtype = tf.as_dtype(info.dtype)
    if shapes is None:
        if info.tensor_shape.unknown_rank:
            raise SystemExit(f"the shape of the input '{name}' is not known; give --input-shape")
        declared = sizes(info)
        if None in declared[1:]:
            text = "x".join("?" if size is None else str(size) for size in declared)
            raise SystemExit(
                f"the input '{name}' leaves sizes open: {text}; give them, --input-shape"
            )
        return tf.zeros([1 if size is None else size for size in declared], dtype)
    if len(shapes) != count:
        raise SystemExit(f"the model has {count} inputs, not {len(shapes)}")
    text = shapes[i].partition(":")[0]
    return tf.zeros([int(size) for size in text.split("x")], dtype)


if __name__ == "__main__":
    main(*sys.argv[1:])
