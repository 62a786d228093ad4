"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# Machines that run tests are busy: how long an example took says nothing about the code.
settings.register_profile("fewbit", deadline=None)
settings.load_profile("fewbit")
