"""The families of encoders that are read: what configurations mean, and how weights are named.

A family is a function from a configuration in Hugging Face's words to an `EncoderConfig`, and a
table from the encoder's names to its own. Values that a configuration leaves out are those of the
family's own class in transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fewbit.errors import UnsupportedError
from fewbit.language.architectures import Settings, check_sizes, read_activation
from fewbit.language.config import Buckets, EncoderConfig
from fewbit.language.pieces import Piece

LAYER = "model.layers."
SIZES = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    "vocab_size",
)


@dataclass(frozen=True)
class EncoderFamily:
    read: Callable[[Settings], EncoderConfig]
    names: Mapping[str, str]
    """Where modules are that are of no layer; an own tensor stands for itself."""
    layer: str
    """What the names in a layer begin with; `{}` is its number."""
    layer_names: Mapping[str, str]
    prefix: str = ""
    """What names begin with in models that have a head."""
    ungated_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is called otherwise in a layer without a gate."""
    ignored: tuple[str, ...] = ("pooler.", "embeddings.position_ids")
    """Beginnings of the names of what the encoder does not need."""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of tensors that may be stored once, and the other ones."""
    sizes: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the family calls sizes, where not as BERT does."""

    def find(self, config: EncoderConfig, name: str) -> tuple[Piece, int | None]:
        """Return where a weight of the encoder is, and the rows of a tensor that it is part of."""
        if name.startswith(LAYER):
            number, _, rest = name.removeprefix(LAYER).partition(".")
            module, _, kind = rest.rpartition(".")
            ungated = None if config.gated else self.ungated_names.get(module)
            own = ungated or self.layer_names[module]
            return Piece(f"{self.layer.format(number)}{own}.{kind}"), None
        if name == "model.token_type":
            return Piece(self.names[name], (0, 1)), config.token_types
        module, _, kind = name.rpartition(".")
        own = f"{self.names[module]}.{kind}"
        if module == "model.embed_positions" and config.first_position:
            first, rows = config.first_position, config.first_position + (config.longest or 0)
            return Piece(own, (first, rows)), rows
        return Piece(own), None


def read_encoder_config(settings: Settings) -> EncoderConfig:
    """Return what the configuration of an encoder describes."""
    family = ENCODERS[str(settings["model_type"])]
    renamed = {ours: settings[own] for ours, own in family.sizes.items() if own in settings}
    settings = {**settings, **renamed}
    check_sizes(settings, SIZES)
    for choice in ("is_decoder", "add_cross_attention"):
        if settings.get(choice):
            raise UnsupportedError(f"an encoder with '{choice}' is not read")
    return family.read(settings)


def _read_bert(settings: Settings, **changes: Any) -> EncoderConfig:
    kind = settings.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise UnsupportedError(f"positions are embedded as '{kind}', which is not known")
    heads, width = int(settings["num_attention_heads"]), int(settings["hidden_size"])
    if width % heads:
        raise UnsupportedError(f"{heads} heads do not divide a width of {width}")
    config = EncoderConfig(
        vocabulary=int(settings["vocab_size"]),
        width=width,
        hidden=int(settings["intermediate_size"]),
        heads=heads,
        head_width=width // heads,
        depth=int(settings["num_hidden_layers"]),
        longest=int(settings.get("max_position_embeddings") or 512),
        eps=float(settings.get("layer_norm_eps", 1e-12)),
        activation=read_activation(settings.get("hidden_act") or "gelu"),
        token_types=int(settings.get("type_vocab_size", 2)),
    )
    return replace(config, **changes)


def _behind_padding(config: EncoderConfig, padding: int) -> EncoderConfig:
    """Return a configuration whose positions begin behind that of the padding token."""
    first = padding + 1
    longest = (config.longest or 0) - first
    if longest < 1:
        raise UnsupportedError(f"{config.longest} positions leave none behind the padding's")
    return replace(config, first_position=first, longest=longest)


def _read_roberta(settings: Settings) -> EncoderConfig:
    padding = settings.get("pad_token_id")
    return _behind_padding(_read_bert(settings), 1 if padding is None else int(padding))


def _read_distilbert(settings: Settings) -> EncoderConfig:
    given = {**settings, "hidden_act": settings.get("activation") or "gelu"}
    return _read_bert(given, eps=1e-12, token_types=0)


