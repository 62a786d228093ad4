# pyright: basic
"""A page that reads digits: LeNet is trained, given few bits, and compiled to WebAssembly.

The page is one file with the network inside; open it in a browser and draw.

    python examples/digits_in_browser.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import fewbit
from fewbit.data import mnist
from fewbit.errors import Error
from fewbit.models import create, zoo
from fewbit.models.training import train

RECIPE = "w4a8"


def main(folder: Path) -> None:
    digits = mnist()
    model = create("lenet", 0)
    train(model, digits.train_x, digits.train_y, epochs=6, seed=0, distort=1.0)
    program = fewbit.import_model(model, zoo()["lenet"].example_inputs(1))
    output = folder / "digits"
    artifact = fewbit.compile(program, "wasm:simd", output, recipe=RECIPE, name="digits")
    page, module = output / "index.html", output / "model.wasm"
    print(f"{page}: draw on it; {module.stat().st_size:,} bytes of WebAssembly")
    try:
        found = [artifact(image[None]).argmax() for image in digits.test_x[:200]]
    except Error as error:  # node runs it here; a page needs no node
        print(error)
        return
    right = np.equal(found, digits.test_y[:200]).mean()
    print(f"{right:.1%} of 200 digits that training never saw are read, in node")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp()))
