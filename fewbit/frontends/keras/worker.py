"""Reads a `.keras` file and writes it as StableHLO: `fewbit.base.start` starts it."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path


def main(path: str, folder: str, shapes: str) -> None:
    keras = import_module("keras")
    from fewbit.errors import Error
    from fewbit.frontends.handover import write_handover
    from fewbit.frontends.input_shape import InputShape
    from fewbit.frontends.keras.export import export_keras

    # Lambda layers are code in a file, and are not run.
    model = keras.saving.load_model(path, compile=False, safe_mode=True)
    given = json.loads(shapes)
    try:
        exported = export_keras(model, None if given is None else [InputShape.of(s) for s in given])
    except Error as e:
        raise SystemExit(f"{e.what}; {e.hint}" if e.hint else e.what) from e
    write_handover(
        Path(folder), exported.text, exported.weights, exported.inputs, exported.declared
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
