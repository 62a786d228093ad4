"""What the accelerator cannot run, with the reason; None where it can."""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.targets.gemmini.streams.max_pool import MOST

Pairs = Sequence[Sequence[int]]


def conv_refusal(
    weight: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Pairs,
    groups: int,
) -> str | None:
    """Return why a convolution by O x C/groups x kh x kw is refused."""
    if len(set(stride)) > 1 or len(set(dilation)) > 1:
        return "its strides or dilations differ by direction"
    if groups > 1 and weight[1] == 1:
        return "it is depthwise, which leaves all but one column of the array idle"
    for pair, size, step in zip(padding, weight[2:], dilation, strict=True):
        if max(pair) > step * (size - 1):
            return "its padding is wider than its kernel"
    return None


def pool_refusal(
    size: Sequence[int], stride: Sequence[int], padding: Pairs, width: int
) -> str | None:
    """Return why max pooling of bytes is refused."""
    if len(set(size)) > 1 or len(set(stride)) > 1:
        return "its windows are not square"
    if max(*size, *stride) > 3:
        return "its windows or steps have more than 3 pixels"
    if any(side for pair in padding for side in pair):
        return "it is padded, and outside counts as 0 there"
    return "its image is too wide" if width > MOST else None
