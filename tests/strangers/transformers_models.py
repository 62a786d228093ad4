"""Models of transformers, built from small configurations of their own classes.

A configuration is made small by the names of its fields, which most models share; what a model needs
besides is said beside it. Inputs are of a few kinds. The model is called by the names of its
arguments and gives back the tensors of its `ModelOutput`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fewbit.base.typed_torch import manual_seed
from tests.strangers.stranger import Stranger, TorchCase, need

HIDDEN, HEADS, LAYERS, INNER, VOCABULARY = 32, 4, 2, 64, 99

SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embed_dim", "embedding_size"), HIDDEN),
    **dict.fromkeys(("dim", "word_embed_proj_dim", "lru_width", "embedding_dim"), HIDDEN),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), HEADS),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), HEADS),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), LAYERS),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim"), INNER),
    **dict.fromkeys(("ffn_dim", "d_ff", "hidden_dim", "n_inner", "moe_intermediate_size"), INNER),
    **dict.fromkeys(("vocab_size", "max_position_embeddings", "n_positions"), VOCABULARY),
    **dict.fromkeys(("shared_expert_intermediate_size", "expert_ffn_hidden_size"), INNER),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_key_value_heads", "moe_topk"), 2),
    **dict.fromkeys(("head_dim", "d_kv"), HIDDEN // HEADS),
    **dict.fromkeys(("conv_dim",), (HIDDEN, HIDDEN, HIDDEN)),
    **dict.fromkeys(("conv_kernel",), (10, 3, 2)),
    **dict.fromkeys(("conv_stride",), (5, 2, 2)),
    **dict.fromkeys(("num_conv_pos_embeddings", "state_size"), 16),
    **dict.fromkeys(("num_conv_pos_embedding_groups",), 2),
    **dict.fromkeys(("image_size",), 32),
    **dict.fromkeys(("patch_size",), 8),
    **dict.fromkeys(("pad_token_id",), 0),
    **dict.fromkeys(("bos_token_id", "decoder_start_token_id"), 1),
    **dict.fromkeys(("eos_token_id",), 2),
}
"""What a field of this name is set to."""


@dataclass(frozen=True)
class TransformersModel(Stranger):
    """A class of transformers, the kind of its inputs, and fields of its configuration."""

    kind: str = "tokens"
    options: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def build(self, folder: Path) -> TorchCase:
        transformers = need("transformers")
        manual_seed(0)
        make = getattr(transformers, self.name)
        config = small_config(make.config_class, self.options)
        model = _Named(make(config).eval(), inputs(self.kind, config, 1).keys())
        samples = tuple(tuple(inputs(self.kind, config, 4).values()) for _ in range(3))
        return TorchCase(model, tuple(inputs(self.kind, config, 2).values()), samples)


class _Named(nn.Module):
    """Calls a model by the names of its arguments, without a cache, for its tensors."""

    def __init__(self, model: nn.Module, names: Any) -> None:
        super().__init__()
        self.model = model
        self.names = tuple(names)
        config: Any = model.config
        config.use_cache = False
        config.return_dict = True

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = self.model(**dict(zip(self.names, given, strict=True)))
        return tuple(value for value in results.values() if isinstance(value, torch.Tensor))


def small_config(config_class: Any, options: dict[str, Any]) -> Any:
    """Return a configuration whose known fields are small, and the others as a model says."""
    default = config_class()
    known = {name: value for name, value in SIZES.items() if _has(default, name)}
    return config_class(**_fit(default, known) | options)


def _has(config: Any, name: str) -> bool:
    own = getattr(config, "attribute_map", {})
    return name in config.__dict__ or name in own


def _fit(default: Any, sizes: dict[str, Any]) -> dict[str, Any]:
    """Leave fields out that are None by default, or that are lists where a number is meant."""
    return {
        name: value
        for name, value in sizes.items()
        if getattr(default, name) is not None
        and isinstance(getattr(default, name), list | tuple) == isinstance(value, tuple)
    }


def inputs(kind: str, config: Any, batch: int) -> dict[str, torch.Tensor]:
    """Return inputs of a kind: tokens, both (of an encoder-decoder), image, audio, and others."""
    tokens = torch.randint(3, VOCABULARY, (batch, 12))

    def ones(length: int) -> torch.Tensor:
        return torch.ones(batch, length, dtype=torch.int64)

    match kind:
        case "tokens":
            return {"input_ids": tokens}
        case "masked":
            mask = torch.ones_like(tokens)
            mask[:, 9:] = 0
            return {"input_ids": tokens, "attention_mask": mask}
        case "both":
            return {"input_ids": tokens, "decoder_input_ids": tokens[:, :7].flip(1)}
        case "both masked":
            masked = inputs("masked", config, batch)
            return {**masked, "decoder_input_ids": tokens[:, :7], "decoder_attention_mask": ones(7)}
        case "image":
            return {"pixel_values": torch.randn(batch, 3, 32, 32)}
        case "image64":
            return {"pixel_values": torch.randn(batch, 3, 64, 64)}
        case "video":
            frames = config.num_frames
            return {"pixel_values": torch.randn(batch, frames, 3, 32, 32)}
        case "audio":
            return {"input_values": torch.randn(batch, 800)}
        case "mel":
            length = 2 * config.max_source_positions
            return {
                "input_features": torch.randn(batch, config.num_mel_bins, length),
                "decoder_input_ids": tokens[:, :7],
            }
        case "spectrogram":
            return {"input_values": torch.randn(batch, config.max_length, config.num_mel_bins)}
        case "features":
            return {"input_features": torch.randn(batch, 20, config.feature_projection_input_dim)}
        case "text and image":
            image = inputs("image", config.vision_config, batch)
            tokens[:, -1] = VOCABULARY - 1
            return {"input_ids": tokens, **image}
        case "series":
            channels = config.num_input_channels
            return {"past_values": torch.randn(batch, config.context_length, channels)}
        case _:
            raise ValueError(f"no inputs of the kind '{kind}'")


def _model(name: str, kind: str = "tokens", **options: Any) -> TransformersModel:
    return TransformersModel("transformers", name, kind, options)


_CLIP = {
    "text_config": {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4,
                    "num_hidden_layers": 2, "vocab_size": 99, "eos_token_id": 98},
    "vision_config": {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4,
                      "num_hidden_layers": 2, "image_size": 32, "patch_size": 8},
}  # fmt: skip

MODELS = [
    # Encoders.
    _model("BertModel", "masked"),
    _model("AlbertModel", "masked"),
    _model("DistilBertModel", "masked"),
    _model("RobertaModel", "masked"),
    _model("ElectraForMaskedLM", "masked"),
    _model("MPNetModel", "masked"),
    _model("DebertaModel", "masked", pos_att_type=["c2p", "p2c"], relative_attention=True),
    _model("DebertaV2Model", "masked", pos_att_type=["c2p", "p2c"], relative_attention=True),
    _model("ModernBertModel", "masked", global_attn_every_n_layers=2, local_attention=8),
    _model("ConvBertModel", "masked"),
    _model("SqueezeBertModel", "masked"),
    _model("MobileBertModel", "masked", intra_bottleneck_size=16, embedding_size=32),
    _model("FNetModel"),
    _model("NystromformerModel", num_landmarks=4, segment_means_seq_len=12),
    _model("CanineModel", hidden_size=32, num_hash_buckets=64, local_transformer_stride=4,
           max_position_embeddings=32),
    _model("EsmModel", "masked", vocab_size=99, pad_token_id=1, position_embedding_type="rotary"),
    _model("FunnelModel", "masked", block_sizes=[1, 1], d_head=8, d_inner=64),
    _model("XLNetModel", d_inner=64),
    _model("T5EncoderModel", "masked"),
    _model("NomicBertModel", "masked"),
    _model("IBertModel", "masked"),
    # Decoders.
    _model("GPT2LMHeadModel"),
    _model("GPTNeoForCausalLM", attention_types=[[["global", "local"], 1]], window_size=4),
    _model("GPTNeoXForCausalLM"),
    _model("GPTJForCausalLM", rotary_dim=4),
    _model("OPTForCausalLM"),
    _model("BloomForCausalLM"),
    _model("FalconForCausalLM", "masked"),
    _model("MptForCausalLM"),
    _model("LlamaForCausalLM"),
    _model("MistralForCausalLM", sliding_window=4),
    _model("Qwen2ForCausalLM"),
    _model("Qwen3ForCausalLM"),
    _model("Gemma2ForCausalLM", "masked", sliding_window=4, query_pre_attn_scalar=8),
    _model("Gemma3ForCausalLM", "masked", sliding_window=4, query_pre_attn_scalar=8),
    _model("PhiForCausalLM"),
    _model("Phi3ForCausalLM"),
    _model("StableLmForCausalLM"),
    _model("CohereForCausalLM"),
    _model("Olmo2ForCausalLM"),
    _model("NemotronForCausalLM", num_key_value_heads=2),
    _model("DiffLlamaForCausalLM"),
    _model("BitNetForCausalLM"),
    _model("XGLMForCausalLM", attention_heads=4),
    _model("CTRLLMHeadModel", dff=64),
    # Mixtures of experts.
    _model("MixtralForCausalLM"),
    _model("Qwen2MoeForCausalLM", decoder_sparse_step=1),
    _model("OlmoeForCausalLM"),
    _model("PhimoeForCausalLM"),
    _model("GraniteMoeForCausalLM"),
    _model("DeepseekV3ForCausalLM", "masked", q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8,
           qk_nope_head_dim=8, v_head_dim=8, n_group=2, topk_group=1, first_k_dense_replace=1,
           num_key_value_heads=4),
    _model("SwitchTransformersModel", "both masked", num_sparse_encoder_layers=1, expert_capacity=8,
           num_sparse_decoder_layers=1),
    # State spaces and recurrences.
    _model("MambaForCausalLM", time_step_rank=4, intermediate_size=64),
    _model("Mamba2ForCausalLM", num_heads=8, head_dim=8, n_groups=1, chunk_size=4, expand=2),
    _model("FalconMambaForCausalLM", time_step_rank=4),
    _model("RwkvModel", attention_hidden_size=32, context_length=16),
    _model("RecurrentGemmaForCausalLM", attention_window_size=8, num_hidden_layers=3),
    # Encoder-decoders.
    _model("T5Model", "both"),
    _model("LongT5Model", "both masked", local_radius=4, global_block_size=4),
    _model("BartModel", "both"),
    _model("PegasusModel", "both"),
    _model("M2M100Model", "both"),
    _model("ProphetNetModel", "both", num_encoder_attention_heads=4, num_decoder_attention_heads=4,
           num_encoder_layers=2),
    # Vision.
    _model("ViTForImageClassification", "image"),
    _model("BeitModel", "image"),
    _model("Dinov2Model", "image"),
    _model("SwinModel", "image", embed_dim=16, depths=[1, 2], num_heads=[2, 4], patch_size=2,
           window_size=4),
    _model("Swinv2Model", "image", embed_dim=16, depths=[1, 2], num_heads=[2, 4], patch_size=2,
           window_size=4),
    _model("ConvNextModel", "image64", hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]),
    _model("ConvNextV2Model", "image64", hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]),
    _model("ResNetModel", "image64", embedding_size=16, hidden_sizes=[16, 32, 48, 64],
           depths=[1, 1, 1, 1]),
    _model("RegNetModel", "image64", embedding_size=16, hidden_sizes=[16, 32, 48, 64],
           depths=[1, 1, 1, 1], groups_width=8),
    _model("SegformerForSemanticSegmentation", "image64", hidden_sizes=[16, 32, 48, 64],
           depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32),
    _model("MobileViTModel", "image64", hidden_sizes=[16, 24, 32], image_size=64, patch_size=2,
           neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64]),
    _model("PvtModel", "image64", image_size=64, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
           num_attention_heads=[1, 2, 2, 4]),
    _model("PoolFormerModel", "image64", hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1]),
    _model("CvtModel", "image64", embed_dim=[16, 32, 48], num_heads=[1, 2, 3], depth=[1, 2, 3]),
    _model("GLPNModel", "image64", hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
           num_attention_heads=[1, 2, 2, 4]),
    _model("YolosModel", "image", image_size=[32, 32], num_detection_tokens=5),
    _model("VideoMAEModel", "video", num_frames=4),
    _model("TimesformerModel", "video", num_frames=2),
    # Text and image.
    _model("CLIPModel", "text and image", projection_dim=32, **_CLIP),
    _model("SiglipModel", "text and image", **_CLIP),
    # Audio and series.
    _model("Wav2Vec2Model", "audio"),
    _model("WavLMModel", "audio"),
    _model("SEWModel", "audio", squeeze_factor=2),
    _model("Wav2Vec2BertModel", "features", feature_projection_input_dim=16),
    _model("ASTModel", "spectrogram", max_length=32, num_mel_bins=16, patch_size=8,
           frequency_stride=8, time_stride=8),
    _model("WhisperModel", "mel", max_source_positions=20, num_mel_bins=16,
           max_target_positions=20),
    _model("PatchTSTModel", "series", num_input_channels=3, context_length=16, patch_length=4,
           patch_stride=4),
]  # fmt: skip
