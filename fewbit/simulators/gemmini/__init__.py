"""A model of Gemmini: its commands, memories and arithmetic."""
