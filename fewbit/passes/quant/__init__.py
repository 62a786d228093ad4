"""Passes on few-bit integers: their quantization, their packing, and flows without floats."""
