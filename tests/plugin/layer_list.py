"""A front end outside the tree: linear layers as JSON.

A file is `{"layers": [{"weight": [[1, 2], [-3, 4]], "relu": true}]}`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fewbit.frontends.frontend import Frontend, Given
from fewbit.program.program import Program


class LayerList(Frontend):
    """A model is a file whose name ends in `.layers.json`."""

    def reads(self, path: Path) -> bool:
        return path.name.endswith(".layers.json")

    def import_file(self, path: Path, given: Given) -> Program:
        layers = json.loads(path.read_text())["layers"]
        weights = [np.asarray(layer["weight"], np.float32) for layer in layers]
        constants = [declare_weight(i, weight) for i, weight in enumerate(weights)]
        value, type, lines = "%x", row_type(weights[0].shape[1]), list[str]()
        for i, (layer, weight) in enumerate(zip(layers, weights, strict=True)):
            output = row_type(weight.shape[0])
            lines.append(f"%y{i} = mico.bitlinear({value}, @fc{i}.weight) : ({type}) -> {output}")
            value, type = f"%y{i}", output
            if layer.get("relu"):
                lines.append(f"%z{i} = mico.relu({value}) : {type} -> {type}")
                value = f"%z{i}"
        first, body = row_type(weights[0].shape[1]), "\n".join(lines)
        return Program.parse(
            "\n".join(constants)
            + f"\nfunc.func @main(%x: {first}) -> {type} {{\n{body}\nfunc.return {value} : {type}\n}}\n"
        )


def declare_weight(number: int, weight: np.ndarray) -> str:
    rows, columns = weight.shape
    type = f"tensor<{rows}x{columns}xf32>"
    return f"mico.constant @fc{number}.weight : {type} = dense<{weight.tolist()}>"


def row_type(columns: int) -> str:
    return f"tensor<1x{columns}xf32>"
