"""The last step of detectors: boxes chosen by their scores."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from fewbit.decompositions.suppression import Boxes, choose_boxes, selected_indices
from fewbit.frontends.onnx.kinds import INT64
from fewbit.frontends.onnx.ops.recurrent import run_loop
from fewbit.frontends.onnx.table import Call, is_symbol, op


@op("NonMaxSuppression", tensors=2, gives=INT64)
def non_max_suppression(call: Call, boxes: Tensor, scores: Tensor) -> Tensor:
    most = max(call.whole(2)[0], 0) if call.has(2) else 0
    size = boxes.shape[1]
    # Without boxes there is no step, which would look for the best of none.
    count = cast(Any, torch).sym_min(most, size) if is_symbol(size) else min(most, int(size))
    if most == 0 or (not is_symbol(size) and size == 0):
        return torch.zeros([0, 3], dtype=torch.int64)
    is_centered = call.attr("center_point_box", 0) == 1
    corners = (Boxes.of_centers if is_centered else Boxes.of_corners)(boxes)
    threshold = _number(call, 3)
    threshold = torch.zeros([], dtype=boxes.dtype) if threshold is None else threshold
    least = _number(call, 4)
    candidates = torch.ones_like(scores, dtype=torch.bool) if least is None else scores > least
    chosen, exists = choose_boxes(
        corners, scores, candidates, count, threshold, lambda *given: run_loop(call, *given)
    )
    return selected_indices(chosen, exists)


def _number(call: Call, index: int) -> Tensor | None:
    """An input of one element, as a tensor of rank 0; one without elements is none."""
    if not call.has(index) or call.shape(index) == (0,):
        return None
    return call.tensor(index).reshape([])
