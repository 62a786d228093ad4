"""The interface between IREE's runtime and its libraries for CPUs, as far as a call needs it."""

from __future__ import annotations

import ctypes

VERSION = 6
"""The version of the interface: 0.6."""


class Environment(ctypes.Structure):
    """What a library sees of the host; processor flags stay zero, as our code asks for none."""

    _fields_ = [
        ("constants", ctypes.c_void_p),
        ("import_thunk", ctypes.c_void_p),
        ("import_functions", ctypes.c_void_p),
        ("import_contexts", ctypes.c_void_p),
        ("processor", ctypes.c_uint64 * 8),
    ]


class State(ctypes.Structure):
    _fields_ = [
        ("size_x", ctypes.c_uint32),
        ("size_y", ctypes.c_uint32),
        ("size_z", ctypes.c_uint16),
        ("constant_count", ctypes.c_uint16),
        ("count_x", ctypes.c_uint32),
        ("count_y", ctypes.c_uint32),
        ("count_z", ctypes.c_uint16),
        ("max_concurrency", ctypes.c_uint8),
        ("binding_count", ctypes.c_uint8),
        ("constants", ctypes.c_void_p),
        ("binding_pointers", ctypes.c_void_p),
        ("binding_lengths", ctypes.c_void_p),
    ]


class Header(ctypes.Structure):
    """The header of a library, as far as its functions."""

    _fields_ = [
        ("header", ctypes.c_void_p),
        ("import_count", ctypes.c_uint32),
        ("import_symbols", ctypes.c_void_p),
        ("export_count", ctypes.c_uint32),
        ("export_pointers", ctypes.c_void_p),
    ]
