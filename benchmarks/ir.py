"""How long a module of 5,000 ops takes: to build, verify, print, parse, clone and simplify.

    python benchmarks/ir.py [--json]

The module is a stack of 4-bit linear layers, weights by reference, in memory and as text. Times
are CPU seconds of this process, the minimum of three.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from fewbit.dialects import mico
from fewbit.ir.context import make_context
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify

LAYERS = 833
"""Six ops each: two constants, their two reads, the layer, and a relu."""
FEATURES = 64
SHA256 = "0" * 64
REPEATS = 3


def build_network(layers: int = LAYERS) -> ModuleOp:
    activation = TensorType(f32, [1, FEATURES])
    weight = TensorType(mico.IntType(4), [FEATURES, FEATURES])
    scale = TensorType(f32, [FEATURES])
    constants: list[Operation] = []
    body = Block(arg_types=[activation])
    x: SSAValue = body.args[0]
    for i in range(layers):
        name = f"model.layers.{i}.fc"
        constants += [
            mico.ConstantOp(f"{name}.scale", scale, mico.RefAttr(f"{name}.scale", SHA256)),
            mico.ConstantOp(
                f"{name}.weight", weight, mico.RefAttr(f"{name}.weight", SHA256), f"{name}.scale"
            ),
        ]
        w = mico.GetConstantOp(f"{name}.weight", weight)
        s = mico.GetConstantOp(f"{name}.scale", scale)
        y = mico.BitLinearOp.of(x, w, weight_scale=s.result, act_bits=8)
        r = mico.ReluOp.of(y)
        body.add_ops([w, s, y, r])
        x = r.result
    body.add_op(ReturnOp(x))
    main = FuncOp("main", ([activation], [activation]), Region(body))
    return ModuleOp([*constants, main])


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of a few runs."""
    times: list[float] = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure() -> dict[str, float]:
    context = make_context()
    module = build_network()
    text = print_module(module)
    copies = [module.clone() for _ in range(2 * REPEATS)]
    return {
        "ops": sum(1 for _ in module.walk()),
        "megabytes_of_text": len(text) / 1e6,
        "build_seconds": seconds(build_network),
        "verify_seconds": seconds(lambda: verify(module)),
        "print_seconds": seconds(lambda: print_module(module)),
        "parse_seconds": seconds(lambda: parse_module(text, ctx=context)),
        "clone_seconds": seconds(module.clone),
        "canonicalize_seconds": seconds(lambda: CanonicalizePass().apply(context, copies.pop())),
        "cse_seconds": seconds(
            lambda: CommonSubexpressionElimination().apply(context, copies.pop())
        ),
    }


def main() -> None:
    figures = measure()
    if "--json" in sys.argv[1:]:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):24} {value:10.3f}")


if __name__ == "__main__":
    main()
