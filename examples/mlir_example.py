"""MiCo's example: a mixed-precision LeNet as a program in the mico dialect.

python examples/mlir_example.py [OUTPUT_DIRECTORY]
"""

import sys

import torch

from fewbit.mico import MiCoMLIRGen, fuse_model
from fewbit.models import LeNet


def main(output: str) -> str:
    torch.manual_seed(0)
    model = LeNet(1)
    model.set_qscheme([[8, 6, 6, 4, 4], [8, 8, 8, 8, 8]])
    model = fuse_model(model)
    model.eval()

    mlir_gen = MiCoMLIRGen(model)
    mlir_gen.forward(torch.randn(1, 1, 28, 28))
    return mlir_gen.convert(output, "lenet_mnist")


if __name__ == "__main__":
    print(f"MLIR code generated at: {main(sys.argv[1] if len(sys.argv) > 1 else 'output')}")
