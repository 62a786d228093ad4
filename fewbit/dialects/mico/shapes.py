"""Shape rules of the dialect's ops: pure functions of dimensions, DYNAMIC where unknown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.utils.exceptions import VerifyException

Shape = tuple[int, ...]
DYNAMIC = DYNAMIC_INDEX


def compatible(a: Sequence[int], b: Sequence[int]) -> bool:
    """Return whether two shapes may be the same at run time."""
    return len(a) == len(b) and all(x == y or DYNAMIC in (x, y) for x, y in zip(a, b, strict=True))


def require(expected: Sequence[int], given: Sequence[int], what: str) -> None:
    if not compatible(expected, given):
        raise VerifyException(f"{what} has the shape {show(given)}, expected {show(expected)}")


def show(shape: Sequence[int]) -> str:
    return "x".join("?" if d == DYNAMIC else str(d) for d in shape) or "scalar"


def size(shape: Sequence[int]) -> int:
    """Return the number of elements; DYNAMIC where it is unknown."""
    total = 1
    for d in shape:
        if d == DYNAMIC:
            return DYNAMIC
        total *= d
    return total


def rows_of(shape: Sequence[int]) -> tuple[int, int]:
    """Return a weight of any rank as rows, one for each output channel, of K elements."""
    return (shape[0], prod(shape[1:])) if shape else (1, 1)


def window(
    extent: int,
    kernel: int,
    stride: int,
    before: int,
    after: int,
    dilation: int,
    ceil: bool = False,
) -> int:
    """Return how many windows fit along one dimension of a convolution or pooling."""
    if extent == DYNAMIC:
        return DYNAMIC
    span = extent + before + after - dilation * (kernel - 1) - 1
    # With `ceil` a window may go beyond the padding, by less than a step.
    if span < 0 and not (ceil and span > -stride):
        raise VerifyException(
            f"a window of {dilation * (kernel - 1) + 1} does not fit into {extent} padded by "
            f"{before} and {after}"
        )
    if not ceil:
        return span // stride + 1
    count = -(-span // stride) + 1
    # As everywhere: a last window that would begin in the padding behind is left out.
    return count - 1 if (count - 1) * stride >= extent + before else count


def windows(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    *,
    ceil: bool = False,
) -> Shape:
    """Return `window` for each spatial dimension; `padding` lists before and after in turn."""
    rank = len(extents)
    for what, values, count in (
        ("kernel_size", kernel, rank),
        ("stride", stride, rank),
        ("padding", padding, 2 * rank),
        ("dilation", dilation, rank),
    ):
        if len(values) != count:
            raise VerifyException(f"{what} has {len(values)} entries, expected {count}")
    if min(*kernel, *stride, *dilation, 1) < 1 or min(padding, default=0) < 0:
        raise VerifyException("kernel_size, stride and dilation are at least 1, padding at least 0")
    return tuple(
        window(
            extents[i], kernel[i], stride[i], padding[2 * i], padding[2 * i + 1], dilation[i], ceil
        )
        for i in range(rank)
    )


def pool_windows(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    *,
    ceil: bool,
) -> Shape:
    """Return `windows` of a pooling: none may lie in the padding alone."""
    counts = windows(extents, kernel, stride, padding, dilation, ceil=ceil)
    for i, extent in enumerate(kernel):
        if max(padding[2 * i : 2 * i + 2]) * 2 > extent:
            raise VerifyException(f"padding is at most half of the kernel, {extent}")
    return counts


def check_groups(channels: int, weight: Shape, groups: int) -> None:
    """Check that a weight of O x C/groups x ... convolves an input of C channels."""
    if groups < 1 or (weight[0] != DYNAMIC and weight[0] % groups != 0):
        raise VerifyException(f"{groups} groups do not divide {weight[0]} output channels")
    if DYNAMIC not in (channels, weight[1]) and channels != weight[1] * groups:
        raise VerifyException(
            f"the input has {channels} channels, the weight takes {groups} groups of {weight[1]}"
        )


def granularity(weight: tuple[int, ...], scale: tuple[int, ...]) -> tuple[str, int | None]:
    """Return the granularity of a scale of this shape: tensor, channel, or group and its size."""
    if scale == ():
        return "tensor", None
    if not weight:
        raise VerifyException(f"a scalar has one scale, not {show(scale)}")
    channels, reduction = weight[0], size(weight[1:])
    if scale[0] != channels and DYNAMIC not in (scale[0], channels):
        raise VerifyException(f"{show(scale)} scales for {channels} output channels")
    if len(scale) == 1:
        return "channel", None
    if len(scale) == 2 and DYNAMIC in (reduction, scale[1]):
        return "group", None
    if len(scale) != 2 or scale[1] < 1 or reduction % scale[1] != 0:
        raise VerifyException(
            f"scales of shape {show(scale)} do not divide {reduction} elements a channel into "
            "groups of one size"
        )
    return "group", reduction // scale[1]


def broadcast(a: Shape, b: Shape) -> Shape:
    """Broadcast two shapes by numpy's rule."""
    result: list[int] = []
    for x, y in zip_longest(reversed(a), reversed(b), fillvalue=1):
        if x != y and 1 not in (x, y) and DYNAMIC not in (x, y):
            raise VerifyException(f"shapes {show(a)} and {show(b)} do not broadcast")
        if 1 in (x, y):
            result.append(y if x == 1 else x)
        else:
            result.append(y if x == DYNAMIC else x)
    return tuple(reversed(result))


