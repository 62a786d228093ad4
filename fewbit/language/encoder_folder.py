"""Encoders as Hugging Face's libraries save them, sentence-transformers' folders among them.

Only what computes states is read. A head that a class of transformers has on top, for words that
are left out of a text, is not used; a class whose head is the result, a classifier, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fewbit.errors import Error, UnsupportedError
from fewbit.language.checkpoint import (
    WeightSource,
    make_parameters,
    read_weights,
    repeat_shapes,
    shapes_alone,
)
from fewbit.language.config import EncoderConfig
from fewbit.language.encoder_families import ENCODERS, EncoderFamily, read_encoder_config
from fewbit.language.huggingface import (
    CONFIG,
    GENERATING,
    by_transformers,
    open_tensors,
    read_json,
    read_optional,
    read_text,
    refuse_quantized,
)
from fewbit.language.pieces import Array, Piece
from fewbit.language.sentence_modules import read_sentence_modules
from fewbit.language.tokenizer import lower_case_first

if TYPE_CHECKING:
    from fewbit.language.encoder import TextEncoder

BOTH = "ForConditionalGeneration"
"""The end of the classes that are an encoder and a decoder."""
READ = ("Model", "ForMaskedLM", "ForPreTraining", BOTH)
"""Ends of the classes whose encoder is of use by itself."""
OLDER_ENDS = {".gamma": ".weight", ".beta": ".bias"}
"""What norms call their vectors in the first checkpoints of BERT."""


def is_encoder(path: Path) -> bool:
    """Return whether a folder's architecture is an encoder that is read."""
    return path.is_dir() and read_optional(path / CONFIG).get("model_type") in ENCODERS


class EncoderFolder(WeightSource):
    config: EncoderConfig

    def __init__(self, path: Path) -> None:
        self.path = path
        settings = read_json(path / CONFIG)
        self.family = str(settings["model_type"])
        self._family = ENCODERS[self.family]
        try:
            self.has_decoder = self._check_class(settings)
            config = read_encoder_config(settings)
        except Error as error:
            raise error.at(file=str(path / CONFIG)) from None
        self.sentence = read_sentence_modules(path)
        self.config = replace(
            config, pooling=self.sentence.pooling, normalize=self.sentence.normalize
        )
        self._tensors = open_tensors(path)
        self._names = plain_names(self._family, self._tensors)
        self.text = read_text(path)
        if self.text is not None and self.sentence.lower_case:
            self.text = replace(self.text, tokenizer=lower_case_first(self.text.tokenizer))

    def _check_class(self, settings: Mapping[str, Any]) -> bool:
        """Refuse a class that is more than an encoder; return whether it has a decoder, too."""
        refuse_quantized(settings)
        names = cast("list[Any]", settings.get("architectures") or [])
        name = str(names[0]) if names else "AutoModel"
        if name.endswith(GENERATING) or not name.endswith(READ):
            raise UnsupportedError(
                f"{name} is an encoder with a head, which is not read",
                hint=by_transformers(self.path, name),
            )
        return name.endswith(BOTH)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: self._tensors[key].spans[key].shape for name, key in self._names.items()}

    def read(self, key: str) -> Array:
        own = self._names[key]
        return self._tensors[own].array(own)

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        return repeat_shapes(_empty_encoder(replace(self.config, depth=1)), self.config.depth)

    def find(self, name: str) -> tuple[Piece, int | None]:
        return self._family.find(self.config, name)

    def is_ignored(self, key: str) -> bool:
        return key.startswith(self._family.ignored)


def plain_names(family: EncoderFamily, keys: Iterable[str]) -> dict[str, str]:
    """Return the encoder's tensors by the names that they have without a head."""
    keys = list(keys)
    prefix = family.prefix
    if any(key.startswith(prefix) for key in keys):
        keys = [key for key in keys if key.startswith(prefix)]
    names: dict[str, str] = {}
    for key in keys:
        name = key.removeprefix(prefix)
        for old, new in OLDER_ENDS.items():
            name = name.removesuffix(old) + new if name.endswith(old) else name
        names[name] = key
    for name, other in family.aliases.items():
        if name not in names and other in names:
            names[name] = names[other]
    return names


def build_encoder(checkpoint: EncoderFolder, context: int) -> TextEncoder:
    """Return the encoder with the weights of a checkpoint, ready to be called."""
    return _make_encoder(checkpoint.config, read_weights(checkpoint), context)


def build_traced_encoder(config: EncoderConfig, context: int) -> TextEncoder:
    """Return an encoder of one layer, whose weights have shapes and no memory."""
    short = replace(config, depth=1)
    shapes = repeat_shapes(_empty_encoder(short), 1)
    return _make_encoder(short, shapes_alone(shapes), context)


def _make_encoder(config: EncoderConfig, weights: Mapping[str, Any], context: int) -> TextEncoder:
    model = _empty_encoder(config)
    model.load_state_dict(make_parameters(weights), assign=True)
    model.model.allocate(context)
    return model.eval()


def _empty_encoder(config: EncoderConfig) -> TextEncoder:
    import torch

    from fewbit.language.encoder import TextEncoder

    with torch.device("meta"):
        return TextEncoder(config)
