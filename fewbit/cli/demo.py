"""`fewbit demo`: a whole network through every part that exists.

LeNet with 8-, 6- and 4-bit weights is parsed from text, verified, and run by the interpreter. Its
integers are exact and its float operations have one order, so the checksum is the same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from fewbit.interpreter import Value


def demo(
    seed: Annotated[int, typer.Option(help="Seed of the random weights and input.")] = 0,
) -> None:
    """Parse, verify and run a mixed-precision LeNet."""
    from hashlib import sha256

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from fewbit.interpreter import Interpreter
    from fewbit.ir.parse import parse_module
    from fewbit.ir.verify import verify
    from fewbit.models import lenet_text

    module = parse_module(lenet_text(seed), "lenet.mlir")
    verify(module)
    image = np.random.default_rng(seed).random((1, 1, 28, 28), dtype=np.float32)
    seen: list[tuple[Operation, Value]] = []
    interpreter = Interpreter(
        module, observe=lambda op, results: seen.extend((op, r) for r in results)
    )
    (logits,) = interpreter.call(None, [image])

    table = Table("line", "op", "weights", "activations", "output", title="LeNet")
    for op, result in seen:
        if row := _row(op, result):
            table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(f"input    {image.shape} {image.dtype}")
    console.print(f"output   {logits.shape} {logits.dtype}, class {int(np.argmax(logits))}")
    console.print(f"checksum {sha256(logits.tobytes()).hexdigest()[:16]}")


def _row(op: Operation, result: Value) -> tuple[str, ...] | None:
    from fewbit.dialects.mico import LayerOp, QuantizedLayerOp
    from fewbit.ir.locations import place_of

    if not isinstance(op, LayerOp):
        return None
    widths = ("", "")
    if isinstance(op, QuantizedLayerOp):
        widths = (f"{op.weight_width} bits", f"{op.act_width} bits")
    return str(place_of(op).line), op.name, *widths, "x".join(map(str, result.shape))
