"""Imports models that were changed at random: `python -m tests.frontends.onnx.fuzz HOW FIRST COUNT`.

It is a process of its own, with a limit on memory: what is looked for may crash it. The last line
that it printed says what it was about to import.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import Message
from onnx import TensorProto, helper, numpy_helper

from fewbit.errors import Error
from fewbit.frontends import import_model
from tests.frontends.onnx.graphs import floats, model, node

MEMORY = 24 << 30
"""The limit of address space; torch reserves many gigabytes of it."""


def convolution() -> Any:
    nodes = [
        node("Conv", ["x", "conv.weight", "conv.bias"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["c"], ["r"]),
        node("Reshape", ["r", "shape"], ["f"]),
        node("Gemm", ["f", "fc.weight"], ["y"], transB=1),
    ]
    constants = {
        "conv.weight": floats(4, 3, 3, 3), "conv.bias": floats(4),
        "shape": np.array([1, 64]), "fc.weight": floats(5, 64),
    }  # fmt: skip
    return model(nodes, {"x": [1, 3, 8, 8]}, ["y"], constants)


def quantized() -> Any:
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        node("DequantizeLinear", ["w", "w.scale"], ["wd"], axis=1),
        node("MatMul", ["d", "wd"], ["y"]),
    ]
    constants = {
        "scale": np.array(0.1, np.float32), "zero": np.array(3, np.uint8),
        "w": np.arange(-12, 12, dtype=np.int8).reshape(4, 6), "w.scale": np.full(6, 0.2, np.float32),
    }  # fmt: skip
    return model(nodes, {"x": ["batch", 4]}, ["y"], constants)


def branches() -> Any:
    def branch(op: str) -> Any:
        out = helper.make_tensor_value_info("b", TensorProto.FLOAT, [2, 3])
        return helper.make_graph([node(op, ["x", "k"], ["b"])], op, [], [out])

    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Greater", ["s", "zero"], ["c"]),
        node("If", ["c"], ["y"], then_branch=branch("Add"), else_branch=branch("Mul")),
    ]
    constants = {"k": floats(2, 3), "zero": np.array(0, np.float32)}
    return model(nodes, {"x": [2, 3]}, ["y"], constants)


def typed() -> Any:
    """Numbers one by one in the file, a constant as a node, and 4 bits."""
    network = model(
        [
            node("Constant", [], ["k"], value=helper.make_tensor("k", TensorProto.FLOAT, [3], [1, 2, 3])),
            node("Cast", ["w"], ["wf"], to=int(TensorProto.FLOAT)),
            node("Add", ["x", "k"], ["a"]),
            node("Mul", ["a", "wf"], ["y"]),
        ],
        {"x": [2, 3]}, ["y"],
    )  # fmt: skip
    network.graph.initializer.append(helper.make_tensor("w", TensorProto.UINT4, [3], [1, 2, 3]))
    return network


MODELS = (convolution, quantized, branches, typed)


def change_bytes(made: Any, rng: random.Random) -> bytes:
    data = bytearray(made.SerializeToString())
    for _ in range(rng.choice([1, 2, 8])):
        place = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                data[place] ^= 1 << rng.randrange(8)
            case 2:
                del data[place : place + rng.randrange(1, 9)]
            case _:
                data[place:place] = rng.randbytes(rng.randrange(1, 9))
    return bytes(data[: rng.choice([len(data)] * 5 + [rng.randrange(len(data))])])


def fields_of(message: Message) -> Iterator[tuple[Message, Any]]:
    """All fields that are set, here and below, with what holds them."""
    for field, value in message.ListFields():
        yield message, field
        items = value if field.is_repeated else [value]
        for item in items:
            if isinstance(item, Message):
                yield from fields_of(item)


def odd(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(
            [0, 1, -1, 2, value + 1, value * 2, 7, 21, 99, 2**31 - 1, 2**48, -(2**40)]
        )
    if isinstance(value, float):
        return rng.choice([0.0, -1.0, float("nan"), float("inf"), 1e-30])
    if isinstance(value, bytes):
        return rng.choice([b"", value[:-1], value + b"\0", value * 2, b"linear"])
    return rng.choice(["", value + "_", "x", "y", "ai.onnx", "../x", "\u00e4", "Add", "Loop"])


def change_field(made: Any, rng: random.Random) -> bytes:
    for _ in range(rng.choice([1, 1, 2])):
        holder, field = rng.choice(list(fields_of(made)))
        value = getattr(holder, field.name)
        if rng.random() < 0.25:
            holder.ClearField(field.name)
        elif field.is_repeated:
            _change_list(value, rng)
        elif isinstance(value, Message):
            holder.ClearField(field.name)
        else:
            _set(lambda new, h=holder, n=field.name: setattr(h, n, new), value, rng)
    return made.SerializeToString()


def _change_list(items: Any, rng: random.Random) -> None:
    place = rng.randrange(len(items))
    if isinstance(items[place], Message):
        if rng.random() < 0.5:
            del items[place]
        else:
            items.add().CopyFrom(items[place])
    elif rng.random() < 0.3:
        del items[place]
    else:
        _set(lambda new: items.__setitem__(place, new), items[place], rng)


def _set(assign: Callable[[Any], None], old: Any, rng: random.Random) -> None:
    try:
        assign(odd(old, rng))
    except (TypeError, ValueError):  # protobuf takes no such value for this field
        return


CHANGES = {"bytes": change_bytes, "fields": change_field}


def main(how: str, first: int, count: int) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for seed in range(first, first + count):
            rng = random.Random(seed)
            path.write_bytes(CHANGES[how](rng.choice(MODELS)(), rng))
            print(f"{how} {seed}", flush=True)
            try:
                import_model(path)
            except Error as error:
                print(f"  {str(error.what).splitlines()[0][:150]}")
            except BaseException:
                failed += 1
                print(traceback.format_exc(limit=-4))
    return failed


if __name__ == "__main__":
    assert numpy_helper
    sys.exit(min(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), 100))
