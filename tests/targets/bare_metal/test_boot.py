from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fewbit.errors import UnsupportedError, UsageError
from fewbit.program.program import Program
from fewbit.riscv import elf
from fewbit.simulators.riscv.machine import Machine
from fewbit.simulators.riscv.state import SimulationError
from fewbit.targets.bare_metal.program import bounds, in_order, read_report
from tests.targets.bare_metal.programs import (
    LAYER,
    UART,
    boot_on,
    change_data,
    compile_elf,
    floats,
    qemu,
)

TARGETS = ("vexii", "vexii:rv32imf", "vexii:rv32im", "vexii:rv64")


@pytest.mark.parametrize("board", ["htif", "vexii", "virt"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_layer_boots_on_the_simulator(target: str, board: str, tmp_path: Path) -> None:
    path = compile_elf(Program.parse(LAYER), target, tmp_path, board=board)
    program = path.read_bytes()
    executable = elf.read(program)
    assert executable.entry == min(s.address for s in executable.segments) == 0x80000000
    for native in (True, False):
        done = boot_on(board, program, native)
        report = read_report(done.printed)
        assert done.status == 0
        assert (report["equal"], report["agreeing"], report["of"]) == (54, 54, 54)
        layers = [count for name, count in report.items() if name.startswith("layer ")]
        assert 0 < report["cycles"] - sum(layers) < 200
        assert done.execution.histogram["dot"] > 0


@pytest.mark.parametrize("target", ["vexii:rv32imf", "vexii:rv32im"])
def test_extensions_that_a_core_lacks_are_not_used(target: str, tmp_path: Path) -> None:
    done = boot_on("vexii", compile_elf(Program.parse(LAYER), target, tmp_path).read_bytes())
    used = done.execution.histogram.mnemonics
    is_double = [name for name in used if name.endswith(".d") or name in ("fld", "fsd")]
    assert not is_double
    assert any(name.endswith(".s") for name in used) == (target == "vexii:rv32imf")


def test_another_base(tmp_path: Path) -> None:
    path = compile_elf(Program.parse(LAYER), "vexii", tmp_path, base="0x40000000")
    assert elf.read(path.read_bytes()).entry == 0x40000000
    assert boot_on("vexii", path.read_bytes()).status == 0


def test_other_results_are_a_status(tmp_path: Path) -> None:
    path = compile_elf(Program.parse(LAYER), "vexii", tmp_path)
    changed = change_data(path, "net_weights")
    done = boot_on("vexii", changed)
    report = read_report(done.printed)
    assert done.status == 1
    assert report["agreeing"] < report["of"] == 54


def test_what_is_switched_off_is_illegal(tmp_path: Path) -> None:
    path = compile_elf(Program.parse(LAYER), "vexii", tmp_path)
    machine = Machine(32, 1 << 24, base=0x80000000)
    executable = machine.load(path.read_bytes())
    start = executable.symbols["_start"].address
    words = np.frombuffer(machine.read(start, 64), "<u4").copy()
    (place,) = np.flatnonzero(words == 0x3002A073)  # csrs mstatus, t0
    words[place] = 0x13  # nop
    data = path.read_bytes().replace(machine.read(start, 64), words.tobytes())
    with pytest.raises(SimulationError, match="floats are switched off"):
        boot_on("vexii", data)


@pytest.mark.parametrize(("board", "machine"), [("virt", "virt"), ("htif", "spike")])
def test_floats_boot_on_qemu(board: str, machine: str, tmp_path: Path) -> None:
    path = compile_elf(floats(), "vexii:rv64", tmp_path, board=board)
    done = qemu(machine, path)
    report = read_report(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["agreeing"] == report["of"] == 5
    simulated = boot_on(board, path.read_bytes())
    assert simulated.status == 0
    assert read_report(simulated.printed)["equal"] == report["equal"]


@pytest.mark.parametrize("target", ["vexii", "vexii:rv32imf", "vexii:rv32im"])
def test_floats_boot_on_qemu_of_32_bits(target: str, tmp_path: Path) -> None:
    path = compile_elf(floats(), target, tmp_path, board="virt")
    done = qemu("virt", path, 32)
    report = read_report(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["agreeing"] == report["of"] == 5


def test_a_trap_is_reported(tmp_path: Path) -> None:
    path = compile_elf(Program.parse(LAYER), "vexii:rv64", tmp_path, board="virt")
    done = qemu("virt", path)
    assert done.returncode == 2
    # QEMU has no dot products: an illegal instruction, custom-0.
    lines = dict(line.split() for line in done.stdout.splitlines())
    assert int(lines["trap"], 16) == 2
    assert 0x80000000 <= int(lines["at"], 16) < 0x80010000
    assert int(lines["with"], 16) & 0x7F == 0x0B


def test_other_results_end_qemu_with_a_status(tmp_path: Path) -> None:
    path = compile_elf(floats(), "vexii:rv64", tmp_path, board="htif")
    path.chmod(0o644)
    path.write_bytes(change_data(path, "net_weights"))
    done = qemu("spike", path)
    assert done.returncode == 1
    assert read_report(done.stdout)["agreeing"] < 5


def test_a_uart_of_another_kind(tmp_path: Path) -> None:
    path = compile_elf(Program.parse(LAYER), "vexii", tmp_path, uart=f"sifive@{UART:#x}")
    done = boot_on("vexii", path.read_bytes())
    assert read_report(done.printed)["agreeing"] == 54


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"board": "hifive"}, "no board 'hifive'"),
        ({"base": "0x80000100"}, "cannot begin"),
        ({"base": "high"}, "no address"),
        ({"uart": "0x10000000"}, "no UART"),
    ],
)
def test_options_that_are_refused(options: dict[str, str], match: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=match):
        compile_elf(Program.parse(LAYER), "vexii", tmp_path, **options)


def test_sizes_that_only_a_run_knows_are_refused(tmp_path: Path) -> None:
    program = Program.parse(LAYER.replace("x3x3xf32", "x?x?xf32"))
    with pytest.raises(UnsupportedError, match="only a run knows dimension 2"):
        compile_elf(program, "vexii", tmp_path)


def test_an_open_batch_is_one_sample(tmp_path: Path) -> None:
    program = Program.parse(LAYER.replace("tensor<1x", "tensor<?x"))
    assert boot_on("vexii", compile_elf(program, "vexii", tmp_path).read_bytes()).status == 0


def test_bounds_of_floats_are_in_order() -> None:
    values = np.array([-3.0, -1e-40, -0.0, 0.0, 1e-40, 0.5, 3.0], np.float32)
    ordered = in_order(values)
    assert (np.diff(ordered.astype(np.int64)) > 0).all()
    low, high = bounds(values)
    assert (low < ordered).all()
    assert (ordered < high).all()
    near, far = values[5] + np.float32(2e-5), values[5] + np.float32(4e-5)
    assert in_order(np.array([near]))[0] <= high[5] < in_order(np.array([far]))[0]
    integers = np.array([-5, 0, 7], np.int32)
    assert all((each == integers).all() for each in bounds(integers))
