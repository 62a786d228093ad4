"""Models by a call of an installed package."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.errors import UsageError
from fewbit.frontends.call_text import evaluate_call, is_call
from fewbit.frontends.locate import find_module
from fewbit.targets.compile import name_of

LINEAR = "torch.nn:Linear(4, 3)"


def test_a_call_is_imported() -> None:
    program = fewbit.import_model(LINEAR, input_shapes=["2x4"])
    assert program.run(np.ones((2, 4), np.float32))[0].shape == (2, 3)
    module = find_module(LINEAR)
    assert module is not None
    assert type(module.model).__name__ == "Linear"


def test_calls_are_arguments_of_calls() -> None:
    model = evaluate_call("torch.nn:Sequential(Linear(4, 3, bias=False), ReLU(), Flatten(-1))")
    assert [type(part).__name__ for part in model] == ["Linear", "ReLU", "Flatten"]
    assert model[0].bias is None


def test_methods_are_found_by_their_class() -> None:
    assert evaluate_call("collections:OrderedDict.fromkeys(['a', 'b'], 1)") == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nowhere:make()", "there is no package 'nowhere'"),
        ("torch.nn:Linea(4, 3)", "there is no 'Linea' in torch.nn"),
        ("torch.nn:Linear(4)", "'Linear' fails: TypeError"),
        ("torch.nn:Linear(size, 3)", "'size', which is no literal"),
        ("torch.nn:Linear(*[4, 3])", "which is no literal"),
        ("torch.nn:Linear(**{'in_features': 4})", "unpacks a mapping"),
        ("torch.nn:Linear(4, 3)(5)", "which is no name"),
        ("torch.nn:Linear(4, 3))", "is no call"),
        ("os:__getattr__('system')", "there is no '__getattr__' in os"),
        ("os:path._joinrealpath('a')", "there is no '_joinrealpath'"),
    ],
)
def test_what_cannot_be_called(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        fewbit.import_model(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["zoo:lenet", "net.py:make", "a/b:make()", "C:model(1).onnx", "x"])
def test_what_is_no_call(text: str) -> None:
    assert not is_call(text)


def test_packages_that_do_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_package.py").write_text("raise RuntimeError('no device')")
    (tmp_path / "lazy_package.py").write_text("def __getattr__(name): raise RuntimeError(name)")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for text, reason in (
        ("broken_package:make()", "'broken_package' does not load: RuntimeError: no device"),
        ("lazy_package:make()", "'make' of lazy_package does not load"),
    ):
        with pytest.raises(UsageError) as caught:
            evaluate_call(text)
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("timm:create_model('resnet18', pretrained=True)", "resnet18"),
        ("transformers:AutoModel.from_pretrained('models/bert')", "bert"),
        ("transformers:BertModel(BertConfig(num_hidden_layers=2))", "BertModel"),
        (LINEAR, "Linear"),
    ],
)
def test_names_of_what_is_made(text: str, name: str) -> None:
    assert name_of(text) == name
