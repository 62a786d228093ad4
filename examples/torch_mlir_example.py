"""MiCo's second path: the same LeNet through torch-mlir.

python examples/torch_mlir_example.py [OUTPUT_DIRECTORY] [torch|linalg|stablehlo|tosa]
"""

import sys

import torch

from fewbit.mico import MiCoTorchMLIRGen, fuse_model
from fewbit.models import LeNet


def main(output: str, output_type: str = "torch") -> str:
    torch.manual_seed(0)
    model = LeNet(1)
    model.set_qscheme([[8, 6, 6, 4, 4], [8, 8, 8, 8, 8]])
    model = fuse_model(model)
    model.eval()

    mlir_gen = MiCoTorchMLIRGen(model, output_type=output_type)
    mlir_gen.forward(torch.randn(1, 1, 28, 28))
    mlir_path = mlir_gen.convert(output, f"lenet_mnist_{output_type}")
    print(f"Backend: {'torch-mlir' if mlir_gen.use_torch_mlir else 'standalone'}")
    return mlir_path


if __name__ == "__main__":
    print(f"MLIR code generated at: {main(*(sys.argv[1:] or ['output']))}")
