"""Files that people bring and that hold no model to compile: what each is, and what to do with it.

They are known by their suffix, or by the files in a folder. Nothing in them is run: a pickled file
of PyTorch is code, of which only the list of its parts is read, and a Python file is parsed.
"""

from __future__ import annotations

import ast
import json
import zipfile
from pathlib import Path
from typing import Any, cast

from fewbit.errors import Error, Place, UnsupportedError, UsageError

PICKLES = (".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle")
"""Suffixes of what `torch.save` writes."""
FORMATS = {
    ".gguf": "a file that is called GGUF and does not begin as one",
    ".safetensors": "a safetensors file: weights without the model that they belong to",
    ".tflite": "a TensorFlow Lite model",
    ".h5": "an HDF5 file, as older versions of Keras write",
    ".pb": "a graph of TensorFlow, without the folder that it belongs to",
    ".json": "a JSON file, as of recipes and configurations, and no model",
    **dict.fromkeys((".npy", ".npz"), "an array of numpy and no model"),
}
HINTS = {
    ".gguf": "download it again; a GGUF file begins with these four letters",
    ".safetensors": "load them into their model in a Python file with 'def net(): return model, "
    "(x,)', then 'fewbit compile net.py:net'",
    ".tflite": "give the Keras model or the SavedModel that it was made from",
    ".h5": "load it with Keras 3 and save it again: model.save('net.keras')",
    ".pb": "give the folder of the SavedModel, or an ONNX model that tf2onnx makes of it",
    ".json": "a recipe goes behind --recipe; a configuration is read as part of its folder",
    **dict.fromkeys((".npy", ".npz"), "inputs go behind --input of 'fewbit run'"),
}
MODELS = (".onnx", ".pt2", ".keras", ".gguf", ".mlir")
"""Suffixes of files that hold a model."""


def explain_foreign(path: Path) -> Error | None:
    """Return the error for a file or folder that is known to hold no model; else None."""
    if path.is_dir():
        return _explain_folder(path)
    if path.suffix == ".py":
        return _explain_python(path)
    if path.suffix in PICKLES:
        return _explain_pickle(path)
    if path.suffix in FORMATS:
        what = f"this is {FORMATS[path.suffix]}, which fewbit does not read"
        return UnsupportedError(what, place=Place(file=str(path)), hint=HINTS[path.suffix])
    return None


def list_factories(path: Path) -> list[str]:
    """Return the functions and classes of a Python file that can be called without arguments.

    The file is parsed and not run. Classes from other files are unknown, so one that inherits its
    `__init__` counts.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    named = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return [n.name for n in named if not n.name.startswith("_") and _needs_nothing(n)]


def suggest_factories(path: Path) -> str:
    """Return a hint that names what could stand behind the colon."""
    factories = list_factories(path)
    if factories:
        return f"write {' or '.join(f'{path}:{name}' for name in factories)}"
    return (
        "add a function without arguments that returns the model, 'def net(): return model, (x,)',"
        f" and write {path}:net"
    )


def _needs_nothing(node: ast.FunctionDef | ast.ClassDef) -> bool:
    if isinstance(node, ast.FunctionDef):
        return _required(node.args) == 0
    makers = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    # The first argument is the object itself.
    return all(_required(maker.args) <= 1 for maker in makers)


def _required(arguments: ast.arguments) -> int:
    """Return how many arguments must be given in a call."""
    by_place = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return by_place + sum(default is None for default in arguments.kw_defaults)


def _explain_python(path: Path) -> Error:
    return UsageError(
        "this is a Python file, and nothing says which function in it makes the model",
        place=Place(file=str(path)),
        hint=suggest_factories(path),
    )


def _explain_pickle(path: Path) -> Error:
    parts = _parts_of_zip(path)
    place = Place(file=str(path))
    if any(
        part.endswith("archive_format") or part == "serialized_exported_program.json"
        for part in parts
    ):
        what = "this is an archive of torch.export.save under another suffix"
        return UsageError(what, place=place, hint=f"call it {path.with_suffix('.pt2').name}")
    if any("/code/" in part for part in parts):
        what = "this is a TorchScript file, which fewbit does not read"
    else:
        what = (
            "this is a pickled file of PyTorch, a checkpoint or a whole model; it is code, which "
            "fewbit does not run"
        )
    return UnsupportedError(
        what,
        place=place,
        hint="where the model is built, torch.export.save(torch.export.export(model, (x,)), "
        f"'{path.stem}.pt2') and compile that; or load it in a Python file with 'def net(): return "
        "model, (x,)' and give net.py:net",
    )


def _parts_of_zip(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return []


def _explain_folder(path: Path) -> Error | None:
    """Return the error for a folder without a program: Hugging Face's, or one with other things."""
    weights = [*path.glob("*.safetensors*"), *path.glob("pytorch_model*.bin*")]
    if not (path / "config.json").is_file() or not weights:
        return None if (path / "program.json").exists() else _explain_other_folder(path)
    name = _architecture(path / "config.json") or "AutoModel"
    return UnsupportedError(
        f"this is a Hugging Face folder ({name}), which fewbit does not read by itself",
        place=Place(file=str(path)),
        hint="let transformers read it, and say what its input is:\n"
        f"  fewbit compile \"transformers:{name}.from_pretrained('{path}')\" "
        "--input-shape 1x16:i64",
    )


def _explain_other_folder(path: Path) -> Error:
    place = Place(file=str(path))
    if (path / "manifest.json").is_file():
        return UsageError(
            "this folder was compiled already",
            place=place,
            hint=f"run it with 'fewbit run {path}', or compile the model that it was made of",
        )
    inside = sorted(each for each in path.iterdir() if each.suffix in MODELS)
    return UsageError(
        "this folder is no model: it has no saved program, no SavedModel, and no configuration "
        "with weights of Hugging Face",
        place=place,
        hint=f"give a file in it: {', '.join(map(str, inside[:4]))}"
        if inside
        else "give the folder that has these files, or a file: model.onnx, model.pt2, net.py:net",
    )


def _architecture(config: Path) -> str | None:
    """Return the class that a configuration names first, if that is a name."""
    try:
        data: Any = json.loads(config.read_bytes())
    except (OSError, ValueError):
        return None
    named = cast("dict[str, Any]", data).get("architectures") if isinstance(data, dict) else None
    first: Any = cast("list[Any]", named)[0] if isinstance(named, list) and named else None
    return first if isinstance(first, str) and first.isidentifier() else None
