"""Whole models on the GPU, beside torch.compile: the section "Whole models" of gpu.md.

python benchmarks/gpu_models.py compile --out FOLDER     needs no GPU
python benchmarks/gpu_models.py run --out FOLDER         needs the GPU's driver
python benchmarks/gpu_models.py torch --out FOLDER       needs PyTorch with CUDA

`--only` selects models by the beginning of their names.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

SIDE = 224


@dataclass(frozen=True)
class Case:
    """A program: a model, how its layers are quantized, and how floats are multiplied."""

    model: str
    recipe: str | None
    precision: str
    shape: tuple[int, ...]
    repeat: int = 1
    """Times that each sequence or image stands in the batch, so that a reference is fast."""
    fixed: bool = False
    """Whether sizes are fixed when the model is imported."""


CASES = {
    "lenet-f32": Case("lenet", None, "f32", (2, 1, 28, 28)),
    "lenet-w2a8": Case("lenet", "w2a8", "f32", (3, 1, 28, 28)),
    "mlp-w4a8": Case("mlp", "w4a8", "f32", (4, 1, 28, 28)),
    "mlp-w2a2": Case("mlp", "w2a2", "f32", (4, 1, 28, 28)),
    "resnet8-f32": Case("resnet8", None, "f32", (2, 3, 32, 32)),
    "resnet8-tf32": Case("resnet8", None, "tf32", (2, 3, 32, 32)),
    "vit-tiny-w4a8": Case("vit-tiny", "w4a8", "f32", (1, 3, 32, 32)),
    "vit-tiny-f16": Case("vit-tiny", None, "f16", (1, 3, 32, 32)),
    "llama-tiny-f32": Case("llama-tiny", None, "f32", (1, 32)),
    "llama-tiny-f16": Case("llama-tiny", None, "f16", (1, 32)),
    "llama-tiny-w4a8": Case("llama-tiny", "w4a8", "f32", (1, 32)),
    "llama-15m-f16": Case("llama-15m", None, "f16", (1, 256), fixed=True),
    "llama-15m-decode-f16": Case("llama-15m-decode", None, "f16", (1, 1), fixed=True),
    "llama-15m-decode-w4": Case("llama-15m-decode", "w4afpg32", "f16", (1, 1)),
    "llama-15m-decode-w4a8": Case("llama-15m-decode", "w4a8", "f32", (1, 1)),
    "mobilenet-v2-f16": Case("mobilenet-v2", None, "f16", (2, 3, 64, 64)),
    "self-attention-f16": Case("self-attention", None, "f16", (1, 197, 768), 32, fixed=True),
    **{
        f"resnet18-{precision}-{batch}": Case(
            "resnet18", None, precision, (1, 3, SIDE, SIDE), batch, fixed=True
        )
        for precision in ("f16", "tf32", "f32")
        for batch in (1, 32)
    },
}


def self_attention() -> Any:
    """Projections and attention of a ViT's layer: 12 heads of 64."""
    import torch
    from torch import nn

    from fewbit.base.typed_torch import manual_seed

    class SelfAttention(nn.Module):
        def __init__(self, width: int = 768, heads: int = 12) -> None:
            super().__init__()
            self.heads = heads
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            split = self.qkv(x).unflatten(-1, (3, self.heads, -1))
            q, k, v = split.permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v)
            return self.out(y.transpose(1, 2).flatten(2))

    manual_seed(0)
    return SelfAttention().eval()


def on_grid(model: Any) -> Any:
    """Weights of a language model in few steps, so that they are sent to a GPU as few bytes."""
    import torch

    if not type(model).__name__.startswith("Llama"):
        return model
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                step = 2.0 ** round(float(weight.std().log2()) - 4)
                weight.copy_((weight / step).round() * step)
    return model


def inputs_of(shapes: list[tuple[int, ...]], kinds: list[str]) -> list[np.ndarray]:
    """The same numbers on every machine: tokens and positions below 100, or normal floats."""
    rng = np.random.default_rng(0)
    return [
        rng.integers(0, 100, shape) if kind.startswith("i") else rng.standard_normal(shape, "f4")
        for shape, kind in zip(shapes, kinds, strict=True)
    ]


def repeated(arrays: list[np.ndarray], times: int) -> list[np.ndarray]:
    return [np.repeat(array, times, 0) for array in arrays] if times > 1 else arrays


def compile_all(out: Path, only: str) -> None:
    import torch

    import fewbit
    from fewbit.models import create
    from fewbit.program.signature import signature_of

    for name, case in CASES.items():
        if not name.startswith(tuple(only.split(","))):
            continue
        whole = (case.shape[0] * case.repeat, *case.shape[1:])
        if case.fixed:
            model = self_attention() if case.model == "self-attention" else create(case.model)
            kind = torch.int64 if len(case.shape) == 2 else torch.float32
            place = [torch.zeros(1, dtype=kind)] if case.model.endswith("decode") else []
            example = (torch.zeros(case.shape, dtype=kind), *place)
            one = program = fewbit.import_model(on_grid(model), example)
            if case.repeat > 1:
                program = fewbit.import_model(model, (torch.zeros(whole, dtype=kind),))
        else:
            one = program = fewbit.import_model(f"zoo:{case.model}")
        if case.recipe is not None:
            one = program = fewbit.quantize(program, case.recipe)
        specs = signature_of(one.module).inputs
        sizes = [tuple(d or 1 for d in spec.shape or ()) for spec in specs]
        sizes[0] = case.shape
        given = inputs_of(sizes, [spec.element for spec in specs])
        fixed = [tuple(array.shape) for array in repeated(given, case.repeat)]
        fewbit.compile(program, "cuda", out / name, name="m", sizes=fixed, precision=case.precision)
        np.savez(out / f"{name}.npz", y=one.run(*given)[0])
        print(name, flush=True)


