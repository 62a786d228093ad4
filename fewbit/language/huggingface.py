"""Checkpoints as Hugging Face's libraries save them: a folder of JSON and safetensors files.

Nothing in them is run: pickled weights are refused, and so is a model whose code is in the folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from fewbit.base.files import inside
from fewbit.errors import Error, Place, UnsupportedError, UsageError
from fewbit.language import bitnet
from fewbit.language.architectures import FAMILIES, read_config, unknown_architecture
from fewbit.language.checkpoint import Checkpoint
from fewbit.language.encoder_families import ENCODERS
from fewbit.language.pieces import Array
from fewbit.language.text_files import TOKENIZER, TextFiles
from fewbit.numerics import Quantized
from fewbit.program.tensor_file import TensorFile

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
PREFIXES = {"model.language_model.": "model.", "language_model.": "", "transformer.": ""}
"""What names begin with in models that also see, and in some of GPT-2; and in place of it."""
DECODERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
"""Ends of the classes that give logits of tokens."""
GENERATING = ("ForCausalLM", "LMHeadModel")
"""Those of them that are a decoder alone."""
SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token")


def is_checkpoint(path: Path) -> bool:
    """Return whether a folder has the configuration of a model, which names its architecture."""
    if not (path / CONFIG).is_file():
        return False
    try:
        return isinstance(read_json(path / CONFIG).get("model_type"), str)
    except Error:
        return False


def is_left_to_transformers(path: Path) -> bool:
    """Return whether a folder is a decoder that only transformers knows, which is installed."""
    settings = _text_settings(read_optional(path / CONFIG))
    names = [str(name) for name in cast("list[Any]", settings.get("architectures") or [])]
    is_decoder = any(name.endswith(GENERATING) for name in names)
    known = settings.get("model_type") in FAMILIES
    return is_decoder and not known and find_spec("transformers") is not None


class HuggingFaceFolder(Checkpoint):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = _text_settings(read_json(path / CONFIG))
        self.family = str(self.settings["model_type"])
        try:
            self._check_class()
            self.config = read_config(self.settings)
        except Error as error:
            raise error.at(file=str(path / CONFIG)) from None
        self._tensors = open_tensors(path)
        self._prefixed = _strip_prefix(self._tensors)
        self._ternary = self._find_ternary()
        self.is_mapped = self._ternary is None
        if "lm_head.weight" not in self._prefixed and "tie_word_embeddings" not in self.settings:
            # Newer configurations leave out what is the family's own default.
            self.config = replace(self.config, tied=True)
        self.text = read_text(path)

    def _check_class(self) -> None:
        names = cast("list[Any]", self.settings.get("architectures") or [])
        name = str(names[0]) if names else "AutoModel"
        otherwise = by_transformers(self.path, name)
        if self.family not in FAMILIES:
            raise unknown_architecture(self.family, f"; or {otherwise}", ENCODERS)
        if names and not name.endswith(DECODERS):
            raise UnsupportedError(
                f"{name} is no decoder that gives logits of tokens", hint=otherwise
            )
        refuse_quantized(self.settings, [bitnet.METHOD])

    def _find_ternary(self) -> bitnet.TernaryTensors | None:
        method = self.settings.get("quantization_config")
        if not method:
            return None
        settings = bitnet.BitNetSettings.of(cast("Mapping[str, Any]", method))
        return bitnet.TernaryTensors(settings, self._shapes, self._read)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self._shapes if self._ternary is None else self._ternary.shapes

    def read(self, key: str) -> Array:
        return self._read(key) if self._ternary is None else self._ternary.read(key)

    def has_integers(self, key: str) -> bool:
        return self._ternary is not None and key.removesuffix(".weight") in self._ternary.layers

    def read_integers(self, key: str) -> Quantized:
        assert self._ternary is not None
        return self._ternary.weight(key.removesuffix(".weight"))

    def act_bits(self, layer: str) -> int | None:
        return None if self._ternary is None else bitnet.ACT_BITS

    @property
    def _shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of all tensors as they lie in the files."""
        return {name: self._tensors[key].spans[key].shape for name, key in self._prefixed.items()}

    def _read(self, key: str) -> Array:
        own = self._prefixed[key]
        return self._tensors[own].array(own)


def by_transformers(path: Path, name: str) -> str:
    """Return how a folder is compiled that transformers reads, by the name of its class there."""
    option = "--context 512" if name.endswith(GENERATING) else "--input-shape 1x16:i64"
    call = f"transformers:{name}.from_pretrained('{path}')"
    return f'let transformers read it:\n  fewbit compile "{call}" {option}'


