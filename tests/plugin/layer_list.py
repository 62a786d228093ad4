"""A front end outside the tree: linear layers as JSON, `{"layers": [{"weight": [[...]], "relu": true}]}`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fewbit.frontends.frontend import Frontend, Given
from fewbit.program.program import Program


class LayerList(Frontend):
    def reads(self, path: Path) -> bool:
        return path.name.endswith(".layers.json")

    def import_file(self, path: Path, given: Given) -> Program:
        layers = json.loads(path.read_text())["layers"]
        weights = [np.asarray(layer["weight"], np.float32) for layer in layers]
        lines: list[str] = []
        value, type = "%x", f"tensor<1x{weights[0].shape[1]}xf32>"
        for i, (layer, weight) in enumerate(zip(layers, weights, strict=True)):
            given_type, type = type, f"tensor<1x{weight.shape[0]}xf32>"
            lines.append(
                f"%y{i} = mico.bitlinear({value}, @fc{i}.weight) : ({given_type}) -> {type}"
            )
            value = f"%y{i}"
            if layer.get("relu"):
                lines.append(f"%z{i} = mico.relu({value}) : {type} -> {type}")
                value = f"%z{i}"
        constants = "\n".join(
            f"mico.constant @fc{i}.weight : tensor<{'x'.join(map(str, w.shape))}xf32>"
            f" = dense<{w.tolist()}>"
            for i, w in enumerate(weights)
        )
        first = f"tensor<1x{weights[0].shape[1]}xf32>"
        body = "\n  ".join([*lines, f"func.return {value} : {type}"])
        return Program.parse(
            f"{constants}\nfunc.func @main(%x: {first}) -> {type} {{\n  {body}\n}}\n"
        )
