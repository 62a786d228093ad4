"""Decoders of transformers, of any architecture, with a cache of ours in place of its own.

A model is asked once what it keeps of a token; keys and values of that shape become buffers of the
length of the context. A call writes its tokens into them and gives the model a view of what was
kept so far: so one program reads prompts and decodes, as those of checkpoints do. Models that
compute attention by matmuls of their own see the whole context. The mask is given as well, because
transformers would derive it from a length that only a run knows.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from fewbit.errors import Error, Place, UnsupportedError, UsageError
from fewbit.language.architectures import unknown_architecture
from fewbit.language.checkpoint import name_some
from fewbit.language.config import Decoding
from fewbit.language.huggingface import CONFIG, read_json, read_text
from fewbit.language.places import end_of
from fewbit.language.text_files import TextFiles, files_for
from fewbit.program.program import Program

PACKAGE = "transformers"
SLIDING = "sliding_attention"
WITHOUT_CACHE = "give example inputs, and no context: the model is compiled without a cache"
TRIED, CLOSE = 8, 1e-3
"""Tokens with which a model is tried, and the part of the largest logit that may be off."""
LOW = -6e4
"""What is added to scores that are not to be seen; 16-bit floats have it, too."""
SMALLEST = 8
CONTEXT = 2048
"""Tokens that are kept where no other number is given, and the model allows as many."""


def import_decoder(
    model: Any, context: int, text: TextFiles | None = None, *, steps: bool = False
) -> Program:
    """Return the program of a model of transformers: tokens and a position to logits.

    With `steps`, a call takes one token, and no size depends on its position.
    """
    from fewbit.frontends.torch import import_torch

    if not is_decoder(model):
        raise UsageError(
            "a context is for language models: checkpoints, and models of transformers that "
            f"generate, not {type(model).__name__}",
            hint="give a GGUF file, a Hugging Face folder or an AutoModelForCausalLM",
        )
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", context)
    if not SMALLEST <= context <= longest:
        raise UsageError(
            f"a context of {context} tokens is not possible",
            hint=f"the model was made for {longest}, and {SMALLEST} is the smallest",
        )
    decoder = CachedDecoder(model, context, is_step=steps)
    _compare(decoder)
    count, position = 1 if steps else 4, torch.zeros(1, dtype=torch.int64)
    length = torch.export.Dim("length", min=2, max=context)
    program = import_torch(
        decoder,
        (torch.zeros(1, count, dtype=torch.int64), position),
        dynamic_shapes=None if steps else ({1: length}, None),
    )
    decoding = Decoding(context, steps=steps)
    program.files = files_for(text, decoding, decoder.config.vocab_size)
    return program


def import_folder(path: Path, context: int | None, *, steps: bool = False) -> Program:
    """Return the program of a Hugging Face folder whose architecture transformers knows."""
    model = _load_model(path)
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", CONTEXT)
    room: int = context or min(longest, CONTEXT)
    return import_decoder(model, room, read_text(path), steps=steps)


def _load_model(path: Path) -> Any:
    """Return the model of a folder; what transformers would draw at random is an error."""
    from transformers import AutoConfig, AutoModelForCausalLM  # pyright: ignore

    settings = read_json(path / CONFIG)
    try:
        config = cast(Any, AutoConfig).from_pretrained(path, local_files_only=True)
    except (ValueError, KeyError) as e:
        name = str(settings.get("model_type"))
        raise unknown_architecture(name, "; transformers does not read it either").at(
            file=str(path / CONFIG)
        ) from e
    given: dict[str, Any] = {"use_safetensors": True, "local_files_only": True}
    try:
        model, loaded = cast(Any, AutoModelForCausalLM).from_pretrained(
            path, config=config, dtype=torch.float32, output_loading_info=True, **given
        )
    except (ValueError, OSError, RuntimeError) as e:
        first = str(e).strip().partition("\n")[0]
        what = f"transformers does not load the folder: {first}"
        raise UnsupportedError(what, place=Place(file=str(path))) from e
    if missing := sorted(loaded["missing_keys"]):
        raise Error(f"the checkpoint lacks {name_some(missing)}", place=Place(file=str(path)))
    return model


def _compare(decoder: CachedDecoder) -> None:
    """Refuse a model that gives others results with the cache than without, or none at all.

    Not all take a mask and a cache from outside, and some that do make no use of them.
    """
    tokens = torch.arange(TRIED).unsqueeze(0) % decoder.config.vocab_size
    half = TRIED // 2
    with torch.no_grad():
        expected = decoder.model(tokens).logits[:, -1:]
        try:
            decoder(tokens[:, :half], torch.tensor([0]))
            logits = decoder(tokens[:, half:], torch.tensor([half]))
        except Exception as e:
            raise _unsupported(decoder, f"{type(e).__name__}: {e}") from e
    for buffer in decoder.caches():
        buffer.zero_()
    if not torch.allclose(logits, expected, atol=float(expected.abs().max()) * CLOSE, rtol=0):
        raise _unsupported(decoder, "its results are others than without")


def _unsupported(decoder: CachedDecoder, why: str) -> UnsupportedError:
    name = type(decoder.model).__name__
    return UnsupportedError(
        f"{name} does not work with a cache from outside: {why}", hint=WITHOUT_CACHE
    )


def is_decoder(model: object) -> bool:
    """Tell whether an object is a model of transformers that gives the next token's logits."""
    ours = any(kind.__module__.partition(".")[0] == PACKAGE for kind in type(model).__mro__)
    return ours and hasattr(model, "generate") and hasattr(model, "get_output_embeddings")


