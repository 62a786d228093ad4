"""Kinds of nodes with windows, and those that resample: pools, convolutions, sizes of images."""

from __future__ import annotations

from operator import gt
from typing import Any

import numpy as np

from tests.fuzz.onnx_graphs import FLOAT, INT64, Graph
from tests.fuzz.onnx_kinds import Kind, of_rank

SAME = ("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def odd_pool(g: Graph) -> None:
    """Add a pool with a window of any size, whose last place may hang over the edge."""
    x = g.pick(of_rank(3, 4, 5))
    if x is None:
        return
    spatial = x.rank - 2
    kernel = _drawn(g, spatial, 1, 6)
    given: dict[str, Any] = {"kernel_shape": kernel, "strides": _drawn(g, spatial, 1, 4)}
    given["auto_pad"] = g.choice(SAME)
    room = list(x.shape[2:])
    if given["auto_pad"] == "NOTSET":
        given["pads"] = pads = [int(g.rng.integers(k)) for k in kernel * 2]
        given["ceil_mode"] = int(g.rng.integers(2))
        room = [sum(sizes) for sizes in zip(room, pads[:spatial], pads[spatial:], strict=True)]
    kind = g.choice(("MaxPool", "AveragePool", "LpPool"))
    if kind == "MaxPool" and given["auto_pad"] == "NOTSET":
        given["dilations"] = _drawn(g, spatial, 1, 3)
    steps = given.get("dilations", [1] * spatial)
    reach = [step * (size - 1) + 1 for step, size in zip(steps, kernel, strict=True)]
    if given["auto_pad"] in ("VALID", "NOTSET") and any(map(gt, reach, room)):
        return  # of no elements, or of one, as one reads the rule
    if given["auto_pad"] in SAME[2:4] and any(map(gt, given["strides"], reach)):
        return  # between windows, ONNX's rule pads by less than nothing; each runtime does its own
    g.add(kind, [x], **given)


def pool_with_places(g: Graph) -> None:
    if x := g.pick(of_rank(3, 4)):
        g.add("MaxPool", [x], 2, kernel_shape=[2] * (x.rank - 2))


def padded_convolution(g: Graph) -> None:
    """Add a convolution over one to three dimensions, whose padding follows from its sizes."""
    x = g.pick(of_rank(3, 4, 5))
    if x is None:
        return
    spatial = x.rank - 2
    weight = g.weight(int(g.rng.integers(1, 4)), x.shape[1], *_drawn(g, spatial, 1, 5))
    g.add("Conv", [x, weight], auto_pad=g.choice(SAME), strides=_drawn(g, spatial, 1, 4))


def odd_transposed_convolution(g: Graph) -> None:
    x = g.pick(of_rank(3, 4))
    if x is None:
        return
    spatial, groups = x.rank - 2, int(g.choice([d for d in (1, 2, 3) if x.shape[1] % d == 0]))
    kernel, strides = _drawn(g, spatial, 1, 4), _drawn(g, spatial, 1, 4)
    g.add(
        "ConvTranspose", [x, g.weight(x.shape[1], int(g.rng.integers(1, 3)), *kernel)], group=groups,
        strides=strides, dilations=_drawn(g, spatial, 1, 3), pads=[int(g.rng.integers(k)) for k in kernel * 2],
        output_padding=[int(g.rng.integers(s)) for s in strides],
    )  # fmt: skip


def odd_resize(g: Graph) -> None:
    """Add a resize of images to other sizes, larger or smaller, by any of its rules."""
    x = g.pick(of_rank(3, 4))
    if x is None:
        return
    mode = g.choice(("nearest", "linear", "cubic"))
    given: dict[str, Any] = {
        "coordinate_transformation_mode": g.choice(
            ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
        )
    }
    if mode == "nearest":
        given["nearest_mode"] = g.choice(("round_prefer_floor", "floor", "ceil"))
    if mode == "cubic" and x.rank != 4:
        return
    sizes = [*x.shape[:2], *(g.size() for _ in x.shape[2:])]
    if mode == "cubic" and 1 in sizes[2:]:
        return  # onnxruntime reads the first pixel's neighbours, against the rule
    g.add("Resize", [x, "", "", g.integers(*sizes)], mode=mode, **given)


def sampled(g: Graph) -> None:
    """Add a grid of places of an image, some of them outside of it."""
    x = g.pick(of_rank(4))
    if x is None:
        return
    places = g.rng.uniform(-1.2, 1.2, (x.shape[0], g.size(), g.size(), 2)).astype(np.float32)
    g.add(
        "GridSample", [x, g.constant(places)], mode=g.choice(("linear", "nearest", "cubic")),
        padding_mode=g.choice(("zeros", "border", "reflection")), align_corners=int(g.rng.integers(2)),
    )  # fmt: skip


def blocks(g: Graph) -> None:
    if x := g.pick(of_rank(4)):
        kind, mode = g.choice(("SpaceToDepth", "DepthToSpace")), g.choice(("DCR", "CRD"))
        fits = (
            x.shape[1] % 4 == 0 if kind == "DepthToSpace" else not any(s % 2 for s in x.shape[2:])
        )
        if fits:
            g.add(kind, [x], blocksize=2, **({"mode": mode} if kind == "DepthToSpace" else {}))


def image_normalization(g: Graph) -> None:
    """Add a normalization of images or of rows that is no layer of most models."""
    x = g.pick(of_rank(3, 4))
    if x is None:
        return
    kind = g.choice(("LRN", "LpNormalization", "MeanVarianceNormalization", "GlobalLpPool"))
    given: dict[str, Any] = {}
    match kind:
        case "LRN":
            given = {"size": int(g.choice((1, 3, 5)))}
        case "LpNormalization":
            given = {"axis": int(g.rng.integers(x.rank)), "p": int(g.rng.integers(1, 3))}
        case "MeanVarianceNormalization":
            given = {"axes": sorted(g.rng.choice(x.rank, 2, replace=False).tolist())}
        case _:
            pass
    g.add(kind, [x], **given)


def any_pad(g: Graph) -> None:
    """Add pads of any kind of numbers, and of either sign."""
    x = g.pick(lambda v: v.type in (FLOAT, INT64) and 1 < v.rank < 5)
    if x is None:
        return
    pads = [int(g.rng.integers(-1 if size > 2 else 0, 3)) for size in x.shape * 2]
    fill = g.constant(np.array(2, np.float32 if x.type == FLOAT else np.int64))
    g.add("Pad", [x, g.integers(*pads), fill], mode="constant")


def _drawn(g: Graph, count: int, low: int, high: int) -> list[int]:
    """Return numbers from `low` to below `high`."""
    return [int(g.rng.integers(low, high)) for _ in range(count)]


KINDS: tuple[Kind, ...] = (
    odd_pool, odd_pool, pool_with_places, padded_convolution, odd_transposed_convolution,
    odd_resize, sampled, blocks, image_normalization, any_pad,
)  # fmt: skip
