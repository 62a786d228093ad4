# pyright: basic
"""The roofline of gpu.md: what `gpu.py tune` measured, as a table and a picture. Needs no GPU.

    python benchmarks/gpu_plot.py FOLDER --png benchmarks/gpu.png

A kernel cannot take less than its operations at the chip's peak, nor than its bytes at the memory's
speed; the larger of the two is its bound. Both ceilings were measured in the same run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

WIDER = {"i8": 2.0, "tf32": 0.5, "f32": 0.0}
"""Operations of the tensor cores beside those of bf16; f32 has no part in them."""
VECTORS = 60e12
"""f32 operations a second without tensor cores, as NVIDIA states them."""
EMPTY = 3.7
"""Microseconds that a kernel takes which does nothing: part of every time."""
SERIES = {"conv2d": "o", "attention": "s", "few_bit": "^", "separable": "D", "depthwise": "v"}


def read(folder: Path) -> tuple[dict[str, dict], float, float]:
    """Rows by problem, and the ceilings: operations and bytes a second."""
    rows, peak, copy = {}, 778e12, 4.29e12
    for path in sorted(folder.glob("tune_*.json")):
        for row in json.loads(path.read_text()):
            if row["kind"] == "nothing":
                peak, copy = row["matmul TFLOP/s"] * 1e12, row["copy TB/s"] * 1e12
            elif row["families"]:
                rows[row["problem"]] = row
    return rows, peak, copy


def is_depthwise(problem: str) -> bool:
    return problem.endswith("|nhwc") and ",g" in problem


def ceiling(problem: str, peak: float) -> float:
    """Operations a second that the chip has for the problem's type."""
    if is_depthwise(problem):
        return VECTORS
    factor = WIDER.get(problem.split("|")[1], 1.0)
    return peak * factor if factor else VECTORS


def points(rows: dict[str, dict], peak: float, copy: float) -> list[dict]:
    found = []
    for problem, row in sorted(rows.items()):
        us, name = min((f[0][0], n) for n, f in row["families"].items())
        top = ceiling(problem, peak)
        arithmetic, memory = row["operations"] / top * 1e6, row["bytes"] / copy * 1e6
        found.append({
            "problem": problem, "kind": "depthwise" if is_depthwise(problem) else row["kind"],
            "by": name, "us": us, "arithmetic": arithmetic, "memory": memory,
            "intensity": row["operations"] / row["bytes"], "rate": row["operations"] / us / 1e6,
        })  # fmt: skip
    return found


def markdown(found: list[dict]) -> str:
    lines = [
        "| problem | by | us | arithmetic alone, us | memory alone, us | of the bound"
        " | launch taken out |",
        "|---|---|---|---|---|---|---|",
    ]
    for p in found:
        bound = max(p["arithmetic"], p["memory"])
        lines.append(
            f"| {p['problem'].replace('|', ' ')} | {p['by']} | {p['us']:.1f}"
            f" | {p['arithmetic']:.1f} | {p['memory']:.1f} | {bound / p['us']:.0%}"
            f" | {bound / max(p['us'] - EMPTY, bound):.0%} |"
        )
    return "\n".join(lines)


def draw(found: list[dict], peak: float, copy: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    xs = [10**e for e in (-0.5, 5)]
    for label, top in (("bf16, f16", peak), ("int8", 2 * peak), ("tf32", peak / 2)):
        knee = top / copy
        axes.plot([xs[0], knee, xs[1]], [xs[0] * copy / 1e12, top / 1e12, top / 1e12], "0.7", lw=1)
        axes.text(xs[1], top / 1e12, label, va="bottom", ha="right", fontsize=7, color="0.4")
    for kind, mark in SERIES.items():
        mine = [p for p in found if p["kind"] == kind]
        if mine:
            axes.plot([p["intensity"] for p in mine], [p["rate"] for p in mine], mark, ms=5,
                      label=kind, alpha=0.8)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="operations a byte", ylabel="TFLOP/s or TOP/s",
             title="Best kernel of each problem on one H200, cold cache")  # fmt: skip
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--png", type=Path)
    given = parser.parse_args()
    rows, peak, copy = read(given.folder)
    found = points(rows, peak, copy)
    print(markdown(found))
    if given.png:
        draw(found, peak, copy, given.png)


if __name__ == "__main__":
    main()
