"""Processors: what fits into their registers, and which this machine can stand in for."""

from __future__ import annotations

import pytest

from fewbit.errors import UnsupportedError
from fewbit.kernels import Isa
from fewbit.toolchain.isa import ALIASES, VNNI, family, names
from fewbit.toolchain.llvm import host_features


@pytest.mark.parametrize("name", [*names(), "host"])
def test_a_tile_fits_the_registers(name: str) -> None:
    isa = Isa.of(name)
    for vectors in range(1, isa.tile_vectors + 1):
        sums = isa.tile_rows(vectors) * vectors
        assert sums + vectors + 1 <= isa.registers
    assert isa.lanes * 32 == isa.vector_bits


def test_host_is_the_widest_that_this_machine_runs() -> None:
    runnable = [Isa.of(name) for name in names() if Isa.of(name).runs_on(host_features())]
    assert Isa.host().vector_bits == max(isa.vector_bits for isa in runnable)


def test_bytes_are_multiplied_as_the_processor_can() -> None:
    steps = {name: (Isa.of(name).dot.name, Isa.of(name).step) for name in names()}
    assert steps["x86-64-v4-vnni"] == steps["x86-64-v3-vnni"] == ("vnni", 4)
    assert steps["aarch64-dotprod"] == ("sdot", 4)
    assert steps["x86-64-v3"] == steps["x86-64-v4"] == ("madd", 2)
    assert steps["aarch64"] == steps["riscv64-v"] == ("plain", 1)
    assert (Isa.host().dot == VNNI) == bool({"avx512vnni", "avxvnni"} & host_features())


def test_a_machine_runs_what_it_has_the_features_for() -> None:
    v3 = Isa.of("x86-64-v3")
    assert not v3.runs_on({"avx2"}, "x86_64")
    assert not v3.runs_on(host_features(), "aarch64")
    assert Isa.of("aarch64").runs_on({"neon"}, "arm64")


def test_unknown_processor_names_the_known() -> None:
    with pytest.raises(UnsupportedError) as raised:
        Isa.of("z80")
    assert "riscv64-v" in str(raised.value)


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_other_names_are_understood(alias: str, name: str) -> None:
    assert alias not in names()
    assert Isa.of(alias) is Isa.of(name)
    assert Isa.of(alias.upper()) is Isa.of(name)


def test_the_name_of_an_architecture_is_what_all_of_it_run() -> None:
    for alias in ("arm64", "amd64", "x86_64"):
        isa = Isa.of(alias)
        assert all(isa.needs <= other.needs for other in family(isa.architecture))
