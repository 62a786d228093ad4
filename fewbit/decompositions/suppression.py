"""Non-maximum suppression: boxes by falling score, without those that overlap one chosen before.

Each step of a loop chooses the best box that is left, and drops it and all that overlap it: as many
steps as boxes may be chosen, each a pass over the boxes, with no table of all pairs and no sorting.
Steps that find no box left mark their choice as none; which boxes were chosen is then a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from fewbit.decompositions.recurrent import scan_steps

Loop = Callable[..., list[Tensor]]
"""Runs a step again and again, as `scan_steps` does."""


@dataclass(frozen=True)
class Boxes:
    """Boxes as their corners, batch x 1 x boxes each, the smaller coordinates first."""

    left: Tensor
    top: Tensor
    right: Tensor
    bottom: Tensor

    @staticmethod
    def of_corners(boxes: Tensor) -> Boxes:
        """Return boxes that are given by any two opposite corners."""
        a, b, c, d = boxes.unsqueeze(1).unbind(-1)
        return Boxes(
            torch.minimum(a, c), torch.minimum(b, d), torch.maximum(a, c), torch.maximum(b, d)
        )

    @staticmethod
    def of_centers(boxes: Tensor) -> Boxes:
        """Return boxes that are given by their centers, widths and heights."""
        x, y, width, height = boxes.unsqueeze(1).unbind(-1)
        width, height = width / 2, height / 2
        return Boxes(x - width, y - height, x + width, y + height)

    @property
    def sides(self) -> tuple[Tensor, ...]:
        return self.left, self.top, self.right, self.bottom

    @property
    def area(self) -> Tensor:
        return (self.right - self.left) * (self.bottom - self.top)

    def at(self, place: Tensor) -> Boxes:
        """Return one box for each batch and class."""
        sizes = [*place.shape[:2], self.left.shape[-1]]
        return Boxes(*(side.expand(sizes).gather(2, place) for side in self.sides))

    def overlap(self, other: Boxes, threshold: Any) -> Tensor:
        """Return whether the shared part of two boxes is more than this share of both."""
        width = torch.minimum(self.right, other.right) - torch.maximum(self.left, other.left)
        height = torch.minimum(self.bottom, other.bottom) - torch.maximum(self.top, other.top)
        shared = width * height
        both = self.area + other.area - shared
        exist = (width > 0) & (height > 0) & (self.area > 0) & (other.area > 0) & (both > 0)
        return exist & (shared / both > threshold)


def choose_boxes(
    boxes: Boxes,
    scores: Tensor,
    candidates: Tensor,
    count: Any,
    threshold: Tensor,
    loop: Loop,
) -> tuple[Tensor, Tensor]:
    """Return the boxes that are chosen, and whether each is one: batch x class x count.

    Scores and candidates are batch x class x boxes.
    """

    def step(left: Tensor, number: Tensor, *others: Tensor) -> Sequence[Tensor]:
        scores, threshold, *sides = others
        boxes = Boxes(*sides)
        best = torch.where(left, scores, -torch.inf).amax(-1, True)
        is_best = left & (scores == best)
        place = is_best.to(torch.int32).argmax(-1, True)
        dropped = boxes.overlap(boxes.at(place), threshold)
        is_chosen = torch.arange(scores.shape[-1]) == place
        exists = left.any(-1)
        return [left & ~dropped & ~is_chosen, torch.where(exists, place.squeeze(-1), -1)]

    # NaN comes last; equal scores come in the order of boxes.
    scores = torch.where(scores != scores, torch.full_like(scores, -torch.inf), scores)
    numbers = cast(Any, torch).arange(count)
    _, chosen = loop(step, [candidates], [numbers], [scores, threshold, *boxes.sides])
    chosen = chosen.permute(1, 2, 0)
    return chosen, chosen >= 0


def selected_indices(chosen: Tensor, exists: Tensor) -> Tensor:
    """Return a row for each chosen box: its batch, its class and its number."""
    batches, classes, _ = chosen.shape
    batch = cast(Any, torch).arange(batches).reshape([-1, 1, 1]).expand(chosen.shape)
    line = cast(Any, torch).arange(classes).reshape([1, -1, 1]).expand(chosen.shape)
    rows = torch.stack([batch, line, chosen], -1).reshape([-1, 3])
    return _existing(rows, exists)


def _existing(rows: Tensor, exists: Tensor) -> Tensor:
    """Return the rows that a mask says to be there."""
    return rows.index_select(0, torch.nonzero(exists.reshape([-1])).select(1, 0))


def suppression_decompositions() -> dict[Any, Callable[..., Any]]:
    """The op of torchvision, where that was imported."""
    try:
        return {torch.ops.torchvision.nms.default: _nms}
    except AttributeError:
        return {}


def _nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the numbers of boxes that stay, by falling score."""
    scores = scores.reshape([1, 1, -1])
    chosen, exists = choose_boxes(
        Boxes.of_corners(boxes.unsqueeze(0)),
        scores,
        torch.ones_like(scores, dtype=torch.bool),
        boxes.shape[0],
        torch.full([], iou_threshold, dtype=boxes.dtype),
        scan_steps,
    )
    return _existing(chosen.reshape([-1]), exists)