def flatten(shape: Shape, start: int, end: int) -> Shape:
    rank = len(shape)
    first, last = axis(start, rank, "start_dim"), axis(end, rank, "end_dim")
    if first > last:
        raise VerifyException(f"start_dim {start} lies behind end_dim {end}")
    return (*shape[:first], size(shape[first : last + 1]), *shape[last + 1 :])


def reshape(shape: Shape, wanted: Sequence[int]) -> Shape:
    """Return the shape where 0 keeps the dimension at its place and one -1 is inferred."""
    if min(wanted, default=0) < -1 or list(wanted).count(-1) > 1:
        raise VerifyException(f"shape = {list(wanted)} has at most one -1, and nothing below it")
    if any(w == 0 and i >= len(shape) for i, w in enumerate(wanted)):
        raise VerifyException(f"shape = {list(wanted)} keeps a dimension that {show(shape)} lacks")
    known = [shape[i] if w == 0 else w for i, w in enumerate(wanted)]
    total, given = size(shape), size([w for w in known if w != -1])
    inferred = DYNAMIC
    if DYNAMIC not in (total, given):
        fills = total == given if -1 not in wanted else given > 0 and total % given == 0
        if not fills:
            raise VerifyException(f"{show(shape)} does not fill shape = {list(wanted)}")
        inferred = total // given if -1 in wanted else 0
    return tuple(inferred if w == -1 else w for w in known)


def concat(shapes: Sequence[Shape], dim: int) -> Shape:
    along = axis(dim, len(shapes[0]), "dim")
    known = list(shapes[0])
    known[along] = 0
    for shape in shapes:
        require((*known[:along], DYNAMIC, *known[along + 1 :]), shape, "a concatenated tensor")
        for i, extent in enumerate(shape):
            if i != along:
                known[i] = extent if known[i] == DYNAMIC else known[i]
            elif DYNAMIC not in (known[i], extent):
                known[i] += extent
            else:
                known[i] = DYNAMIC
    return tuple(known)


def transpose(shape: Shape, permutation: Sequence[int]) -> Shape:
    if sorted(permutation) != list(range(len(shape))):
        raise VerifyException(
            f"permutation {list(permutation)} does not order the dimensions of {show(shape)}"
        )
    return tuple(shape[d] for d in permutation)


def axis(dim: int, rank: int, what: str) -> int:
    """Return a dimension as a non-negative number; negative ones count from the end."""
    if not -rank <= dim < rank:
        raise VerifyException(f"{what} {dim} is outside of a tensor of rank {rank}")
    return dim % rank