def refuse_quantized(settings: Mapping[str, Any], read: Sequence[str] = ()) -> None:
    """Refuse weights that another tool quantized, but for those of formats that are read."""
    method = cast("Mapping[str, Any]", settings.get("quantization_config") or {})
    kind = method.get("quant_method", "another tool")
    if method and kind not in read:
        raise UnsupportedError(
            f"the weights are quantized already, by {kind}",
            hint="give the original model, and a recipe: -r w4a8g32",
        )


def _text_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of the decoder, of a model that also sees that of its text part."""
    inner = settings.get("text_config")
    if not isinstance(inner, dict):
        return settings
    return {**settings, **cast("dict[str, Any]", inner)}


def open_tensors(path: Path) -> dict[str, TensorFile]:
    """Return the file of each tensor; files are mapped and their headers read."""
    files = sorted(path.glob("*.safetensors"))
    if (path / INDEX).is_file():
        table = read_json(path / INDEX).get("weight_map")
        named = cast("dict[str, str]", table) if isinstance(table, dict) else {}
        files = [_existing(path, name) for name in sorted(set(named.values()))]
    if not files:
        pickled = any(path.glob("*.bin")) or any(path.glob("*.pth"))
        raise UsageError(
            "the folder has a configuration, and no weights in safetensors files",
            place=Place(file=str(path)),
            hint="pickled weights are code, which fewbit does not run: save them again with "
            "transformers, model.save_pretrained(folder)"
            if pickled
            else "are they downloaded? They are called model.safetensors",
        )
    opened = [TensorFile.open(file) for file in files]
    return {key: file for file in opened for key in file.spans}


def _existing(path: Path, name: str) -> Path:
    if not (path / name).is_file():
        raise UsageError(
            f"the index names '{name}', which is not in the folder",
            place=Place(file=str(path / INDEX)),
            hint="download or copy all files of the checkpoint",
        )
    return inside(path, name)


def _strip_prefix(keys: Iterable[str]) -> dict[str, str]:
    """Return the decoder's tensors by their plain names; those of other parts are left out."""
    keys = list(keys)
    for prefix, plain in PREFIXES.items():
        own = [key for key in keys if key.startswith(prefix)]
        if own:
            heads = {key: key for key in keys if key == "lm_head.weight"}
            return heads | {plain + key.removeprefix(prefix): key for key in own}
    return {key: key for key in keys}


def read_text(path: Path) -> TextFiles | None:
    """Return what a folder says of text; None where it has no tokenizer."""
    if not (path / TOKENIZER).is_file():
        return None
    from fewbit.language.tokenizer import open_tokenizer

    tokenizer = (path / TOKENIZER).read_text(encoding="utf-8")
    opened = open_tokenizer(tokenizer, path / TOKENIZER)
    described = read_optional(path / "tokenizer_config.json")
    special = {name: text for name in SPECIAL if (text := _token_text(described.get(name)))}
    ends: list[int] = []
    settings = _text_settings(read_optional(path / CONFIG))
    for given in (read_optional(path / "generation_config.json"), settings):
        ids = given.get("eos_token_id")
        ends += [ids] if isinstance(ids, int) else cast("list[int]", ids or [])
    if not ends and "eos_token" in special:
        ends = [
            number for number in [opened.token_to_id(special["eos_token"])] if number is not None
        ]
    return TextFiles(
        tokenizer, _read_template(path, described), tuple(dict.fromkeys(ends)), special
    )


def _read_template(path: Path, described: Mapping[str, Any]) -> str | None:
    if (path / "chat_template.jinja").is_file():
        return (path / "chat_template.jinja").read_text(encoding="utf-8")
    given = described.get("chat_template")
    if isinstance(given, list):
        named = {
            str(each["name"]): each["template"] for each in cast("list[dict[str, Any]]", given)
        }
        given = named.get("default")
    return given if isinstance(given, str) else None


def _token_text(given: Any) -> str | None:
    """Return the text of a special token, which may be described by a table."""
    text = cast("dict[str, Any]", given).get("content") if isinstance(given, dict) else given
    return text if isinstance(text, str) else None


def read_optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def read_json(path: Path) -> dict[str, Any]:
    try:
        data: Any = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise Error(
            f"this is no JSON: {str(error).partition(chr(10))[0]}",
            place=Place(file=str(path)),
            hint="is the file whole?",
        ) from None
    if not isinstance(data, dict):
        raise Error("this is no table of settings", place=Place(file=str(path)))
    return cast("dict[str, Any]", data)
