"""A pass of one's own, inserted into the compiler: every GELU by its tanh approximation.

A pass is a function of the module. This one runs after the stage `mico`, where an activation is
still a single op. From the command line: --insert-pass mico:examples/own_pass.py:tanh_gelu
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from xdsl.dialects.builtin import ModuleOp, StringAttr

import fewbit
from fewbit.dialects.mico import GeluOp


def tanh_gelu(module: ModuleOp) -> None:
    for op in module.walk():
        if isinstance(op, GeluOp):
            op.approximate = StringAttr("tanh")


def main() -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)]
    x = torch.randn(1, 16)
    program = fewbit.import_model(nn.Sequential(*layers), (x,))
    exact = fewbit.compile(program)
    changed = fewbit.compile(program, passes={"mico": [tanh_gelu]})
    layers[1] = nn.GELU("tanh")
    with torch.no_grad():
        expected = nn.Sequential(*layers)(x).numpy()
    for name, art in (("exact", exact), ("changed", changed)):
        error = np.abs(art(x.numpy()) - expected).max()
        print(f"{name}: {error:.1e} from the approximation by PyTorch")


if __name__ == "__main__":
    main()
