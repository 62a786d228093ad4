"""A session of a language model: its caches, checked calls, and what beams and drafts need.

A long prompt is read in pieces, each of which attends to what is kept until its own end: a call
that reads all at once computes the scores of every token for every other, and then hides those
behind it. Results are the same bits. A program of steps is given one token after another.

A program decodes one sequence or several, each with a position of its own. Positions are arguments,
so stepping back, behind a speculative check, is a call with a smaller one: what was kept from there
on is written again before it is read. A sequence that is to stay as it is gets no token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewbit.errors import UsageError
from fewbit.language.text_files import GenerationSettings
from fewbit.runtime.held_state import HeldState
from fewbit.runtime.native import Array
from fewbit.runtime.session import Session, StatefulRunner

NONE = -1
"""A token that is none, behind the others of its sequence."""
Tokens = Sequence[int]
PIECE = 128
"""Tokens of a piece: as many as kernels of few bits take over weights that they unpack once."""


class DecodeSession(Session):
    """A session that refuses tokens and positions that there are not."""

    def __init__(
        self, library: StatefulRunner, settings: GenerationSettings, threads: int | None = None
    ) -> None:
        super().__init__(library, threads)
        self._settings = settings
        self._piece = 1 if settings.steps else PIECE

    @property
    def sequences(self) -> int:
        """How many sequences a call takes."""
        return self._settings.sequences

    def run(self, *arrays: Any) -> tuple[Array, ...]:
        tokens, position = self._check_arrays(arrays)
        self._check_tokens(tokens)
        counts = (tokens != NONE).sum(1) if self.sequences > 1 else [tokens.shape[1]]
        for first, count in zip(position.tolist(), counts, strict=True):
            self._check_room(int(first), int(count))
        if tokens.shape[1] <= self._piece:
            return super().run(tokens, position)
        return (self._read_in_pieces(tokens, position, np.asarray(counts)),)

    def _check_arrays(self, arrays: Sequence[Any]) -> list[Array]:
        """Return tokens and positions; a program of steps takes several tokens by turns."""
        tokens = np.asarray(arrays[0]) if arrays else None
        if not self._settings.steps or tokens is None or tokens.ndim != 2 or tokens.shape[1] < 2:
            return self._library.check_own(arrays)
        _, *others = self._library.check_own([tokens[:, :1], *arrays[1:]])
        return [tokens, *others]

    def _read_in_pieces(self, tokens: Array, position: Array, counts: Array) -> Array:
        """Return the logits of a long call, of all its tokens or of each sequence's last."""
        pieces: list[Array] = []
        for start in range(0, tokens.shape[1], self._piece):
            piece = tokens[:, start : start + self._piece]
            pieces += super().run(piece, position + np.minimum(start, counts))
        if self._settings.logits == "all":
            return np.concatenate(pieces, axis=1)
        ends: list[int] = (np.maximum(counts - 1, 0) // self._piece).tolist()
        rows: list[Array] = [pieces[end][row] for row, end in enumerate(ends)]
        return np.stack(rows)

    def _check_tokens(self, tokens: Array) -> None:
        vocabulary, least = self._settings.vocabulary, NONE if self.sequences > 1 else 0
        if tokens.size and not least <= tokens.min() <= tokens.max() < vocabulary:
            raise UsageError("a token is not in the vocabulary", hint=f"0 to {vocabulary - 1}")
        if self.sequences > 1 and ((tokens[:, :-1] == NONE) & (tokens[:, 1:] != NONE)).any():
            raise UsageError(
                "a token that is none stands before others", hint=f"{NONE} only fills up a row"
            )

    def _check_room(self, first: int, count: int) -> None:
        context = self._settings.context
        if first < 0 or first + count > context:
            raise UsageError(
                f"tokens at the positions {first} to {first + count - 1} do not fit into the "
                f"context, which holds {context}",
                hint="begin anew with reset(), or compile with a larger context: --context",
            )

    def decode(self, tokens: Sequence[Tokens], positions: Sequence[int]) -> list[Array]:
        """Return logits of each sequence, [1, vocabulary], or of all its tokens.

        Sequences may have different numbers of tokens, or none, and those that are left out at the
        end have none; these stay as they are, and their logits are empty.
        """
        missing = self.sequences - len(tokens)
        if missing < 0 or len(positions) != len(tokens):
            raise UsageError(
                f"{len(tokens)} sequences of tokens, {len(positions)} positions",
                hint=f"this was compiled for {self.sequences}: --sequences",
            )
        length = max((len(each) for each in tokens), default=0)
        if length == 0:
            raise UsageError("no sequence has a token", hint="give at least one")
        given = np.full((self.sequences, length), NONE)
        for row, own in zip(given, tokens, strict=False):
            row[: len(own)] = own
        logits = self(given, np.array([*positions, *[0] * missing]))
        if self._settings.logits == "all":
            return [rows[: len(own)] for rows, own in zip(logits, tokens, strict=False)]
        return [rows[: min(len(own), 1)] for rows, own in zip(logits, tokens, strict=False)]

    def reorder(self, order: Sequence[int], kept: int | None = None) -> None:
        """Let each sequence go on from where another is: the one of this number in `order`.

        `kept` is how many tokens the sequences have, at most; the others are not copied.
        """
        if len(order) != self.sequences or not all(0 <= i < self.sequences for i in order):
            raise UsageError(
                f"{list(order)} is no order of {self.sequences} sequences",
                hint="give each sequence the number of one",
            )
        changed = [number for number, source in enumerate(order) if number != source]
        sources = [order[number] for number in changed]
        room = max(array.shape[2] for array in self.state.values())
        for state in self.state.values() if changed else ():
            # Tokens are counted one by one, or in blocks.
            each = room // state.shape[2]
            end = state.shape[2] if kept is None else -(-kept // each)
            array = np.asarray(state)
            array[changed, :, :end] = array[sources, :, :end]
            if isinstance(state, HeldState):
                state.assign(array)
