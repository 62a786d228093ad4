"""Matmuls of few-bit integers: tiles in assembly, and what packs and gathers around them."""
