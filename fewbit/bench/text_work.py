"""What is measured of a language model: a step behind a text, or a prompt read whole.

Every tool keeps its own caches, so each reads the same random tokens first. A step may be made
again and again: it writes what it wrote.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

SEED = 0


class TextWork(BaseModel):
    """A call whose time is measured."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["step", "prompt"]
    length: int
    """The tokens before the step, or those of the prompt."""
    vocabulary: int
    context: int
    """How many tokens caches have place for."""

    @property
    def name(self) -> str:
        return f"step behind {self.length}" if self.kind == "step" else f"prompt of {self.length}"

    @property
    def read_before(self) -> list[int]:
        """The tokens that are read before anything is measured."""
        return self._tokens[: self.length] if self.kind == "step" else []

    @property
    def measured(self) -> list[int]:
        """The tokens of the call that is measured, behind the others."""
        return self._tokens[self.length :] if self.kind == "step" else self._tokens[: self.length]

    @property
    def _tokens(self) -> list[int]:
        drawn = np.random.default_rng(SEED).integers(self.vocabulary, size=self.length + 1)
        return [*map(int, drawn)]
