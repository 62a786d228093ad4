"""Training beside a search: of a module before it, and of candidates after rounding.

A trained module is kept in the folder of the run, under a name made of what decides its weights.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fewbit.base.typed_torch import from_numpy
from fewbit.errors import UsageError
from fewbit.models.training import train
from fewbit.program.store import WeightStore
from fewbit.quant.recipe import Recipe
from fewbit.quant.torch.prepare import convert, prepare_qat
from fewbit.search.data import Examples, SearchData
from fewbit.search.objective import Metrics, Objective
from fewbit.search.objective import measure as measure_outputs
from fewbit.search.subject import Schemes
from fewbit.search.torch_subject import TorchSubject, run

QAT_RATE = 2e-3
"""The learning rate of a short training after rounding."""


def train_module(model: nn.Module, data: SearchData, epochs: int, folder: Path | None) -> nn.Module:
    """Return a copy of a module that was trained on the data, read where it was before.

    No seed of a search changes it.
    """
    part = _labelled(data.train)
    model = copy.deepcopy(model)
    path = None if folder is None else folder / f"trained-{_name(model, part, epochs)}"
    if path is not None and path.with_suffix(".safetensors").is_file():
        _read(model, path.with_suffix(".safetensors"))
        return model.eval()
    train(model, part.inputs[0], _labels(part), epochs=epochs, distort=_distort(part))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(model, path.with_suffix(".safetensors"))
    return model.eval()


@dataclass(frozen=True)
class AfterTraining:
    """How a candidate is run after a short quantization-aware training."""

    subject: TorchSubject
    objective: Objective
    part: Examples
    epochs: int = 1
    seed: int = 0

    @property
    def how(self) -> str:
        return f"{self.subject.how} qat={self.epochs} seed={self.seed} on={self.part.hash()}"

    def __call__(self, schemes: Schemes, part: Examples) -> tuple[Metrics, int]:
        prepared = self.trained(schemes) if schemes else self.subject.model
        outputs = run(prepared, part)
        reference = self.subject.reference(part)
        numbers = measure_outputs(outputs, reference, part.labels, self.objective)
        return numbers, len(part) + self.epochs * len(self.part)

    def trained(self, schemes: Schemes) -> nn.Module:
        """Return the module prepared by these schemes, and trained."""
        names = {name: s for name, s in schemes.items() if name in set(self.subject.names)}
        scales = self.subject.static_scales(names)
        prepared = prepare_qat(self.subject.model, Recipe.by_name(names), calibration=scales)
        train(
            prepared,
            self.part.inputs[0],
            _labels(self.part),
            epochs=self.epochs,
            lr=QAT_RATE,
            seed=self.seed,
            progress=None,
        )
        return prepared.eval()

    def converted(self, schemes: Schemes) -> nn.Module:
        """Return the float module with the weights that training gave it."""
        return convert(self.trained(schemes))


def labelled(data: SearchData) -> Examples:
    return _labelled(data.train)


def _labelled(part: Examples | None) -> Examples:
    if part is None or part.labels is None or len(part.inputs) != 1:
        raise UsageError(
            "training needs examples of one input with labels",
            hint="give data with labels: mnist, or file.py:loader that returns inputs and labels",
        )
    return part


def _labels(part: Examples) -> Any:
    assert part.labels is not None
    return part.labels


def _distort(part: Examples) -> float:
    """Return how far images are distorted: grey ones of digits fully, others not."""
    x = part.inputs[0]
    return 1.0 if x.ndim == 4 and bool((x[:, :1] == x).all()) else 0.0


def _name(model: nn.Module, part: Examples, epochs: int) -> str:
    digest = sha256(f"{part.hash()} {epochs} {torch.__version__}".encode())
    for name, tensor in _state(model).items():
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def _state(model: nn.Module) -> Mapping[str, Tensor]:
    return model.state_dict()


def _write(model: nn.Module, path: Path) -> None:
    store = WeightStore()
    for name, tensor in _state(model).items():
        store.add(name, tensor.detach().cpu().contiguous().numpy())
    store.save(path)


def _read(model: nn.Module, path: Path) -> None:
    store = WeightStore.open(path)
    shapes = {name: tensor.shape for name, tensor in _state(model).items()}
    state = {name: from_numpy(store[name].copy()).reshape(shapes[name]) for name in store}
    model.load_state_dict(state)
