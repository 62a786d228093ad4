"""What a library keeps of a model's weights at each width, beside float32: a table in markdown.

    python benchmarks/sizes.py [--bits 8,4,2,1] [NAME ...]

Weights, scales and biases as they lie in the library (`weight_bytes` of its manifest), over those
of the float library; in brackets how far that is above b/32. The last column is the code that comes
with them, in the library of the fewest bits.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import fewbit
from fewbit.program.artifact import open_folder

MODELS = ("resnet18", "mobilenet-v2", "resnet8", "lenet", "vit-tiny", "ds-cnn", "mlp")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []])
    parser.add_argument("--bits", default="8,4,2,1")
    options = parser.parse_args()
    widths = [int(bits) for bits in options.bits.split(",")]
    print(f"| | float32 | {' | '.join(f'{bits} bits' for bits in widths)} | code |")
    print("|---" * (3 + len(widths)) + "|")
    for name in options.models or MODELS:
        print(_row(name, widths), flush=True)


def _row(name: str, widths: Sequence[int]) -> str:
    whole, _ = _bytes(name, None)
    cells = [f"{whole / 1e6:.2f} MB"]
    code = 0
    for bits in widths:
        kept, code = _bytes(name, f"w{bits}a8")
        cells.append(f"{kept / whole:.3f} ({kept / whole - bits / 32:+.3f})")
    return f"| {name} | {' | '.join(cells)} | {code / 1e6:.2f} MB |"


def _bytes(name: str, recipe: str | None) -> tuple[int, int]:
    """Return the bytes of the weights in the library, and of everything else in it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        fewbit.compile(f"zoo:{name}", output=path, recipe=recipe)
        manifest = open_folder(path).manifest
        (library,) = (path / file for file in manifest.files if file.endswith(".so"))
        return manifest.weight_bytes, library.stat().st_size - manifest.weight_bytes


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
