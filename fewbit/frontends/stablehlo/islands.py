"""Whatever has no op of ours, through the binary of the torch-mlir wheel to linalg.

Each such op becomes a function of its own, equal ops one function; small constants among its
operands stand in it, so that they are folded. All functions are lowered by one process, come back
as xDSL through generic text, and are inlined where they are called. The lowering leaves what it
does not know as it is, so the error lists all ops that cannot be imported, not the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.func import FuncOp

from fewbit.errors import Error, UnsupportedError
from fewbit.frontends.stablehlo.constants import Constant
from fewbit.frontends.stablehlo.dense import dense_text
from fewbit.frontends.stablehlo.ops import Op, Value, print_op
from fewbit.frontends.stablehlo.read import run_tool
from fewbit.ir.locations import forget_locations
from fewbit.ir.parse import parse_module

PREFIX = "hlo."
PIPELINE = (
    "builtin.module(func.func(stablehlo-legalize-to-linalg),stablehlo-convert-to-signless,"
    "canonicalize,cse)"
)
_FLAGS = (f"--pass-pipeline={PIPELINE}", "--mlir-print-op-generic")
_FLAGS_OF_TRUNCI = re.compile(r'("arith\.trunci"\(%\w+\)) <\{overflowFlags = [^}]*<none>\}>')
"""Which xDSL does not know."""
_LEFT_OVER = ('"stablehlo.', '"chlo.', '"builtin.unrealized_conversion_cast"', "complex<")


@dataclass
class Island:
    name: str
    text: str
    ops: list[Op] = field(default_factory=list[Op])


class Islands:
    """The functions that one import needs."""

    def __init__(self) -> None:
        self._by_text: dict[str, Island] = {}

    def name_of(self, op: Op, given: Sequence[tuple[Value, Constant | None]]) -> str:
        """The function that computes `op`; made if none like it is known.

        Its arguments are the given values that are no constants.
        """
        text = _function(op, given)
        if text not in self._by_text:
            name = f"{PREFIX}{op.kind}.{len(self._by_text)}"
            self._by_text[text] = Island(name, text.replace("@name", f"@{name}", 1))
        island = self._by_text[text]
        island.ops.append(op)
        return island.name

    def lower(self, ctx: Context) -> list[FuncOp]:
        islands = list(self._by_text.values())
        if not islands:
            return []
        text = _lower(islands)
        if text is None or _is_left_over(text):
            raise unsupported_error(
                [op for island in islands if _fails(island) for op in island.ops]
            )
        module = parse_module(_FLAGS_OF_TRUNCI.sub(r"\1", text), "torch-mlir", ctx)
        functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
        for function in functions:
            forget_locations(function)
            function.detach()
        return functions


def unsupported_error(ops: Sequence[Op]) -> UnsupportedError:
    lines = dict.fromkeys(f"  {_describe(op)}: {op.source}" for op in ops)
    return UnsupportedError(
        "these ops cannot be imported:\n" + "\n".join(lines or ["  (each alone can)"]),
        hint="write them with other ops, or keep that part outside of the model",
    )


def _describe(op: Op) -> str:
    if op.kind == "custom_call":
        return f"{op.name} {op.attributes.get('call_target_name', '')}"
    return op.name


def _function(op: Op, given: Sequence[tuple[Value, Constant | None]]) -> str:
    names: dict[Value, str] = {}
    arguments: list[str] = []
    body = ""
    for operand, constant in given:
        names[operand] = f"%{len(names)}"
        if constant is None:
            arguments.append(f"{names[operand]}: {operand.type}")
            continue
        data = f"<{{value = {dense_text(constant.array, constant.type)}}}>"
        body += f'    {names[operand]} = "stablehlo.constant"() {data} : () -> {operand.type}\n'
    body += print_op(op, names)
    results = ", ".join(names[result] for result in op.results)
    types = ", ".join(str(result.type) for result in op.results)
    return (
        f"  func.func private @name({', '.join(arguments)}) -> ({types}) {{\n{body}"
        f"    return {results} : {types}\n  }}\n"
    )


def _lower(islands: Sequence[Island]) -> str | None:
    """The lowered functions as generic text; None where the binary refuses."""
    text = "module {\n" + "".join(island.text for island in islands) + "}\n"
    try:
        # Private functions that nothing calls are removed.
        public = text.replace("func.func private", "func.func")
        return run_tool("torch-mlir-opt", _FLAGS, public.encode(), "islands")
    except Error:
        return None


def _is_left_over(text: str) -> bool:
    return any(word in text for word in _LEFT_OVER)


def _fails(island: Island) -> bool:
    text = _lower([island])
    return text is None or _is_left_over(text)
