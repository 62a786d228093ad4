"""Whole models in float32, batch 1: fewbit beside torch, onnxruntime, OpenVINO and IREE.

    python benchmarks/models.py [--threads N] [--seconds S] [--json FILE] [NAME ...]

Each number is the least time of a call over interleaved rounds; for one thread, processor time.
Peers are used as their documentation says to for one request at a time; batch norms are folded by
each tool itself. Where a tool is not installed or fails, the reason stands in place of its number.
"""
# pyright: basic

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import warnings
from pathlib import Path

threads = next((sys.argv[i + 1] for i, a in enumerate(sys.argv) if a == "--threads"), "1")
os.environ.setdefault("OMP_NUM_THREADS", threads)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import fewbit  # noqa: E402
from fewbit.bench import peers  # noqa: E402
from fewbit.bench.timing import time_together  # noqa: E402
from fewbit.models import create  # noqa: E402

MODELS = {
    "mlp": (1, 1, 28, 28),
    "lenet": (1, 1, 28, 28),
    "resnet8": (1, 3, 32, 32),
    "ds-cnn": (1, 1, 49, 10),
    "mobilenet-v2": (1, 3, 224, 224),
    "resnet18": (1, 3, 224, 224),
    "squeezenet": (1, 3, 224, 224),
    "vgg": (1, 3, 32, 32),
    "vit-tiny": (1, 3, 32, 32),
    "kwt": (1, 98, 40),
    "m5": (1, 1, 8000),
}


def main() -> None:
    options = _options()
    rows = {}
    for name in options.models or MODELS:
        rows[name] = _measure(name, options)
        _show(name, rows[name])
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--without", default="", help="peers to leave out, as a,b")
    return parser.parse_args()


def _measure(name: str, options: argparse.Namespace) -> dict[str, object]:
    torch.manual_seed(0)
    model = create(name).eval()
    x = torch.randn(MODELS[name])
    expected = model(x).detach().numpy()
    art = fewbit.compile(model, example_inputs=(x,), name=name.replace("-", "_"))
    makers = {
        "fewbit": lambda: art.runner.prepare(x.numpy(), threads=options.threads),
        "torch": lambda: peers.torch_eager(model, (x,), options.threads),
        "onnxruntime": lambda: peers.onnxruntime(model, (x,), options.threads),
        "openvino": lambda: peers.openvino(model, (x,), options.threads),
        **{
            f"iree{i}": lambda flags=flags: peers.iree(model, (x,), options.threads, flags)
            for i, flags in enumerate(peers.IREE_FLAGS)
        },
    }
    functions, absent = {}, {}
    for tool, make in makers.items():
        if tool.rstrip("012") in options.without.split(","):
            continue
        try:
            functions[tool] = make()
            error = np.abs(peers.outputs_of(functions[tool]()) - expected).max()
            if not error <= 1e-3 * np.abs(expected).max():
                raise peers.UnavailableError(f"wrong by {error:.1e}")
        except Exception as e:
            absent[tool] = str(e).splitlines()[0][:80] or type(e).__name__
            functions.pop(tool, None)
    times = time_together(functions, seconds=options.seconds, threads=options.threads)
    return {
        "microseconds": {tool: t.least * 1e6 for tool, t in times.items()},
        "median": {tool: t.median * 1e6 for tool, t in times.items()},
        "absent": absent,
    }


def _show(name: str, row: dict[str, object]) -> None:
    times = row["microseconds"]
    ours = times["fewbit"]
    best_iree = min((t for tool, t in times.items() if tool.startswith("iree")), default=None)
    parts = [f"{name:14} fewbit {ours:9.1f} us"]
    for tool in ("torch", "onnxruntime", "openvino"):
        if tool in times:
            parts.append(f"{tool} {times[tool]:9.1f} ({times[tool] / ours:5.2f}x)")
    if best_iree is not None:
        parts.append(f"iree {best_iree:9.1f} ({best_iree / ours:5.2f}x)")
    print("  ".join(parts), flush=True)
    for tool, why in row["absent"].items():
        print(f"{'':14} {tool}: {why}", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    main()
