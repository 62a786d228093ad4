"""From what a user names to a subject: a module where there is one, else a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.cost.layers import made_up_inputs
from fewbit.errors import UsageError
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.program.program import Program
from fewbit.search.data import SearchData, made_up, read_data
from fewbit.search.layer_costs import FloatLayer, find_layers
from fewbit.search.program_subject import ProgramSubject
from fewbit.search.subject import Subject

if TYPE_CHECKING:
    from torch import nn

    from fewbit.frontends import Model, Shapes

TEXT = "text:"
MADE_UP = 32
"""Random examples where there is no data."""


@dataclass(frozen=True)
class Loaded:
    """A model and its data, ready to be searched."""

    subject: Subject
    data: SearchData
    layers: dict[str, FloatLayer]
    inputs: Sequence[Any]
    """Inputs of a batch of one."""
    unsearched: tuple[str, ...] = ()
    """Layers that cannot be rounded where candidates are run, and stay float."""
    remake: Callable[[nn.Module], Program] | None = None
    """Imports the module again, with other weights."""
    trained: Callable[[], Loaded] | None = None
    """Trains the module on the data first, where that was asked for."""
    is_trained: bool = False
    """Whether the module was trained here, so that its name no longer says its weights."""

    def train(self) -> Loaded:
        """Return the model as it is to be searched."""
        return self if self.trained is None else self.trained()

    @property
    def program(self) -> Program:
        return self.subject.program


@dataclass(frozen=True)
class Asked:
    """A model as it was named, with what it is to be loaded with."""

    model: Model
    data: Any
    example_inputs: Sequence[Any] = ()
    input_shapes: Shapes | None = None
    dynamic_shapes: Any = None
    samples: int | None = None
    train: int = 0
    """Epochs for which a module is trained on the data first."""
    folder: Path | None = None
    """Where a trained module is kept."""


def load(asked: Asked) -> Loaded:
    """Import a model, read its data, and find its layers."""
    text = str(asked.data)
    if isinstance(asked.data, str) and text.startswith(TEXT):
        return _load_text(asked, Path(text.removeprefix(TEXT)))
    data = read_data(asked.data, asked.samples)
    module, inputs, dynamic = _module(asked, data)
    if module is None:
        return _load_program(asked, data)
    return _load_module(asked, module, inputs, dynamic, data)


def _load_text(asked: Asked, path: Path) -> Loaded:
    from fewbit.search.text_subject import load_text_model, read_windows

    _refuse_training(asked)
    if not isinstance(asked.model, str | Path):
        raise UsageError(
            "a text is for language models from checkpoints",
            hint="name a GGUF file or a Hugging Face folder",
        )
    subject = load_text_model(Path(asked.model))
    return _finish(subject, read_windows(subject.program, path, asked.samples))


def _load_program(asked: Asked, data: SearchData | None) -> Loaded:
    from fewbit.frontends import import_model

    _refuse_training(asked)
    program = import_model(
        asked.model,
        asked.example_inputs,
        asked.dynamic_shapes,
        input_shapes=asked.input_shapes,
    )
    if program.recipe is not None:
        raise UsageError(
            "the program is quantized already", hint="search the float model that it was made from"
        )
    program = fold_batch_norm(program)
    return _finish(ProgramSubject(program), _fitted(data, program))


def _load_module(
    asked: Asked, module: nn.Module, inputs: Sequence[Any], dynamic: Any, data: SearchData | None
) -> Loaded:
    from fewbit.frontends import import_model
    from fewbit.search.torch_subject import TorchSubject, fold

    def remake(module: nn.Module) -> Program:
        made = import_model(module, inputs, dynamic, input_shapes=asked.input_shapes)
        return fold_batch_norm(made)

    program = remake(module)
    fitted = _fitted(data, program)

    def make(module: nn.Module, program: Program) -> Loaded:
        folded = fold(module, inputs or made_up_inputs(program, dynamic=2))
        one = made_up_inputs(program, dynamic=1)
        subject = TorchSubject(folded, program, list(find_layers(program, one)), one)
        return replace(_finish(subject, fitted, subject.names), remake=remake)

    untrained = make(module, program)
    if not asked.train:
        return untrained
    if data is None:
        raise UsageError("there is no data to train on", hint="add --data mnist, for example")

    def train() -> Loaded:
        from fewbit.search.training import train_module

        trained = train_module(module, fitted, asked.train, asked.folder)
        return replace(make(trained, remake(trained)), is_trained=True)

    return replace(untrained, trained=train)


def _finish(subject: Subject, data: SearchData, names: Sequence[str] | None = None) -> Loaded:
    inputs = made_up_inputs(subject.program, dynamic=1)
    layers = find_layers(subject.program, inputs)
    others = () if names is None else tuple(name for name in layers if name not in set(names))
    return Loaded(subject, data, layers, inputs, others)


def _module(asked: Asked, data: SearchData | None) -> tuple[nn.Module | None, Sequence[Any], Any]:
    """Return the PyTorch module that is meant, with inputs to trace it on and dynamic shapes."""
    from torch import nn

    if isinstance(asked.model, nn.Module):
        inputs = asked.example_inputs or _first_inputs(data, asked.input_shapes is not None)
        return asked.model, inputs, asked.dynamic_shapes
    if not isinstance(asked.model, str | Path):
        return None, (), None
    name = str(asked.model)
    from fewbit.frontends.locate import find_module

    if name.startswith("zoo:"):
        from fewbit.models.registry import create, find_entry

        entry = find_entry(name.removeprefix("zoo:"))
        if asked.input_shapes:
            return create(entry.name), (), None
        inputs = entry.example_inputs(1 if entry.is_step else 2)
        return create(entry.name), inputs, entry.dynamic_shapes
    # An exported program is no module whose layers could be changed.
    found = None if name.endswith(".pt2") else find_module(name)
    if found is None or found.named or not isinstance(found.model, nn.Module):
        return None, (), None
    has_shapes = asked.input_shapes is not None
    return found.model, found.inputs or _first_inputs(data, has_shapes), found.dynamic_shapes


def _first_inputs(data: SearchData | None, has_shapes: bool) -> Sequence[Any]:
    """Return the first example as inputs of a module that came without."""
    import torch

    if has_shapes:
        return ()
    if data is None:
        raise UsageError(
            "nothing says what the model's inputs are",
            hint="give example_inputs, --input-shape 1x3x32x32, or data",
        )
    first = data.selection[slice(0, 1)].inputs
    return tuple(torch.as_tensor(np.ascontiguousarray(x)) for x in first)


def _fitted(data: SearchData | None, program: Program) -> SearchData:
    if data is not None:
        return data.fit(program.signature)
    pieces = [made_up_inputs(program, seed, dynamic=1) for seed in range(MADE_UP)]
    return made_up(pieces)


def _refuse_training(asked: Asked) -> None:
    if asked.train:
        raise UsageError("only PyTorch modules can be trained", hint="leave --train out")
