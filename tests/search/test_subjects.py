"""Subjects compute what compiled programs compute, and costs are those of real programs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from fewbit.errors import UsageError
from fewbit.quant.quantize import quantize
from fewbit.quant.recipe import Recipe
from fewbit.search.data import Examples
from fewbit.search.layer_costs import bops, cbops, size
from fewbit.search.load import Asked, Loaded, load
from fewbit.search.objective import OBJECTIVES
from fewbit.search.program_subject import ProgramSubject, quantize_program
from fewbit.search.target_costs import cycles, energy, latency, memory
from fewbit.search.torch_subject import TorchSubject
from fewbit.targets.compile import compile
from fewbit.targets.registry import find_target
from tests.search.models import images, small

RECIPES = (
    "w8a8",
    "w4a8",
    "w1.58a8",
    "w1a4",
    "w3a8-mse",
    "w2a2,conv1=w8a8,fc=fp",
    "w4a8,hidden=w4a8g8",
)


@cache
def subject_model() -> Loaded:
    return load(Asked(small(), images()))


def test_layers_that_are_functions_are_found_beside_modules() -> None:
    assert list(subject_model().layers) == ["conv1", "conv2", "hidden", "fc"]
    assert isinstance(subject_model().subject, TorchSubject)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_module_computes_what_is_compiled(recipe: str) -> None:
    part = subject_model().data.selection[slice(0, 40)]
    schemes = Recipe.of(recipe).resolve(list(subject_model().layers))
    subject = subject_model().subject
    assert isinstance(subject, TorchSubject)
    given = subject.outputs(schemes, part)
    compiled = ProgramSubject(subject_model().program).outputs(schemes, part)
    # A float that is a hair from half a step may be rounded to the other side.
    near = np.isclose(given, compiled, rtol=1e-4, atol=1e-4).mean()
    assert near > 0.97
    assert (given.argmax(-1) == compiled.argmax(-1)).mean() > 0.97


def test_the_order_of_candidates_does_not_matter() -> None:
    part = subject_model().data.selection[slice(0, 40)]
    subject = subject_model().subject
    assert isinstance(subject, TorchSubject)
    names = list(subject_model().layers)
    first = subject.outputs(Recipe.of("w2a8").resolve(names), part)
    floats = subject.outputs({}, part)
    subject.outputs(Recipe.of("w1a4").resolve(names), part)
    assert np.array_equal(first, subject.outputs(Recipe.of("w2a8").resolve(names), part))
    assert np.array_equal(floats, subject.outputs({}, part))
    model = small().eval()
    expected = model(torch.as_tensor(part.inputs[0])).detach().numpy()
    np.testing.assert_allclose(floats, expected, rtol=1e-4, atol=1e-5)


def test_the_model_that_is_given_stays_as_it_is() -> None:
    before = {name: tensor.clone() for name, tensor in small().state_dict().items()}
    subject_model().subject.measure({}, subject_model().data.selection, OBJECTIVES["accuracy"])
    assert all((small().state_dict()[name] == tensor).all() for name, tensor in before.items())
    assert isinstance(small().get_submodule("norm"), nn.BatchNorm2d)


@pytest.mark.parametrize(
    "recipe", ["w8a8", "w1.58a8", "w3a8-mse,conv1=w1a8", "w4a8,hidden=w2a8g8", "w2a8,fc=fp"]
)
def test_the_size_is_that_of_all_constants(recipe: str) -> None:
    schemes = Recipe.of(recipe).resolve(list(subject_model().layers))
    made = quantize_program(subject_model().program, schemes)
    assert (
        size(subject_model().program, subject_model().layers).total(schemes) == made.store.nbytes()
    )


def test_operations_on_bits_are_those_of_inspect() -> None:
    from fewbit.cost.layers import report_layers

    schemes = Recipe.of("w4a8,conv2=w2a4").resolve(list(subject_model().layers))
    made = quantize(subject_model().program, Recipe.by_name(schemes))
    reports = report_layers(made, subject_model().inputs)
    assert bops(subject_model().layers).total(schemes) == sum(each.bops for each in reports)
    macs = {each.name: each.macs for each in reports}
    more = sum(m * (4 + 2 + 4 if name == "conv2" else 8 + 4 + 8) for name, m in macs.items())
    assert cbops(subject_model().layers).total(schemes) == more


@pytest.mark.parametrize("target", ["vexii", "bitfusion"])
def test_cycles_are_those_of_the_targets_model(target: str) -> None:
    from fewbit.cost.cycles.layers import integer_layers

    schemes = Recipe.of("w4a8,conv2=w2a4").resolve(list(subject_model().layers))
    made = quantize(subject_model().program, Recipe.by_name(schemes))
    cost = cycles(subject_model().program, subject_model().inputs, find_target(target))
    model = find_target(target).model_layers(integer_layers(made, subject_model().inputs))
    assert model is not None
    machine = cost.name.partition(":")[2] or target
    assert cost.total(schemes) == pytest.approx(sum(model.cycles[machine]))


def test_energy_is_that_of_the_targets_model() -> None:
    wide, narrow = (
        Recipe.of(each).resolve(list(subject_model().layers)) for each in ("w8a8", "w2a2")
    )
    cost = energy(subject_model().program, subject_model().inputs, find_target("bitfusion"))
    assert 0 < cost.total(narrow) < cost.total(wide) < 1e-3
    with pytest.raises(UsageError, match="no model of energy on vexii"):
        energy(subject_model().program, subject_model().inputs, find_target("vexii"))


@pytest.mark.parametrize("target", ["cpu", "vexii"])
def test_memory_is_constants_and_the_arena_that_is_planned(target: str, tmp_path: Path) -> None:
    """The arena is that of 8 bits, and is no other with fewer bits of weights."""
    model = subject_model()
    cost = memory(model.program, size(model.program, model.layers), find_target(target))
    for recipe in ("w8a8", "w2a8"):
        made = quantize(model.program, recipe)
        art = compile(made, target, tmp_path / recipe, name="net")
        schemes = Recipe.of(recipe).resolve(list(model.layers))
        arena = art.manifest.arena_bytes
        assert arena is not None
        assert cost.total(schemes) == made.store.nbytes() + arena


def test_latency_is_that_of_inspect() -> None:
    from fewbit.cost.cpu.layers import layer_times

    schemes = Recipe.of("w4a8").resolve(list(subject_model().layers))
    made = quantize(subject_model().program, Recipe.by_name(schemes))
    times = layer_times(made, subject_model().inputs)
    cost = latency(subject_model().program, subject_model().inputs, find_target("cpu"))
    assert cost.total(schemes) == pytest.approx(sum(t.seconds for t in times), rel=0.05)


def test_a_program_of_a_fixed_batch_runs_all_examples() -> None:
    program = subject_model().program
    assert program.signature.inputs[0].shape == (1, 1, 16, 16)
    part = Examples(tuple(x[:7] for x in subject_model().data.selection.inputs))
    outputs = ProgramSubject(program).outputs({}, part)
    expected = np.concatenate([compile(program)(x[None]) for x in part.inputs[0]])
    np.testing.assert_array_equal(outputs, expected)


@pytest.mark.slow
def test_a_language_model_is_measured_on_a_text(tmp_path: Path) -> None:
    from tests.language.checkpoints import write_gguf

    write_gguf(tmp_path / "net.gguf")
    (tmp_path / "text.txt").write_text("The quick brown fox jumps over the lazy dog. " * 20)
    data = f"text:{tmp_path / 'text.txt'}"
    found = load(Asked(str(tmp_path / "net.gguf"), data, samples=1))
    assert found.data.usual == "perplexity"
    assert found.data.test is not None
    assert len(found.data.selection) == len(found.data.test) == 1
    perplexity = OBJECTIVES["perplexity"]
    measured = found.subject.measure({}, found.data.selection, perplexity)
    assert measured["kl"] == 0
    assert measured["agreement"] == 1
    schemes = Recipe.of("w8a8").resolve(list(found.layers))
    rounded = found.subject.measure(schemes, found.data.selection, perplexity)
    assert 0 < rounded["kl"] < 0.1
    assert rounded["perplexity"] == pytest.approx(measured["perplexity"], rel=0.05)


def test_a_text_is_for_language_models(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("words")
    with pytest.raises(UsageError, match="no language model that reads a text"):
        load(Asked("zoo:lenet", f"text:{tmp_path / 'text.txt'}"))
    with pytest.raises(UsageError, match="for language models from checkpoints"):
        load(Asked(small(), f"text:{tmp_path / 'text.txt'}"))
