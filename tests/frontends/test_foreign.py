"""What people bring that is no model: each gets an answer that says what it is and what to do."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.errors import UnsupportedError, UsageError
from fewbit.frontends import import_model
from fewbit.frontends.foreign import list_factories

PYTHON = """
raise RuntimeError("this file is parsed and not run")

def net(): ...
def with_defaults(width=8, *rest, depth=2, **named): ...
def needs_one(width): ...
def needs_named(*, width): ...
def _hidden(): ...

class Plain: ...
class Net:
    def __init__(self, width=8): ...
    def forward(self, x): ...
class Needy:
    def __init__(self, width): ...
"""


class Bomb:
    """An object that leaves a file behind where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ckpt", ".bin"])
def test_a_pickled_file_is_explained_and_not_unpickled(suffix: str, tmp_path: Path) -> None:
    file, mark = tmp_path / f"net{suffix}", tmp_path / "unpickled"
    file.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(UnsupportedError, match="pickled file of PyTorch") as caught:
        import_model(str(file))
    assert not mark.exists()
    hint = caught.value.hint or ""
    assert "torch.export.save" in hint
    assert "net.pt2" in hint
    assert "net.py:net" in hint


def test_what_torch_writes_is_told_apart(tmp_path: Path) -> None:
    import torch

    model = torch.nn.Linear(4, 2)
    torch.save(model.state_dict(), tmp_path / "state.pt")
    with pytest.raises(UnsupportedError, match="pickled file of PyTorch"):
        import_model(tmp_path / "state.pt")
    torch.export.save(torch.export.export(model, (torch.ones(1, 4),)), tmp_path / "net.pt2")
    (tmp_path / "net.pt2").rename(tmp_path / "net.pt")
    with pytest.raises(UsageError, match="under another suffix") as caught:
        import_model(tmp_path / "net.pt")
    assert caught.value.hint == "call it net.pt2"


def test_torchscript_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "net.pt", "w") as archive:
        archive.writestr("net/code/__torch__.py", "")
        archive.writestr("net/data.pkl", b"")
    with pytest.raises(UnsupportedError, match="TorchScript"):
        import_model(tmp_path / "net.pt")


def test_functions_without_arguments_are_found_without_running_the_file(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(PYTHON)
    assert list_factories(tmp_path / "net.py") == ["net", "with_defaults", "Plain", "Net"]


@pytest.mark.parametrize("colon", ["", ":"])
def test_a_python_file_alone_gets_suggestions(colon: str, tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(PYTHON)
    with pytest.raises(UsageError, match="which function") as caught:
        import_model(f"{file}{colon}")
    assert f"{file}:net or {file}:with_defaults" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["x = 1", "def broken(:", "def net(width): ..."])
def test_a_python_file_without_factories_says_how_to_write_one(text: str, tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(text)
    with pytest.raises(UsageError, match="which function") as caught:
        import_model(file)
    assert "def net()" in (caught.value.hint or "")


def test_a_wrong_factory_gets_suggestions(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("def small(): ...")
    with pytest.raises(UsageError, match="there is no 'smal'") as caught:
        import_model(f"{file}:smal")
    assert f"{file}:small" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("llama.gguf", "GGUF", "from_pretrained"),
        ("model.safetensors", "weights without the model", "net.py:net"),
        ("net.tflite", "TensorFlow Lite", "SavedModel"),
        ("net.h5", "HDF5", ".keras"),
        ("recipe.json", "JSON", "--recipe"),
        ("x.npy", "array of numpy", "--input"),
        ("frozen.pb", "graph of TensorFlow", "SavedModel"),
    ],
)
def test_other_formats_are_named(name: str, what: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"GGUF\x03\0\0\0\xff")
    with pytest.raises(UnsupportedError, match=what) as caught:
        import_model(tmp_path / name)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (json.dumps({"architectures": ["LlamaForCausalLM"]}), "LlamaForCausalLM"),
        (json.dumps({"architectures": ["x; import os"]}), "AutoModel"),
        ("[]", "AutoModel"),
        ("not json", "AutoModel"),
    ],
)
def test_a_hugging_face_folder_is_explained(config: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(UnsupportedError, match=rf"Hugging Face folder \({name}\)") as caught:
        import_model(tmp_path)
    assert f"transformers:{name}.from_pretrained(" in (caught.value.hint or "")


def test_a_folder_without_a_model_names_the_files_in_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this folder is no model") as caught:
        import_model(tmp_path)
    assert "net.py:net" in (caught.value.hint or "")
    (tmp_path / "net.onnx").write_bytes(b"")
    with pytest.raises(UsageError, match="this folder is no model") as caught:
        import_model(tmp_path)
    assert caught.value.hint == f"give a file in it: {tmp_path / 'net.onnx'}"


def test_a_folder_that_was_compiled_is_to_be_run(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UsageError, match="compiled already") as caught:
        import_model(tmp_path)
    assert f"fewbit run {tmp_path}" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lenet", "write zoo:lenet"),
        ("timm:resnet18", "write timm:create_model('resnet18')"),
        ("torchvision:resnet18", "write torchvision:models.resnet18()"),
        ("nothing", "give zoo:NAME"),
    ],
)
def test_a_model_that_is_missing_gets_the_nearest_spelling(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match="there is no model") as caught:
        import_model(name)
    assert (caught.value.hint or "").startswith(hint)


@pytest.mark.parametrize(("name", "status"), [("net.pt", 3), ("net.py", 2), ("llama.gguf", 3)])
def test_sizes_of_inputs_do_not_hide_the_answer(
    name: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("")
    assert guarded(run, ["compile", str(tmp_path / name), "--input-shape", "1x8"]) == status
    shown = capsys.readouterr().err
    assert f"{tmp_path / name}: this is a" in shown
    assert "fixed already" not in shown
