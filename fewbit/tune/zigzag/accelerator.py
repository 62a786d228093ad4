"""A processor in ZigZag's words: the register tile as an array, and the caches above it.

Each element of the array has one sum; the caches hold all operands. Energies are not known, and
stand in the order of the caches' sizes: the search is for the minimum time.
"""

from __future__ import annotations

from typing import Any

from fewbit.cost.hardware import Hardware, Memory

DIMENSIONS = ("D1", "D2")


def accelerator_of(hardware: Hardware, rows: int, columns: int, bits: int) -> dict[str, Any]:
    """Return the hardware, with an array of so many rows and columns."""
    memories: dict[str, Any] = {"sums": _sums(bits)}
    for place, memory in enumerate(hardware.memories):
        memories[memory.name] = _cache(memory, hardware, place)
    return {
        "name": hardware.name,
        "operational_array": {
            "dimensions": list(DIMENSIONS),
            "sizes": [columns, rows],
            "input_precision": [bits, bits],
            "unit_energy": 0.04,
            "unit_area": 1.0,
        },
        "memories": memories,
    }


def _sums(bits: int) -> dict[str, Any]:
    ports = (("r_port_1", "read", "tl"), ("w_port_1", "write", "fh"))
    more = (("r_port_2", "read", "th"), ("w_port_2", "write", "fl"))
    return {
        "size": bits,
        "r_cost": 0.02,
        "w_cost": 0.02,
        "area": 0.0,
        "latency": 1,
        "operands": ["O"],
        "ports": [_port(name, kind, bits, bits, [f"O, {way}"]) for name, kind, way in ports + more],
        "served_dimensions": [],
    }


def _cache(memory: Memory, hardware: Hardware, place: int) -> dict[str, Any]:
    bandwidth = max(8, int(8 * memory.bytes_per_second / hardware.clock_hz))
    # Inputs are read by what is nearer; sums go both ways.
    ways = ["I1, tl", "I2, tl", "O, tl", "O, fl"]
    last = place == len(hardware.memories) - 1
    ways += [] if last else ["I1, fh", "I2, fh", "O, fh", "O, th"]
    cost = 10.0 * 4.0**place
    return {
        "size": memory.bytes * 8,
        "r_cost": cost,
        "w_cost": cost,
        "area": 0.0,
        "latency": 1,
        "operands": ["I1", "I2", "O"],
        "ports": [_port("rw_port_1", "read_write", 8, bandwidth, ways)],
        "served_dimensions": list(DIMENSIONS),
    }


def _port(name: str, kind: str, least: int, most: int, ways: list[str]) -> dict[str, Any]:
    port = {"name": name, "type": kind, "bandwidth_min": least, "bandwidth_max": most}
    return {**port, "allocation": ways}
