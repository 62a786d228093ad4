"""Descriptions of processors and accelerators: TOML files, read into one record.

Files of this folder are named after the hardware; `fewbit doctor --hardware` writes one for the
processor that it runs on, with what it measured.
"""

from fewbit.cost.hardware.description import Hardware, Memory, find_hardware, known, read_hardware

__all__ = ["Hardware", "Memory", "find_hardware", "known", "read_hardware"]