def _read_mpnet(settings: Settings) -> EncoderConfig:
    # Its class in transformers has these numbers of its own, whatever the configuration says.
    config = _read_bert(settings, token_types=0, buckets=Buckets(32, 128))
    return _behind_padding(config, 1)


def _read_t5(settings: Settings) -> EncoderConfig:
    kind = str(settings.get("feed_forward_proj") or "relu")
    # transformers takes the gate of T5 1.1 for the approximation that it was trained with.
    name = "gelu_new" if kind == "gated-gelu" else kind.removeprefix("gated-")
    buckets = Buckets(
        int(settings.get("relative_attention_num_buckets") or 32),
        int(settings.get("relative_attention_max_distance") or 128),
    )
    return EncoderConfig(
        vocabulary=int(settings["vocab_size"]),
        width=int(settings["hidden_size"]),
        hidden=int(settings["intermediate_size"]),
        heads=int(settings["num_attention_heads"]),
        head_width=int(settings.get("d_kv") or 64),
        depth=int(settings["num_hidden_layers"]),
        longest=None,
        eps=float(settings.get("layer_norm_epsilon", 1e-6)),
        norm="rms",
        is_pre_norm=True,
        activation=read_activation(name),
        gated=kind.startswith("gated-"),
        qkv_bias=False,
        output_bias=False,
        mlp_bias=False,
        buckets=buckets,
        attention_scale=1.0,
    )


EMBEDDINGS = {
    "model.embed_tokens": "embeddings.word_embeddings",
    "model.embed_positions": "embeddings.position_embeddings",
    "model.token_type": "embeddings.token_type_embeddings.weight",
    "model.norm": "embeddings.LayerNorm",
}
BERT_LAYER = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.o_proj": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "mlp.up_proj": "intermediate.dense",
    "mlp.down_proj": "output.dense",
    "mlp_norm": "output.LayerNorm",
}
MPNET_LAYER = {
    **BERT_LAYER,
    **{f"self_attn.{part}_proj": f"attention.attn.{part}" for part in "qkvo"},
    "attention_norm": "attention.LayerNorm",
}
DISTILBERT_LAYER = {
    **{f"self_attn.{part}_proj": f"attention.{part}_lin" for part in "qkv"},
    "self_attn.o_proj": "attention.out_lin",
    "attention_norm": "sa_layer_norm",
    "mlp.up_proj": "ffn.lin1",
    "mlp.down_proj": "ffn.lin2",
    "mlp_norm": "output_layer_norm",
}
T5_LAYER = {
    **{f"self_attn.{part}_proj": f"layer.0.SelfAttention.{part}" for part in "qkvo"},
    "attention_norm": "layer.0.layer_norm",
    "mlp.gate_proj": "layer.1.DenseReluDense.wi_0",
    "mlp.up_proj": "layer.1.DenseReluDense.wi_1",
    "mlp.down_proj": "layer.1.DenseReluDense.wo",
    "mlp_norm": "layer.1.layer_norm",
}
BERT = EncoderFamily(_read_bert, EMBEDDINGS, "encoder.layer.{}.", BERT_LAYER, "bert.")
ROBERTA = replace(BERT, read=_read_roberta, prefix="roberta.")
DISTILBERT = EncoderFamily(
    _read_distilbert,
    EMBEDDINGS,
    "transformer.layer.{}.",
    DISTILBERT_LAYER,
    "distilbert.",
    sizes={
        "hidden_size": "dim",
        "intermediate_size": "hidden_dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
    },
)
MPNET = EncoderFamily(
    _read_mpnet,
    {**EMBEDDINGS, "model.position_bias": "encoder.relative_attention_bias"},
    "encoder.layer.{}.",
    MPNET_LAYER,
    "mpnet.",
)
T5 = EncoderFamily(
    _read_t5,
    {
        "model.embed_tokens": "shared",
        "model.position_bias": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        "model.norm": "encoder.final_layer_norm",
    },
    "encoder.block.{}.",
    T5_LAYER,
    ungated_names={"mlp.up_proj": "layer.1.DenseReluDense.wi"},
    ignored=("decoder.", "lm_head.", "encoder.embed_tokens."),
    aliases={"shared.weight": "encoder.embed_tokens.weight"},
    sizes={
        "hidden_size": "d_model",
        "intermediate_size": "d_ff",
        "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads",
    },
)
ENCODERS = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "distilbert": DISTILBERT,
    "mpnet": MPNET,
    "t5": T5,
    "mt5": T5,
}
"""By the name that transformers gives the family, `model_type`."""