def run_all(out: Path, only: str) -> None:
    from fewbit.program.artifact import open_folder
    from fewbit.runtime.cuda import CudaProgram

    rows = {}
    for name, case in CASES.items():
        folder = out / name
        if not folder.exists() or not name.startswith(tuple(only.split(","))):
            continue
        if not (folder / "m.weights").exists():  # a batch of 32 has the weights of one
            os.link(out / name.replace("-32", "-1") / "m.weights", folder / "m.weights")
        program = CudaProgram(open_folder(folder))
        ports = program.manifest.inputs
        sizes = [tuple(int(d or 0) for d in port.shape) for port in ports]
        alone = [(size[0] // case.repeat, *size[1:]) for size in sizes]
        given = repeated(inputs_of(alone, [port.element for port in ports]), case.repeat)
        expected = np.repeat(np.load(out / f"{name}.npz")["y"], case.repeat, 0)
        found, again = program(*given)[0], program(*given)[0]
        row = rows[name] = {
            "off": float(np.abs(found - expected).max() / np.abs(expected).max()),
            "same bits": bool(np.array_equal(found, again)),
            "us": timed(lambda s: program.run(s)),  # noqa: B023
            "us without a graph": timed(lambda s: program.launch(s)),  # noqa: B023
            "launches": len(program.plan.launches),
            "weights": program.manifest.weight_bytes,
        }
        print(name, row, flush=True)
        program.close()
    (out / "models.json").write_text(json.dumps(rows, indent=1))


def torch_all(out: Path, only: str) -> None:
    """The same models by PyTorch, compiled, each as a CUDA graph."""
    import torch
    import torch._inductor.config as inductor

    from fewbit.models.resnet import ResNet18

    compile_graph: Callable[..., Any] = cast(Any, torch).compile
    torch.backends.cudnn.benchmark = True
    rows: dict[str, dict[str, float]] = {}

    def measure(name: str, model: Any, *given: Any, freezing: tuple[bool, ...] = (False,)) -> None:
        if not name.startswith(tuple(only.split(","))):
            return
        row = rows.setdefault(name, {})
        with torch.no_grad():
            row["eager"] = timed(lambda s: model(*given))
            row["eager, as a graph"] = timed(graphed(model, given))
            for freeze in freezing:
                inductor.freezing = freeze
                torch.compiler.reset()
                compiled = compile_graph(model, mode="reduce-overhead")
                row[f"compile, freezing {freeze}"] = timed(lambda s: compiled(*given))  # noqa: B023
        print(name, row, flush=True)
        (out / "torch.json").write_text(json.dumps(rows, indent=1))

    def cuda(model: Any, dtype: Any) -> Any:
        return model.eval().to("cuda", dtype)

    half = torch.float16
    x = torch.randn(32, 197, 768, device="cuda", dtype=half)
    measure("self-attention-f16", cuda(self_attention(), half), x)
    place = [torch.randint(0, 100, shape, device="cuda") for shape in ((1, 1), (1,))]
    measure("llama-15m-decode-f16", cuda(decode(), half), *place)
    for precision in ("f16", "tf32", "f32"):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = (
            precision == "tf32"
        )
        dtype = half if precision == "f16" else torch.float32
        for batch in (1, 32):
            model = cuda(ResNet18(), dtype).to(memory_format=torch.channels_last)
            x = torch.randn(batch, 3, SIDE, SIDE, device="cuda", dtype=dtype)
            x = x.to(memory_format=torch.channels_last)
            both = (False, True) if precision == "f16" else (False,)
            measure(f"resnet18-{precision}-{batch}", model, x, freezing=both)


def graphed(model: Any, given: Any) -> Callable[[int], object]:
    """A model's launches, as PyTorch makes them, captured into a CUDA graph."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(*given)
    return lambda stream: graph.replay()


def decode() -> Any:
    """A step of llama-15m, with its mask made on the GPU."""
    import torch

    from fewbit.models.llama import CachedDecoder, LlamaDecode

    class Decoder(CachedDecoder):
        def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
            seen = torch.arange(self.longest, device=token.device) <= position
            place = (self.cos[position], self.sin[position])
            return self.states(token, *place, position, seen.unsqueeze(0))

    class Decode(LlamaDecode):
        decoder = Decoder

    return Decode()


def timed(call: Callable[[int], object], calls: int = 20, rounds: int = 15) -> float:
    """Microseconds of a call on a stream, among others like it."""
    import torch

    stream = torch.cuda.current_stream().cuda_stream
    for _ in range(4):
        call(stream)
    torch.cuda.synchronize()
    times: list[float] = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            call(stream)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / calls)
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("compile", "run", "torch"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", metavar="NAME,...")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    {"compile": compile_all, "run": run_all, "torch": torch_all}[given.what](given.out, given.only)


if __name__ == "__main__":
    main()