class CachedDecoder(nn.Module):
    """Tokens, [1, n], and the position of the first, [1], to the logits of the last."""

    def __init__(self, model: nn.Module, context: int, *, is_step: bool = False) -> None:
        super().__init__()
        self.model = model.eval()
        self.context = context
        self.is_step = is_step
        self.config = cast(Any, model).config.get_text_config()
        self.shapes = kept_shapes(model)
        parameters = inspect.signature(model.forward).parameters
        self.takes_last_only = "logits_to_keep" in parameters
        self.takes_position_ids = "position_ids" in parameters
        self.dtype = next(model.parameters()).dtype
        for number, (keys, values) in enumerate(self.shapes):
            for name, shape in (("keys", keys), ("values", values)):
                room = torch.zeros(1, shape[1], context, shape[3], dtype=self.dtype)
                self.register_buffer(f"{name}_{number}", room, persistent=False)

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        from transformers import Cache  # pyright: ignore

        places = position + torch.arange(tokens.shape[1])
        end = self.context
        is_sliced = self.config._attn_implementation == "sdpa"  # pyright: ignore[reportPrivateUsage]
        if is_sliced and not self.is_step:
            end = end_of(position[0], tokens.shape[1], self.context)
        layers = [self.layer(number, places, end) for number in range(len(self.shapes))]
        given: dict[str, Any] = {"position_ids": places[None]} if self.takes_position_ids else {}
        if self.takes_last_only:
            given["logits_to_keep"] = 1
        cache = cast(Any, Cache)(layers=layers)
        mask = self.masks(places, end)
        result = self.model(
            tokens, attention_mask=mask, past_key_values=cache, use_cache=True, **given
        )
        return result.logits[:, -1:]

    def caches(self) -> list[Tensor]:
        names = (f"{name}_{i}" for i in range(len(self.shapes)) for name in ("keys", "values"))
        return [self.get_buffer(name) for name in names]

    def layer(self, number: int, places: Tensor, end: int) -> Any:
        keys, values = (self.get_buffer(f"{name}_{number}") for name in ("keys", "values"))
        return kept_layer(keys, values, places, end)

    def masks(self, places: Tensor, end: int) -> Tensor | dict[str, Tensor]:
        """Return what is added to scores: one mask, or one for each type of layers."""
        types: set[str] = set(getattr(self.config, "layer_types", None) or ())
        window = getattr(self.config, "sliding_window", None)
        full, sliding = (additive_mask(places, end, each).to(self.dtype) for each in (None, window))
        if len(types) < 2:
            return sliding if not types or SLIDING in types else full
        return {name: sliding if name == SLIDING else full for name in sorted(types)}


def additive_mask(places: Tensor, end: int, window: int | None) -> Tensor:
    """Return 0 where a token attends to another, [1, 1, n, end], and a low number elsewhere."""
    kept, query = torch.arange(end), places.unsqueeze(1)
    seen = kept <= query
    if window is not None:
        seen = seen & (kept > query - window)
    return torch.where(seen, 0.0, LOW)[None, None]


def kept_shapes(model: nn.Module) -> list[tuple[torch.Size, torch.Size]]:
    """Return the shapes of keys and values that each layer keeps of one token."""
    with torch.no_grad():
        result = model(torch.zeros(1, 1, dtype=torch.int64), use_cache=True)
    cache: Any = getattr(result, "past_key_values", None)
    layers: list[Any] = list(getattr(cache, "layers", None) or ())
    shapes = [(_shape(layer, "keys"), _shape(layer, "values")) for layer in layers]
    known = [(keys, values) for keys, values in shapes if keys is not None and values is not None]
    if not known or len(known) != len(shapes):
        raise UnsupportedError(
            f"{type(model).__name__} keeps something else than keys and values of tokens",
            hint=WITHOUT_CACHE,
        )
    return known


def _shape(layer: Any, name: str) -> torch.Size | None:
    kept = getattr(layer, name, None)
    return kept.shape if isinstance(kept, Tensor) and kept.ndim == 4 else None


def kept_layer(keys: Tensor, values: Tensor, places: Tensor, end: int) -> Any:
    """Return a layer of transformers' cache that keeps tokens in buffers of ours."""
    from transformers.cache_utils import CacheLayerMixin  # pyright: ignore

    class KeptLayer(CacheLayerMixin):  # pyright: ignore
        is_sliding = False

        def lazy_initialization(self, *states: Tensor) -> None:
            """All memory is there before the first call."""

        def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any):
            keys.index_copy_(2, places, key_states)
            values.index_copy_(2, places, value_states)
            return keys[:, :, :end], values[:, :, :end]

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            return end, 0

        def get_seq_length(self) -> int:
            return end - places.shape[0]

        def get_max_length(self) -> int:
            return keys.shape[2]

    layer = cast(Any, KeptLayer)()
    layer.keys, layer.values, layer.is_initialized = keys, values, True
    return layer
