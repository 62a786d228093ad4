"""Attention: the plain form as one op of ours, every other as ONNX defines it by simpler ops."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.frontends.onnx.kinds import BOOL
from fewbit.frontends.onnx.table import Call, op

_PLAIN = {"is_causal", "kv_num_heads", "q_num_heads", "scale", "softcap"}
"""Attributes that the plain form may have."""


@op("Attention", tensors=0)
def attention(call: Call) -> object:
    if not _is_plain(call):
        return call.evaluator.expand(call)
    query, key, value = (call.tensor(i) for i in range(3))
    merged = query.ndim == 3
    if merged:
        query = _heads(query, call.attr("q_num_heads"))
        key, value = (_heads(x, call.attr("kv_num_heads")) for x in (key, value))
    mask = call.tensor(3) if call.has(3) else None
    grouped = query.shape[1] // key.shape[1]
    if grouped > 1:
        key, value = (x.repeat_interleave(grouped, 1) for x in (key, value))
    result = F.scaled_dot_product_attention(
        query, key, value, mask, is_causal=bool(call.attr("is_causal", 0)), scale=call.attr("scale")
    )
    return result.transpose(1, 2).flatten(2) if merged else result


def _heads(x: Tensor, count: int) -> Tensor:
    return x.reshape([*x.shape[:2], count, -1]).transpose(1, 2)


def _is_plain(call: Call) -> bool:
    if set(call.attributes) - _PLAIN:
        return False
    if call.outputs() > 1 or any(call.has(i) for i in range(4, len(call.inputs))):
        return False
    if call.attr("softcap", 0.0) or call.kind(0) != 1 or call.attr("is_causal", 0):
        return False
    if call.has(3):
        if call.kind(3) not in (BOOL, call.kind(0)) or len(call.shape(3)) > 4:
            return False
        # A row of a mask that hides all keys is a row of zeros in ONNX.
        if call.kind(3) == BOOL:
            return False
        return bool(call.shape(3)[-1] == call.shape(1)[-2])
    return True
