"""`fewbit demo`: a network as text, and from training to a mixed-precision program.

First a LeNet in the `mico` dialect, with random weights, is parsed, verified and run; integers are
exact and floats have one order, so its checksum is the same everywhere. Then LeNet is trained on
real digits, imported, quantized three ways, and compiled for this machine. The accuracy shown is
that of the compiled program on digits that training never saw; its time is for one digit, beside
that of PyTorch in the same run. The digits come with an optional package: without it, the same is
done with made-up images, which is said before any number is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from torch import nn
    from xdsl.ir import Operation

    from fewbit.cost.layers import LayerReport
    from fewbit.data.split import Split
    from fewbit.program.program import Program

RECIPES = ("w8a8", "[[8,6,6,4,4],[8,8,8,8,8]]", "w2a8")
"""Eight bits, the mixed scheme of MiCo's proposal, and two bits to see where it ends."""
MADE_UP = 5000
"""Made-up images, as many as there are real digits."""
COLUMNS = ("program", "accuracy", "weights", "of float", "library", "one digit", "PyTorch")


def demo(
    epochs: Annotated[int, typer.Option(help="Rounds of training.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0,
) -> None:
    """Run LeNet from text; train, quantize and compile it; compare accuracy, size and speed."""
    _from_text(seed)
    _from_training(epochs, seed)


def _from_text(seed: int) -> None:
    from hashlib import sha256

    import numpy as np
    from rich.console import Console

    from fewbit.dialects.mico import LayerOp
    from fewbit.interpreter import Interpreter, Value
    from fewbit.ir.parse import parse_module
    from fewbit.ir.verify import verify
    from fewbit.models import lenet_text

    module = parse_module(lenet_text(seed), "lenet.mlir")
    verify(module)
    shapes: list[str] = []

    def note(op: Operation, results: Sequence[Value]) -> None:
        if isinstance(op, LayerOp):
            shapes.append("x".join(map(str, results[0].shape)))

    image = np.random.default_rng(seed).random((1, 1, 28, 28), dtype=np.float32)
    (logits,) = Interpreter(module, observe=note).call(None, [image])
    console = Console()
    console.print(f"lenet.mlir, parsed and verified: {' → '.join(['1x1x28x28', *shapes])}")
    console.print(f"checksum {sha256(logits.tobytes()).hexdigest()[:16]}")


def _from_training(epochs: int, seed: int) -> None:
    from time import perf_counter

    from rich.console import Console
    from rich.table import Table

    from fewbit.base.console import wide_console
    from fewbit.cli.layers import print_layers
    from fewbit.cost.layers import report_layers
    from fewbit.frontends import import_model
    from fewbit.models import create, zoo
    from fewbit.models.training import train
    from fewbit.quant.quantize import quantize

    console = Console()
    images, noun = _images(console, seed)
    model = create("lenet", seed)
    start = perf_counter()
    train(model, images.train_x, images.train_y, epochs=epochs, seed=seed, distort=1.0)
    console.print(
        f"LeNet, {epochs} epochs on {len(images.train_x)} {noun}s: {perf_counter() - start:.0f} s"
    )
    entry = zoo()["lenet"]
    program = import_model(model, entry.example_inputs(2), entry.dynamic_shapes)
    table = Table(*(column.replace("digit", noun) for column in COLUMNS))
    full = program.store.nbytes()
    layers: list[LayerReport] = []
    for recipe in ("float", *RECIPES):
        quantized = program if recipe == "float" else quantize(program, recipe)
        size = quantized.store.nbytes()
        measured = _measure(quantized, model, images)
        table.add_row(
            recipe,
            f"{measured.accuracy:.1%}",
            f"{size:,} bytes",
            f"{size / full:.0%}",
            f"{measured.library:,} bytes",
            f"{measured.seconds * 1e6:.0f} us",
            f"{measured.torch / measured.seconds:.1f}x",
        )
        if recipe == RECIPES[1]:
            layers = report_layers(quantized, [images.test_x[:64]], program)
    wide_console().print(table)
    print_layers(layers, f"LeNet, {RECIPES[1]}: noise of each layer on 64 {noun}s")


def _images(console: Console, seed: int) -> tuple[Split, str]:
    """Return the training data and the word for one sample: real digits, or synthetic images."""
    from fewbit.data import mnist, synthetic_images
    from fewbit.errors import MissingToolError

    try:
        return mnist(), "digit"
    except MissingToolError as error:
        console.print(
            f"{error.what}: LeNet learns made-up images instead. Their accuracy says that "
            f"everything works, not how good it is.\nFor real digits: {error.hint}",
            markup=False,
            soft_wrap=True,
        )
    return synthetic_images(n=MADE_UP, seed=seed), "image"


@dataclass(frozen=True)
class _Measured:
    accuracy: float
    library: int
    """Bytes of the shared library: code, and weights as the kernels read them."""
    seconds: float
    torch: float


def _measure(program: Program, model: nn.Module, images: Split) -> _Measured:
    """Compile a program; return its accuracy, and its time for one image beside PyTorch's."""
    import torch

    from fewbit.bench.peers.eager import torch_eager
    from fewbit.bench.timing import time_together
    from fewbit.targets.compile import compile

    compiled = compile(program, name="lenet")
    library = (compiled.folder / "liblenet.so").stat().st_size
    (logits,) = compiled.run(images.test_x)
    image = images.test_x[:1]
    threads = torch.get_num_threads()
    calls = {
        "fewbit": compiled.runner.prepare(image),
        "torch": torch_eager(model.eval(), (torch.as_tensor(image),), 1),
    }
    times = time_together(calls, seconds=0.5)
    torch.set_num_threads(threads)
    accuracy = float((logits.argmax(-1) == images.test_y).mean())
    return _Measured(accuracy, library, times["fewbit"].least, times["torch"].least)
