"""llama.cpp, for LLaMa models: the same weights in a GGUF file, in its own 4 bits.

It keeps keys and values itself, so it reads the prompt that the other tools' caches are made of. A
run is one step at the position behind; its place in the cache is then free again. Weights of
queries and keys are permuted, because llama.cpp rotates neighbouring channels where the model
rotates the two halves of a head.
"""
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fewbit.bench.case import Array, Case
from fewbit.bench.decoding import prompt
from fewbit.bench.peers.peer import Peer, Session
from fewbit.errors import UnsupportedError

FLOAT, FOUR_BITS = "float32", "Q4_0"
LAYERS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""What llama.cpp calls the parts of a layer."""
OTHERS = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


class LlamaCpp(Peer):
    """llama.cpp, through its Python bindings."""

    def packages(self, quantized: bool) -> tuple[str, ...]:
        return ("llama_cpp", "gguf")

    def variants(self, quantized: bool) -> tuple[str, ...]:
        return (FOUR_BITS if quantized else FLOAT,)

    def build(self, case: Case, variant: str, folder: Path) -> None:
        model = case.module()
        if not hasattr(model, "lm_head"):
            raise UnsupportedError("llama.cpp is measured on LLaMa models only")
        write_gguf(model, folder / "model.gguf", variant)

    def open(self, case: Case, variant: str, folder: Path, threads: int) -> Session:
        return open_step(folder / "model.gguf", prompt(), threads)


def write_gguf(model: Any, path: Path, variant: str) -> None:
    """Write the model's sizes and weights: matrices in the variant's format, others in float32."""
    import gguf

    decoder = model.model
    attention = decoder.layers[0].self_attn
    heads = attention.q_proj.out_features // attention.head_width
    kv_heads = attention.k_proj.out_features // attention.head_width
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(len(decoder.layers))
    writer.add_context_length(decoder.longest)
    writer.add_embedding_length(decoder.embed_tokens.embedding_dim)
    writer.add_feed_forward_length(decoder.layers[0].mlp.up_proj.out_features)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(decoder.norm.eps)
    writer.add_rope_dimension_count(attention.head_width)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(decoder.embed_tokens.num_embeddings)
    writer.add_tokenizer_model("no_vocab")
    kind = gguf.GGMLQuantizationType.Q4_0 if variant == FOUR_BITS else None
    for name, parameter in model.named_parameters():
        array = np.ascontiguousarray(parameter.detach().numpy())
        if "q_proj" in name or "k_proj" in name:
            array = interleave_halves(array, heads if "q_proj" in name else kv_heads)
        if kind is None or array.ndim == 1:
            writer.add_tensor(tensor_name(name), array)
        else:
            writer.add_tensor(tensor_name(name), gguf.quants.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensor_name(name: str) -> str:
    """Return llama.cpp's name: `blk.0.attn_q.weight` for `model.layers.0.self_attn.q_proj`."""
    owner = name.removesuffix(".weight")
    if owner in OTHERS:
        return f"{OTHERS[owner]}.weight"
    number, _, part = owner.removeprefix("model.layers.").partition(".")
    return f"blk.{number}.{LAYERS[part]}.weight"


def interleave_halves(weight: Array, heads: int) -> Array:
    """Interleave the rows of each head's first half with those of its second."""
    rows, columns = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, columns))


def open_step(path: Path, tokens: list[int], threads: int) -> Session:
    """Return the step of the last token, after all others were read."""
    *before, last = tokens
    return open_tokens(path, before, [last], threads, context=2 * len(before))


def open_tokens(
    path: Path,
    before: list[int],
    measured: list[int],
    threads: int,
    *,
    context: int,
    flash: bool | None = None,
) -> Session:
    """Return what reads `measured`, after all tokens `before`; `flash` is how attention is done."""
    import llama_cpp as lib

    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
    assert model is not None, "llama.cpp does not load the file"
    parameters = lib.llama_context_default_params()
    parameters.n_ctx = context
    parameters.n_batch = max(len(before), len(measured))
    parameters.n_threads = parameters.n_threads_batch = threads
    if flash is not None:
        parameters.flash_attn_type = int(flash)
    own = lib.llama_init_from_model(model, parameters)
    assert own is not None, "llama.cpp does not start"
    vocabulary = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    memory = lib.llama_get_memory(own)

    def batch_of(part: list[int], first: int) -> lib.llama_batch:
        batch = lib.llama_batch_init(len(part), 0, 1)
        batch.n_tokens = len(part)
        for i, token in enumerate(part):
            batch.token[i], batch.pos[i] = token, first + i
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
            batch.logits[i] = i + 1 == len(part)
        return batch

    if before:
        assert lib.llama_decode(own, batch_of(before, 0)) == 0
    position = len(before)
    call = batch_of(measured, position)

    def run() -> None:
        lib.llama_memory_seq_rm(memory, 0, position, -1)
        assert lib.llama_decode(own, call) == 0
        lib.llama_synchronize(own)

    def outputs() -> list[Array]:
        logits = lib.llama_get_logits_ith(own, len(measured) - 1)
        return [np.ctypeslib.as_array(logits, (vocabulary,)).copy()]

    return Session(run, outputs)
