"""Where the tokens of a call are, and what they attend to: of one sequence, or of several.

One sequence has its tokens side by side from a position on, so that what a window sees is a few
places that are gathered. Several have a position each, and read as far as the longest; a token of
-1 is none: what is kept of it goes to a block that is never read. A step reads all that there is
room for, and hides what is not kept yet: its sizes are the same at every position.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor

from fewbit.base.typed_torch import sym_max, sym_min
from fewbit.language.cache import BLOCK, Kept

NONE = -1
"""A token that is none, behind the others of a sequence."""


class Located(NamedTuple):
    """The tokens of a call."""

    positions: Tensor
    """[tokens], or of several sequences [sequences, tokens]."""
    end: int
    """The position behind the last of all; in steps, behind the last that there is."""
    kept_at: Tensor
    """Where they are kept, one by one."""
    sequences: Tensor | None
    """Which sequence each is of; None where there is one."""
    is_step: bool
    """Whether all that is kept is read, whatever the position."""


class Heads(NamedTuple):
    keys: int
    """How many heads keys have."""
    sharing: int
    """How many heads of queries have the same keys."""


class Sight(NamedTuple):
    """What tokens attend to."""

    seen: Tensor
    """The mask, [rows, tokens]: which of those that are read a token attends to.

    Of several sequences it is [heads of all, rows, tokens].
    """
    rows: int
    """Queries that share keys."""
    kept: Kept


def locate_one(tokens: Tensor, position: Tensor, context: int, *, is_step: bool = False) -> Located:
    length = tokens.shape[1]
    positions = position + torch.arange(length)
    end = context if is_step else end_of(position[0], length, context)
    return Located(positions, end, positions, None, is_step)


def locate_several(
    tokens: Tensor, position: Tensor, context: int, last: int, *, is_step: bool = False
) -> Located:
    """Return the places of tokens; positions behind the `last` are those of none."""
    count, length = tokens.shape
    places = position.unsqueeze(1) + torch.arange(length)
    kept_at = torch.where(tokens == NONE, context, places).reshape(-1)
    sequences = torch.arange(count).unsqueeze(1).expand(count, length).reshape(-1)
    end = context if is_step else end_of(position.amax(), length, context)
    return Located(places.clamp(0, last), end, kept_at, sequences, is_step)


def see(located: Located, context: int, window: int | None, heads: Heads) -> Sight:
    """Return what queries see, in a window or of all that was kept."""
    positions, sequences = located.positions, located.sequences
    queries = _rows(positions, heads).unsqueeze(-1)
    blocks = sym_min((located.end + BLOCK - 1) // BLOCK, context // BLOCK)
    end = sym_min(located.end, blocks * BLOCK)  # No change, but a compiler then knows that it fits.
    kept = torch.arange(end)
    read = (blocks, blocks * BLOCK, end, end)
    seen = kept <= queries
    if window is not None and window < context:
        if sequences is None and not located.is_step:
            count = sym_min(end, window - 1 + positions.shape[0])
            kept = end - count + torch.arange(count)
            first = (end - count) // BLOCK
            some = sym_min(blocks - first, blocks)  # Bounded, for a compiler that plans memory.
            read = (first + torch.arange(some), some * BLOCK, kept - first * BLOCK, kept)
        seen = (kept <= queries) & (kept > queries - window)
    where = located.kept_at
    columns = where & BLOCK - 1
    kept_places = Kept(where, where >> BLOCK.bit_length() - 1, columns, sequences, *read)
    return Sight(seen, heads.sharing * positions.shape[-1], kept_places)


def _rows(positions: Tensor, heads: Heads) -> Tensor:
    """Return the position of each query, [rows], or of several sequences [heads of all, rows]."""
    if positions.ndim == 1:
        return positions.repeat(heads.sharing)
    rows = positions.repeat(1, heads.sharing)
    return rows.unsqueeze(1).expand(-1, heads.keys, -1).flatten(0, 1)


def end_of(position: Tensor, length: int, context: int) -> int:
    """Return the position behind the last token.

    It is cut to what there is, so that a compiler knows without data that slices fit.
    """
    first = sym_max(cast(int, position.item()), 0)
    return sym_min(first + length, context)


def last_tokens(tokens: Tensor) -> Tensor:
    """Return the number of each sequence's last token, [sequences], 0 where it has none."""
    return ((tokens != NONE).sum(1) - 1).clamp_min(0)
