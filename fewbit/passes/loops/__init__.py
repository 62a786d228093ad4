"""Passes on loop nests: outlined, tiled, shared by threads, counted."""
