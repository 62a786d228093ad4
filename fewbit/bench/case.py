"""A case: what every tool is given, as a folder that their processes share.

It holds the model's name and weights, the inputs, samples to calibrate with, and what fewbit has
compiled. A process that runs a tool reads what it needs from there and from nowhere else, and puts
its own files into a folder of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from fewbit.bench.text_work import TextWork

Array = np.ndarray[Any, Any]

COMPILED = "compiled"
"""The folder of fewbit's artifact."""


class Case(BaseModel):
    """A model with its inputs, samples and weights, in a folder."""

    model_config = ConfigDict(frozen=True)

    folder: Path
    model: str | None
    """What names the PyTorch model; None where there is a program only."""
    quantized: bool
    """Whether other tools shall compute with integers, where they can."""
    text: TextWork | None = None
    """What a language model has to do; None where a model has inputs."""
    gguf: Path | None = None
    """The file of llama.cpp."""

    def save(
        self, module: Any, inputs: Sequence[Array], samples: Sequence[Sequence[Array]]
    ) -> None:
        (self.folder / "case.json").write_text(self.model_dump_json())
        write_arrays(self.folder / "inputs.npz", inputs)
        for number, sample in enumerate(samples):
            write_arrays(self.folder / f"sample{number:03}.npz", sample)
        if module is not None:
            import torch

            torch.save(module.state_dict(), self.folder / "weights.pt")

    @staticmethod
    def load(folder: Path) -> Case:
        return Case.model_validate_json((folder / "case.json").read_bytes())

    @property
    def inputs(self) -> list[Array]:
        return read_arrays(self.folder / "inputs.npz")

    @property
    def samples(self) -> list[list[Array]]:
        """Inputs to calibrate with."""
        return [read_arrays(path) for path in sorted(self.folder.glob("sample*.npz"))]

    @property
    def work(self) -> TextWork:
        """What a language model has to do."""
        assert self.text is not None
        return self.text

    def place(self, tool: str) -> Path:
        """Return the folder of a tool."""
        path = self.folder / tool
        path.mkdir(exist_ok=True)
        return path

    def save_outputs(self, tool: str, outputs: Sequence[Array]) -> None:
        write_arrays(self.place(tool) / "outputs.npz", outputs)

    def outputs(self, tool: str) -> list[Array]:
        return read_arrays(self.place(tool) / "outputs.npz")

    def module(self) -> Any:
        """Return the PyTorch model, with the weights that all tools have."""
        import torch

        from fewbit.frontends.locate import find_module

        module = find_module(self.model or "")
        assert module is not None
        weights = torch.load(self.folder / "weights.pt", weights_only=True)
        # Its own parameters may be a file that is mapped for reading alone.
        module.model.load_state_dict(weights, assign=True)
        return module.model

    def tensors(self) -> tuple[Any, ...]:
        """Return the inputs, for PyTorch."""
        from fewbit.base.typed_torch import from_numpy

        return tuple(from_numpy(array) for array in self.inputs)


def write_arrays(path: Path, arrays: Sequence[Array]) -> None:
    named: dict[str, Any] = {f"{i:03}": array for i, array in enumerate(arrays)}
    np.savez(path, **named)


def read_arrays(path: Path) -> list[Array]:
    with np.load(path, allow_pickle=False) as file:
        return [file[name] for name in sorted(file.files)]
