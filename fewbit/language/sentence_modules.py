"""What sentence-transformers keeps beside a model: how states become one vector of a text.

`modules.json` lists what is called one after another: the transformer, the pooling, perhaps a
normalization. Other modules are refused, because without them the vector would be another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fewbit.errors import Error, Place, UnsupportedError
from fewbit.language.config import Pooling
from fewbit.language.huggingface import read_optional

MODULES = "modules.json"
SETTINGS = "sentence_bert_config.json"
CONFIG = "config.json"
POOLINGS: dict[str, Pooling] = {
    "cls": "cls",
    "cls_token": "cls",
    "mean": "mean",
    "mean_tokens": "mean",
    "max": "max",
    "max_tokens": "max",
}
"""By the words of older and newer configurations."""
MODE = "pooling_mode_"


@dataclass(frozen=True)
class SentenceModules:
    pooling: Pooling | None = None
    normalize: bool = False
    longest: int | None = None
    """How many tokens of a text are read."""
    prompt: str = ""
    """What is put before every text."""
    lower_case: bool = False
    """Whether capital letters are taken for small ones, before the tokenizer sees them."""


def read_sentence_modules(folder: Path) -> SentenceModules:
    """Return what a folder says; nothing where it is none of sentence-transformers."""
    if not (folder / MODULES).is_file():
        return SentenceModules()
    pooling: Pooling | None = None
    normalize = False
    for module in _modules(folder / MODULES):
        name = str(module.get("type", "")).rpartition(".")[2]
        if name == "Pooling":
            pooling = _read_pooling(folder / str(module.get("path", "")) / CONFIG)
        elif name == "Normalize":
            normalize = True
        elif name != "Transformer":
            raise UnsupportedError(
                f"the model has a module '{name}', which is not read",
                place=Place(file=str(folder / MODULES)),
                hint=f"known: Transformer, Pooling, Normalize; without {MODULES} the states of "
                "the transformer are compiled",
            )
    if pooling is None and normalize:
        raise UnsupportedError(
            "states are normalized and not pooled", place=Place(file=str(folder / MODULES))
        )
    settings = read_optional(folder / SETTINGS)
    longest = settings.get("max_seq_length")
    return SentenceModules(
        pooling,
        normalize,
        longest if isinstance(longest, int) else None,
        _default_prompt(folder),
        settings.get("do_lower_case") is True,
    )


def _modules(path: Path) -> list[Mapping[str, Any]]:
    try:
        data: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):
        data = None
    listed = cast("list[Any]", data) if isinstance(data, list) else []
    if not listed or not all(isinstance(each, dict) for each in listed):
        raise Error("this is no list of modules", place=Place(file=str(path)))
    return cast("list[Mapping[str, Any]]", listed)


def _read_pooling(path: Path) -> Pooling:
    settings = read_optional(path)
    flags = [key.removeprefix(MODE) for key in settings if key.startswith(MODE) and settings[key]]
    modes = [str(settings["pooling_mode"])] if settings.get("pooling_mode") else flags
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise UnsupportedError(
            f"states are pooled by '{', '.join(modes)}', which is not known",
            place=Place(file=str(path)),
            hint="known: mean, cls, max",
        )
    return POOLINGS[modes[0]]


def _default_prompt(folder: Path) -> str:
    settings = read_optional(folder / "config_sentence_transformers.json")
    name, prompts = settings.get("default_prompt_name"), settings.get("prompts")
    if name is None or not isinstance(prompts, dict):
        return ""
    return str(cast("dict[str, Any]", prompts).get(name) or "")
