"""Static scales of activations: what is searched is what is deployed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.errors import UsageError
from fewbit.numerics import Width
from fewbit.quant.calibration import Calibration
from fewbit.quant.recipe import Recipe
from fewbit.search.load import Asked, Loaded, load
from fewbit.search.program_subject import ProgramSubject, quantize_program
from fewbit.search.space import Choices, make_space
from fewbit.search.subject import ArraySubject
from fewbit.targets.compile import compile
from tests.search.models import images, small
from tests.search.test_budget import LAYERS

WIDTHS = (Width.of(4), Width.of(8))


def load_model() -> Loaded:
    made = load(Asked(small(), images()))
    made.subject.use_static_scales(made.data.for_scales, WIDTHS)
    return made


@pytest.mark.parametrize("recipe", ["w8a8-static", "w4a4-static", "w4a8-static,conv2=w2a4"])
def test_a_module_computes_what_is_compiled(recipe: str) -> None:
    model = load_model()
    assert isinstance(model.subject, ArraySubject)
    part = model.data.selection[slice(0, 40)]
    schemes = Recipe.of(recipe).resolve(list(model.layers))
    given = model.subject.outputs(schemes, part)
    made = quantize_program(model.program, schemes, model.subject.static_scales(schemes))
    artifact = compile(made)
    compiled = np.concatenate([artifact(x[None]) for x in part.inputs[0]])
    assert np.isclose(given, compiled, rtol=1e-4, atol=1e-4).mean() > 0.97
    dynamic = model.subject.outputs(Recipe.of("w4a4").resolve(list(model.layers)), part)
    assert not np.allclose(given, dynamic, rtol=1e-4)


def test_a_program_is_calibrated_by_the_interpreter() -> None:
    model = load_model()
    subject = ProgramSubject(model.program)
    few = model.data.for_scales[slice(0, 20)]
    subject.use_static_scales(few, WIDTHS)
    schemes = Recipe.of("w8a8-static").resolve(list(model.layers))
    model.subject.use_static_scales(few, WIDTHS)
    found, expected = subject.static_scales(schemes), model.subject.static_scales(schemes)
    assert found == pytest.approx(dict(expected), rel=1e-3)
    assert set(found) == set(model.layers)


def test_scales_that_were_never_asked_for_are_an_error() -> None:
    model = load(Asked(small(), images()))
    schemes = Recipe.of("w8a8-static").resolve(list(model.layers))
    with pytest.raises(UsageError, match="none were calibrated"):
        model.subject.static_scales(schemes)


def test_a_recipe_is_written_with_its_scales(tmp_path: Path) -> None:
    result = fewbit.search(
        small(),
        data=images(),
        budget={"size": 0.5},
        trials=4,
        weights=(2, 4, 8),
        rules=("max",),
        act_scales=("static",),
        output=tmp_path,
    )
    best = result.best
    assert best is not None
    assert all(scheme.endswith("-static") for scheme in best.schemes.values())
    assert Calibration.load(tmp_path / "best.json") == Calibration(best.scales)
    assert len(list((tmp_path / "front").glob("*.json"))) == len(result.front)
    # Again, without: files of before do not stay.
    fewbit.search(small(), data=images(), budget={"size": 0.5}, trials=2, output=tmp_path)
    assert not (tmp_path / "best.json").exists()


def test_a_space_may_have_both_kinds() -> None:
    widths = tuple(map(Width.of, (4, 8)))
    space = make_space(
        LAYERS,
        Choices(widths, widths, ("max",), act_scales=("dynamic", "static")),
        free_ends=True,
    )
    texts = [str(each) for each in space.units[0].choices]
    assert texts == [
        *("w4a4", "w4a4-static", "w4a8", "w4a8-static"),
        *("w8a4", "w8a4-static", "w8a8", "w8a8-static"),
    ]
    assert {str(each) for each in space.schemes(space.widest).values()} == {"w8a8"}


def test_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="no kind 'some' of scales of activations"):
        fewbit.search(small(), data=images(), act_scales=("some",))
    with pytest.raises(UsageError, match="no rule of scales of weights"):
        fewbit.search(small(), data=images(), rules=())
