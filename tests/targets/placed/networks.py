"""A small network as a program, to be placed."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewbit.program.program import Program

Array = np.ndarray[Any, Any]


def _layer(name: str, seed: int) -> str:
    weight = bytes((37 * i + 11 * seed) % 256 for i in range(64)).hex()
    scales = ", ".join(str(0.01 * (i + 1)) for i in range(8))
    return f"""
mico.constant @{name}.scale : tensor<8xf32> = dense<[{scales}]>
mico.constant @{name}.weight : tensor<8x8x!mico.int<8>> = dense<"0x{weight}"> scale @{name}.scale
graph.subgraph @{name}(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {{
  %y = mico.bitlinear(%x, @{name}.weight) {{act_bits = 8}} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %z = mico.relu(%y) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  graph.return %z : tensor<?x8xf32>
}}
"""


def residual() -> Program:
    """`a`, then `b` and `c` beside each other, then their sum: a batch of any size."""
    call = "(tensor<?x8xf32>) -> tensor<?x8xf32>"
    text = "".join(_layer(name, seed) for seed, name in enumerate("abc"))
    return Program.parse(
        f"""{text}
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {{
  %a = graph.call @a(%x) : {call}
  %b = graph.call @b(%a) : {call}
  %c = graph.call @c(%a) : {call}
  %y = mico.add(%b, %c) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}}
"""
    )


def total() -> Program:
    """A state that `add` updates, and that `look` reads before and after that."""
    t = "tensor<4xf32>"
    return Program.parse(
        f"""
mico.constant @start : {t} = dense<[1.0, 2.0, 3.0, 4.0]>
graph.subgraph @add(%x: {t}, %s: {t}) -> {t} {{
  %t = mico.add(%s, %x) : ({t}, {t}) -> {t}
  graph.return %t : {t}
}}
graph.subgraph @look(%s: {t}, %t: {t}) -> {t} {{
  %y = mico.mul(%s, %t) : ({t}, {t}) -> {t}
  graph.return %y : {t}
}}
func.func @main(%x: {t}, %s: {t})
    -> ({t}, {t} {{fewbit.updates = 1 : i64, fewbit.initial = @start}}) {{
  %t = graph.call @add(%x, %s) : ({t}, {t}) -> {t}
  %y = graph.call @look(%s, %t) : ({t}, {t}) -> {t}
  func.return %y, %t : {t}, {t}
}}
"""
    )


def inputs(rows: int = 3) -> Array:
    return np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
