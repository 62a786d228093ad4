"""Models that come with fewbit."""

from __future__ import annotations

from fewbit.models.lenet import lenet_text

__all__ = ["lenet_text"]
