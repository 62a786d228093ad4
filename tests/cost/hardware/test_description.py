"""Descriptions of hardware: those that come with fewbit, files that are wrong, and round trips."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewbit.cost.hardware import find_hardware, known, read_hardware
from fewbit.cost.hardware.description import to_toml
from fewbit.cost.hardware.host import host, measure_host, measured_footprints, write_host
from fewbit.errors import UsageError


def test_all_of_ours_can_be_read() -> None:
    assert {"h200", "vexii", "gemmini", "bitfusion"} <= set(known())
    for name in known():
        hardware = find_hardware(name)
        assert hardware.name == name
        assert hardware.source
        sizes = [memory.bytes for memory in hardware.memories]
        assert sizes == sorted(sizes)


@pytest.mark.parametrize("name", ["h200", "gemmini"])
def test_text_says_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.toml"
    path.write_text(to_toml(find_hardware(name)))
    assert read_hardware(path) == find_hardware(name)
    assert find_hardware(str(path)).identity == find_hardware(name).identity


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no hardware 'h100'"):
        find_hardware("h100")
    path = tmp_path / "wrong.toml"
    path.write_text(to_toml(find_hardware("vexii")).replace("clock_hz", "clock"))
    with pytest.raises(UsageError, match="clock"):
        read_hardware(path)
    path.write_text("name = ")
    with pytest.raises(UsageError, match="not TOML"):
        read_hardware(path)


@pytest.mark.parametrize(
    ("last", "memory"),
    [(8 << 20, 16 << 30), (480 << 20, 24 << 30), (480 << 20, 1 << 30), (2 << 20, 256 << 20)],
)
def test_main_memory_is_read_beyond_the_last_cache_where_there_is_room(
    last: int, memory: int
) -> None:
    sizes = {"L1d": 48 << 10, "L2": 512 << 10, "L3": last, "memory": memory}
    read = measured_footprints(sizes)
    assert list(read.values()) == sorted(read.values())
    assert read["memory"] <= memory // 8
    assert read["memory"] >= min(2 * last, memory // 8)
    assert read["L3"] <= last // 3


def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path))
    host.cache_clear()
    assumed = host()
    assert not assumed.measured
    found = measure_host()
    assert found.measured
    assert found.clock_hz > 1e8
    rates = [memory.bytes_per_second for memory in found.memories]
    assert rates == sorted(rates, reverse=True)
    path = write_host(found)
    assert path.is_relative_to(tmp_path)
    assert host().measured
    assert host().identity == assumed.identity
    host.cache_clear()
