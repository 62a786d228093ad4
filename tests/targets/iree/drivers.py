"""Devices of IREE that tests run on where they are there."""

from __future__ import annotations

import pytest

from fewbit.runtime.iree import list_devices

needs_vulkan = pytest.mark.skipif(
    not list_devices("vulkan"),
    reason="IREE finds no Vulkan device; Debian's mesa-vulkan-drivers has one without a GPU",
)
