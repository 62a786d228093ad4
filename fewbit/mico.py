"""MiCo's own interface: the names and steps of its MLIR proposal, on fewbit's compiler.

    model = LeNet(1)
    set_qscheme(model, [[8, 6, 6, 4, 4], [8, 8, 8, 8, 8]])   # or model.set_qscheme(...)
    model = fuse_model(model)
    generator = MiCoMLIRGen(model)
    generator.forward(torch.randn(1, 1, 28, 28))
    path = generator.convert("output", "lenet_mnist")

Two paths, as proposed: `MiCoMLIRGen` writes the `mico` dialect, `MiCoTorchMLIRGen` goes through
torch-mlir to the torch dialect, linalg, StableHLO or TOSA. Scales are one a tensor, as MiCo's are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from fewbit.base.files import replacing_file
from fewbit.errors import UsageError
from fewbit.frontends.quantize import quantize
from fewbit.program.program import Program
from fewbit.quant.fusion import fuse_model
from fewbit.quant.torch.prepare import quantizable_layers, recipe_of, set_exact, unprepare
from fewbit.quant.torch.qscheme import set_qscheme, unset_qscheme

__all__ = [
    "MiCoMLIRGen",
    "MiCoTorchMLIRGen",
    "fuse_model",
    "load_program",
    "set_qscheme",
    "unset_qscheme",
]

OUTPUT_TYPES = ("torch", "linalg", "stablehlo", "tosa")


class MiCoMLIRGen:
    """Writes a model as a program in the `mico` dialect, with its weights beside it."""

    def __init__(self, model: nn.Module, dialect: str = "mico") -> None:
        if dialect != "mico":
            raise UsageError(f"there is no dialect '{dialect}' to write", hint="use 'mico'")
        self.model = model
        self.dialect = dialect
        self.inputs: tuple[torch.Tensor, ...] | None = None

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Run the model, and remember what its inputs look like."""
        self.inputs = inputs
        with torch.no_grad():
            return self.model(*inputs)

    def convert(self, output_directory: str | Path, model_name: str) -> str:
        """Write `model_name.mlir` and its weights; gives the path of the text."""
        program = self.program()
        folder = Path(output_directory)
        folder.mkdir(parents=True, exist_ok=True)
        program.store.save(folder / f"{model_name}.safetensors")
        return self._write(folder / f"{model_name}.mlir", program.text())

    def program(self) -> Program:
        """The quantized program."""
        inputs = self._example_inputs()
        recipe = recipe_of(self.model)
        return quantize(unprepare(self.model), recipe, example_inputs=inputs)

    def _example_inputs(self) -> tuple[torch.Tensor, ...]:
        if self.inputs is None:
            raise UsageError(
                "the model was not run yet, so its inputs are not known",
                hint="call forward(example_input) before convert",
            )
        return self.inputs

    def _write(self, path: Path, text: str) -> str:
        with replacing_file(path) as file:
            file.write(text.encode())
        return str(path)


class MiCoTorchMLIRGen(MiCoMLIRGen):
    """Writes a model through torch-mlir; the layers' widths stand in the module's attributes."""

    def __init__(self, model: nn.Module, output_type: str = "torch") -> None:
        super().__init__(model)
        if output_type not in OUTPUT_TYPES:
            raise UsageError(
                f"there is no output type '{output_type}'", hint=f"use {', '.join(OUTPUT_TYPES)}"
            )
        self.output_type = output_type
        self.use_torch_mlir = True

    def convert(self, output_directory: str | Path, model_name: str) -> str:
        text = self.text()
        folder = Path(output_directory)
        folder.mkdir(parents=True, exist_ok=True)
        return self._write(folder / f"{model_name}.mlir", text)

    def text(self) -> str:
        """The model with its rounding as ordinary ops, in the dialect that was asked for."""
        from torch_mlir import fx
        from torch_mlir.fx import OutputType
        from torch_mlir.ir import Attribute  # pyright: ignore

        kinds = {
            "torch": OutputType.TORCH,
            "linalg": OutputType.LINALG_ON_TENSORS,
            "stablehlo": OutputType.STABLEHLO,
            "tosa": OutputType.TOSA,
        }
        inputs = self._example_inputs()
        set_exact(self.model, False)
        with torch.no_grad():
            module = fx.export_and_import(
                self.model.eval(), *inputs, output_type=kinds[self.output_type]
            )
        schemes = recipe_of(self.model).resolve(list(quantizable_layers(self.model)))
        words = ", ".join(f'"{name}" = "{scheme}"' for name, scheme in schemes.items())
        with module.context:
            module.operation.attributes["mico.scheme"] = Attribute.parse(f"{{{words}}}")
        return str(module) + "\n"


def load_program(path: str | Path) -> Program:
    """A program that `MiCoMLIRGen.convert` wrote, with its weights."""
    from fewbit.program.store import WeightStore

    path = Path(path)
    return Program.load(path, WeightStore.open(path.with_suffix(".safetensors")))
