"""What cost models know of a piece of hardware, as it stands in a file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fewbit.errors import Place, UsageError

FOLDER = Path(__file__).parent


class Memory(BaseModel):
    """A cache, a scratchpad or main memory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    bytes: int = Field(gt=0)
    bytes_per_second: float = Field(gt=0)
    """The bandwidth into what is nearer to the arithmetic."""


class Hardware(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: Literal["cpu", "gpu", "array"]
    clock_hz: float = Field(gt=0)
    cores: int = Field(default=1, gt=0)
    """Cores of a processor, multiprocessors of a GPU."""
    vector_bits: int = Field(default=64, gt=0)
    """The width of a vector register, or of the register of a scalar processor."""
    registers: int = Field(default=32, gt=0)
    """The number of vector registers."""
    multipliers: float = Field(default=1, gt=0)
    """Vectors that begin to be multiplied and added in a cycle."""
    loads: float = Field(default=1, gt=0)
    """Vectors that are loaded in a cycle."""
    latency: float = Field(default=4, ge=0)
    """Cycles from one sum to the next."""
    macs_per_cycle: Mapping[str, float] = Field(default_factory=dict)
    """MACs of a whole array, or core of a GPU, by the widths of its operands: `8x8`."""
    rows: int | None = None
    columns: int | None = None
    """The sides of an array of processing elements."""
    threads: int | None = None
    """The most that a workgroup of a GPU has."""
    measured: bool = False
    """Whether figures were measured on the machine, not taken from its makers."""
    source: str = ""
    """Where figures are from."""
    memories: tuple[Memory, ...] = Field(min_length=1)
    """From the nearest to the largest."""

    @property
    def identity(self) -> str:
        """What results on this hardware are kept under: not its measured speeds, which vary."""
        parts = (self.name, self.kind, self.cores, self.vector_bits, self.registers)
        sizes = [(memory.name, memory.bytes) for memory in self.memories]
        digest = sha256(repr((*parts, sizes)).encode()).hexdigest()[:12]
        return f"{self.name}-{digest}"


def known() -> list[str]:
    """Return the names of the descriptions that come with fewbit."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def find_hardware(name: str) -> Hardware:
    """Return a description by its name, or by the path of a file."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        hint = f"there are {', '.join(known())}; or give a file: my.toml"
        raise UsageError(f"there is no hardware '{name}'", hint=hint)
    return read_hardware(path)


def read_hardware(path: Path) -> Hardware:
    try:
        fields: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return Hardware.model_validate(fields)
    except tomllib.TOMLDecodeError as e:
        raise UsageError(f"the file is not TOML: {e}", place=Place(file=str(path))) from e
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f"'{where}' is wrong: {first['msg']}"
        raise UsageError(what, place=Place(file=str(path))) from e


def to_toml(hardware: Hardware) -> str:
    """Return the text of a file."""
    lines: list[str] = []
    for name, value in hardware.model_dump(exclude={"memories"}, exclude_none=True).items():
        if isinstance(value, dict):
            entries = cast("dict[str, float]", value)
            inner = ", ".join(f'"{k}" = {v}' for k, v in entries.items())
            lines += [f"{name} = {{ {inner} }}"] if entries else []
        else:
            lines.append(f"{name} = {_value(value)}")
    for memory in hardware.memories:
        lines += ["", "[[memories]]"]
        lines += [f"{name} = {_value(value)}" for name, value in memory.model_dump().items()]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value:.6g}" if isinstance(value, float) and value < 1e6 else f"{value}"
