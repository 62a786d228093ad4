# pyright: basic
"""Whole models on the GPU, beside torch.compile: the section "Whole models" of gpu.md.

python benchmarks/gpu_models.py compile --out FOLDER     needs no GPU
python benchmarks/gpu_models.py run --out FOLDER         needs the GPU's driver and PyTorch
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

BATCHES = (1, 32)
SIDE = 224
MODELS = {
    "lenet-f32": ("zoo:lenet", None, "f32", (2, 1, 28, 28)),
    "lenet-w2a8": ("zoo:lenet", "w2a8", "f32", (3, 1, 28, 28)),
    "mlp-w4a8": ("zoo:mlp", "w4a8", "f32", (4, 1, 28, 28)),
    "resnet8-f32": ("zoo:resnet8", None, "f32", (2, 3, 32, 32)),
    "resnet8-tf32": ("zoo:resnet8", None, "tf32", (2, 3, 32, 32)),
    "vit-tiny-w4a8": ("zoo:vit-tiny", "w4a8", "f32", (1, 3, 32, 32)),
    "llama-tiny-f32": ("zoo:llama-tiny", None, "f32", (1, 32)),
    "llama-tiny-f16": ("zoo:llama-tiny", None, "f16", (1, 32)),
    "llama-tiny-w4a8": ("zoo:llama-tiny", "w4a8", "f32", (1, 32)),
    "mobilenet-v2-f16": ("zoo:mobilenet-v2", None, "f16", (2, 3, 64, 64)),
}


def compile_all(out: Path) -> None:
    import torch

    import fewbit
    from fewbit.models import create

    rng = np.random.default_rng(0)
    for name, (model, recipe, precision, shape) in MODELS.items():
        program = fewbit.import_model(model)
        if recipe is not None:
            program = fewbit.quantize(program, recipe)
        is_text = len(shape) == 2
        x = rng.integers(0, 512, shape) if is_text else rng.standard_normal(shape, np.float32)
        fewbit.compile(program, "cuda", out / name, sizes=[shape], precision=precision)
        np.savez(out / f"{name}.npz", x=x, y=program.run(x)[0])
    one = rng.standard_normal((1, 3, SIDE, SIDE), np.float32)
    expected = None
    for batch in BATCHES:
        x = np.repeat(one, batch, 0)
        program = fewbit.import_model(create("resnet18"), example_inputs=(torch.from_numpy(x),))
        name = f"resnet18-f16-{batch}"
        fewbit.compile(program, "cuda", out / name, precision="f16")
        expected = program.run(one)[0] if expected is None else expected
        np.savez(out / f"{name}.npz", x=x, y=np.repeat(expected, batch, 0))


def run_all(out: Path) -> None:
    import torch

    import fewbit

    rows = {}
    for data in sorted(out.glob("*.npz")):
        arrays, art = np.load(data), fewbit.load(out / data.stem)
        found = art(arrays["x"])
        off = np.abs(found - arrays["y"]).max() / np.abs(arrays["y"]).max()
        stream = torch.cuda.current_stream().cuda_stream
        program = art.runner
        rows[data.stem] = {
            "off": float(off),
            "us": timed(lambda: program.run(stream)),  # noqa: B023
            "us without a graph": timed(lambda: program.launch(stream)),  # noqa: B023
            "launches": len(program.plan.launches),
        }
        print(data.stem, rows[data.stem], flush=True)
        program.close()
    for batch in BATCHES:
        rows[f"torch {batch}"] = torch_resnet18(batch)
        print(batch, rows[f"torch {batch}"], flush=True)
    (out / "models.json").write_text(json.dumps(rows, indent=1))


def torch_resnet18(batch: int) -> dict[str, float]:
    import torch
    import torch._inductor.config as inductor

    from fewbit.models.resnet import ResNet18

    torch.backends.cudnn.benchmark = True
    model = ResNet18().eval().half().cuda().to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, SIDE, SIDE, device="cuda").half()
    x = x.to(memory_format=torch.channels_last)
    found = {}
    with torch.no_grad():
        found["eager"] = timed(lambda: model(x))
        for freezing in (False, True):
            inductor.freezing = freezing
            torch._dynamo.reset()
            compiled = torch.compile(model, mode="reduce-overhead")
            found[f"compile, freezing {freezing}"] = timed(lambda: compiled(x))  # noqa: B023
    return found


def timed(call, calls: int = 20, rounds: int = 15) -> float:
    """Microseconds of a call among others like it."""
    import torch

    for _ in range(4):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / calls)
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("compile", "run"))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    (compile_all if given.what == "compile" else run_all)(given.out)


if __name__ == "__main__":
    main()
