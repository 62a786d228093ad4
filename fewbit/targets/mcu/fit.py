"""What a library takes of a device, and what is said where that is more than the device has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from fewbit.codegen.interface import Interface, Port
from fewbit.errors import UnsupportedError


@dataclass(frozen=True)
class Needs:
    """Bytes, by part."""

    code: int
    weights: int
    arena: int
    stack: int
    inputs: int
    outputs: int

    @property
    def flash(self) -> int:
        return self.code + self.weights

    @property
    def ram(self) -> int:
        """Memory of a run, with inputs and outputs."""
        return self.arena + self.stack + self.inputs + self.outputs

    @property
    def parts(self) -> tuple[tuple[str, tuple[tuple[str, int], ...], int], ...]:
        """What flash and memory consist of."""
        ram = ("arena", "stack", "inputs", "outputs")
        return (
            ("flash", (("code", self.code), ("weights", self.weights)), self.flash),
            ("ram", tuple((name, getattr(self, name)) for name in ram), self.ram),
        )


def needs_of(interface: Interface, code: int, weights: int, arena: int, stack: int) -> Needs:
    sizes = (_port_bytes(interface.inputs), _port_bytes(interface.outputs))
    return Needs(code, weights, arena, stack, *sizes)


def _port_bytes(ports: Sequence[Port]) -> int:
    return sum(port.bytes * prod(size or 1 for size in port.shape) for port in ports)


def refuse_what_does_not_fit(needs: Needs, flash: int | None, ram: int | None, device: str) -> None:
    """Refuse a library that takes more than there is, with a table by part."""
    given = {"flash": flash, "ram": ram}
    missing = {
        name: total - limit
        for name, _, total in needs.parts
        if (limit := given[name]) is not None and total > limit
    }
    if not missing:
        return
    lines: list[str] = []
    for name, parts, total in needs.parts:
        lines += [f"  {part:<10}{size:>12,}" for part, size in parts]
        limit = given[name]
        there = "" if limit is None else f" of {limit:,}"
        mark = f", {missing[name]:,} too many" if name in missing else ""
        lines.append(f"  {name:<10}{total:>12,}{there}{mark}")
    raise UnsupportedError(
        f"the program does not fit: {' and '.join(missing)} of the device with {device} "
        f"{'are' if len(missing) > 1 else 'is'} too small",
        excerpt="\n".join(lines),
        hint=_advice(needs, missing, flash),
    )


def _advice(needs: Needs, missing: dict[str, int], flash: int | None) -> str:
    if "flash" in missing and flash is not None:
        room = flash - needs.code
        share = room / max(needs.weights, 1)
        bits = next((bits for bits in (4, 2, 1) if share * 8 >= bits), None)
        if bits is not None:
            return f"weights of {bits} bits would fit, as w{bits}a8, if they are 8 bits wide now"
        return "no width makes the weights small enough: take a smaller model"
    return "static scales (w8a8-static) keep no floats between layers; smaller inputs need less"
