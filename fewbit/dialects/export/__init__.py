"""Definitions of our dialects for other tools, generated from the xDSL definitions."""
