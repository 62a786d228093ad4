"""Checkpoints in GGUF, the format of llama.cpp: settings, tokenizer and weights in one file.

The package `gguf` dequantizes the file's blocks of few bits, exactly; `gguf_blocks` has their
integers, for recipes that keep them. The settings are translated into Hugging Face's words, so that
a family is described once. What llama.cpp's converter changes is undone: it permutes queries and
keys of LLaMa, because it rotates neighbouring channels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fewbit.errors import Error, UnsupportedError
from fewbit.language.architectures import read_config, unknown_architecture
from fewbit.language.checkpoint import Checkpoint
from fewbit.language.config import LayerKind
from fewbit.language.gguf_blocks import holds_integers, read_blocks
from fewbit.language.gguf_header import GgufHeader, read_header
from fewbit.language.gguf_tokenizer import read_text
from fewbit.language.pieces import Array, Piece
from fewbit.language.tokenizer import require
from fewbit.numerics import Quantized

FAMILIES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "phi3": "phi3",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "stablelm": "stablelm",
    "gpt2": "gpt2",
}
"""The names that GGUF has for architectures, and Hugging Face's."""
SETTINGS = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.layer_norm_epsilon": "layer_norm_eps",
    "attention.sliding_window": "sliding_window",
    "context_length": "max_position_embeddings",
    "rope.freq_base": "rope_theta",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "use_parallel_residual": "use_parallel_residual",
}
"""Names of settings behind that of the architecture, and Hugging Face's."""
LAYERS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""What llama.cpp calls the parts of a layer."""
NORMED_LAYERS = LAYERS | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
"""The same, where outputs are normalized too."""
GPT2_LAYERS = {
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
OTHERS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
}
BY_WIDTH = {("gemma2", 46), ("gemma3_text", 62)}
"""Families and depths whose queries are scaled by the model's width, not by the head's."""
DIVISORS = "rope_freqs.weight"
"""The tensor by which frequencies are divided, where the model scales them so."""


class GgufFile(Checkpoint):
    def __init__(self, path: Path) -> None:
        self.path = path
        require("gguf")
        header = _open(path)
        self._fields, self._tensors = header.settings, dict(header.tensors)
        try:
            self.family = self._find_family()
            self.config = read_config(self._settings())
            self._read_divisors()
            self.text = read_text(self.value, path)
        except Error as error:
            raise error.at(file=str(path)) from None

    def value(self, name: str) -> Any:
        """Return a setting; None where the file has none."""
        return self._fields.get(name)

    def _find_family(self) -> str:
        name = str(self.value("general.architecture"))
        if name not in FAMILIES:
            raise unknown_architecture(name)
        return FAMILIES[name]

    def _settings(self) -> dict[str, Any]:
        """Return the settings in Hugging Face's words."""
        prefix = self.value("general.architecture")
        if self.value(f"{prefix}.expert_count"):
            raise UnsupportedError("the model is a mixture of experts, which is not read")
        settings: dict[str, Any] = {"model_type": self.family}
        for theirs, name in SETTINGS.items():
            value = self.value(f"{prefix}.{theirs}")
            if isinstance(value, list):
                raise UnsupportedError(f"the setting '{theirs}' differs between layers")
            if value is not None:
                settings[name] = value
        settings["vocab_size"] = self._rows("token_embd.weight")
        settings["tie_word_embeddings"] = "output.weight" not in self._tensors
        settings["use_qkv_bias"] = "blk.0.attn_q.bias" in self._tensors
        settings["attention_bias"] = "blk.0.attn_output.bias" in self._tensors
        settings["layer_norm_epsilon"] = settings.get("layer_norm_eps", 1e-5)
        settings["query_pre_attn_scalar"] = self._query_scale(settings)
        kind = self.value(f"{prefix}.rope.scaling.type")
        if kind not in (None, "none"):
            factor = self.value(f"{prefix}.rope.scaling.factor")
            settings["rope_scaling"] = {"rope_type": kind, "factor": factor}
        rotated, width = self.value(f"{prefix}.rope.dimension_count"), settings.get("head_dim")
        heads, all_heads = settings.get("num_attention_heads"), settings.get("hidden_size")
        if rotated and heads and all_heads:
            settings["partial_rotary_factor"] = rotated / (width or all_heads // heads)
        return settings

    def _query_scale(self, settings: Mapping[str, Any]) -> float | None:
        """Return the square of what Gemma divides queries by, which the file does not say."""
        if (self.family, settings.get("num_hidden_layers")) in BY_WIDTH:
            return settings["hidden_size"] / settings["num_attention_heads"]
        return settings.get("head_dim")

    def _rows(self, name: str) -> int:
        if name not in self._tensors:
            raise Error(f"the checkpoint lacks '{name}'", hint="is the file whole?")
        return self._tensors[name].shape[0]

    def _read_divisors(self) -> None:
        if DIVISORS not in self._tensors:
            return
        divisors = tuple(map(float, self._dequantize(DIVISORS)))

        def scale(kind: LayerKind) -> LayerKind:
            rope = kind.rope and replace(kind.rope, divisors=divisors)
            return replace(kind, rope=rope)

        self.config = replace(self.config, layers=tuple(map(scale, self.config.layers)))
        del self._tensors[DIVISORS]

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    def find(self, name: str) -> tuple[Piece, int | None]:
        piece, total = super().find(name)
        # The converter transposes, and adds 1 to norms, already.
        return replace(piece, key=self._name(piece.key), transposed=False, added=0.0), total

    def _name(self, name: str) -> str:
        """Return what GGUF calls a tensor of Hugging Face's."""
        owner, _, kind = name.rpartition(".")
        parts = owner.removeprefix("model.").split(".", 2)
        if parts[0] not in ("layers", "h"):
            return f"{OTHERS.get(owner, owner)}.{kind}"
        table = GPT2_LAYERS if parts[0] == "h" else LAYERS
        table = NORMED_LAYERS if self.config.output_norms else table
        return f"blk.{parts[1]}.{table.get(parts[2], parts[2])}.{kind}"

    def read(self, key: str) -> Array:
        array = self._dequantize(key)
        heads = self._permuted_heads(key)
        return array if heads is None else unpermute(array, heads)

    def has_integers(self, key: str) -> bool:
        tensor = self._tensors[key]
        return holds_integers(tensor.kind, tensor.shape)

    def read_integers(self, key: str) -> Quantized:
        tensor = self._tensors[key]
        weight = read_blocks(tensor.data, tensor.kind, tensor.shape)
        heads = self._permuted_heads(key)
        if heads is None:
            return weight
        return weight.take_rows(unpermute(np.arange(tensor.shape[0]), heads))

    def _permuted_heads(self, key: str) -> int | None:
        """Return how many heads' rows the converter has permuted; None where it has not."""
        if self.value("general.architecture") != "llama":
            return None
        layer = key.split(".")[-2]
        return {"attn_q": self.config.heads, "attn_k": self.config.kv_heads}.get(layer)

    def _dequantize(self, key: str) -> Array:
        from gguf import GGMLQuantizationType, quants

        tensor = self._tensors[key]
        try:
            array = quants.dequantize(tensor.data, GGMLQuantizationType(tensor.kind))
        except (NotImplementedError, ValueError) as error:
            raise UnsupportedError(
                f"the tensor '{key}' is of a type that is not taken apart: {error}",
                place=self.place,
            ) from None
        return array.reshape(tensor.shape)


def unpermute(array: Array, heads: int) -> Array:
    """Return rows of queries or keys in the order of the two halves of each head."""
    pairs = array.reshape(heads, array.shape[0] // heads // 2, 2, *array.shape[1:])
    return pairs.swapaxes(1, 2).reshape(array.shape)


def _open(path: Path) -> GgufHeader:
    try:
        return read_header(path)
    except (OSError, ValueError) as error:
        raise UnsupportedError(
            f"this is a GGUF file that cannot be read: {str(error).partition(chr(10))[0]}",
            hint="is it whole? Otherwise take the original model, "
            "transformers.AutoModelForCausalLM.from_pretrained('NAME'), and save it as a folder",
        ).at(file=str(path)) from None
