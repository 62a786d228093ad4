from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.riscv import elf
from fewbit.simulators.gemmini.model import Model
from fewbit.simulators.riscv.state import SimulationError
from fewbit.targets.bare_metal.program import read_report
from fewbit.targets.bare_metal.simulate import boot
from tests.targets.bare_metal.programs import LAYER, compile_elf, floats, qemu


@pytest.mark.parametrize("native", [True, False])
def test_gemmini_boots_with_its_model(native: bool, tmp_path: Path) -> None:
    path = compile_elf(Program.parse(LAYER), "gemmini", tmp_path)
    model = Model()
    done = boot(path.read_bytes(), model, native=native)
    report = read_report(done.printed)
    assert done.status == 0, done.printed
    assert report["equal"] == report["of"] == 54
    assert model.events.executed["flush"] == 1
    assert model.events.macs == 9 * 6 * 4


def test_gemmini_is_switched_on(tmp_path: Path) -> None:
    path = compile_elf(Program.parse(LAYER), "gemmini", tmp_path)
    data = path.read_bytes()
    start = elf.read(data).segments[0].data[:64]
    words = np.frombuffer(start, "<u4").copy()
    # lui t0, 0x1e; csrs mstatus, t0: FS and XS. Only FS is left.
    (place,) = np.flatnonzero(words == 0x0001E2B7)
    words[place] = 0x000062B7
    with pytest.raises(SimulationError, match="coprocessors are switched off"):
        boot(data.replace(start, words.tobytes()), Model())


def test_the_host_of_gemmini_boots_on_qemu(tmp_path: Path) -> None:
    done = qemu("spike", compile_elf(floats(), "gemmini", tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_report(done.stdout)["agreeing"] == 5


def test_a_workload_is_copied_to_chipyard(tmp_path: Path) -> None:
    path = compile_elf(Program.parse(LAYER), "gemmini:8x8", tmp_path)
    folder, chipyard = path.parent, tmp_path / "chipyard"
    script = ["sh", str(folder / "chipyard/copy.sh"), str(chipyard)]
    refused = subprocess.run(script, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "there is no" in refused.stderr
    workloads = chipyard / "software/firemarshal/example-workloads"
    workloads.mkdir(parents=True)
    subprocess.run(script, check=True)
    workload = json.loads((workloads / "net.json").read_text())
    assert (workloads / workload["name"] / workload["bin"]).read_bytes() == path.read_bytes()
    page = (folder / "chipyard/README.md").read_text()
    assert "8 x 8 int8 multipliers" in page
    assert "128 KB of scratchpad and 32 KB" in page
    assert "RV64IMFD" in page
    assert "chipyard/copy.sh" in open_folder(folder).manifest.files


def test_the_page_for_vexiiriscv_says_what_the_core_must_have(tmp_path: Path) -> None:
    folder = compile_elf(Program.parse(LAYER), "vexii:rv32imf", tmp_path).parent
    page = (folder / "vexiiriscv/README.md").read_text()
    assert "RV32IMF " in page
    assert "--with-rvf" in page
    assert "--with-rvd" not in page
    assert "dot products, custom-0" in page


def test_other_boards_have_a_page_too(tmp_path: Path) -> None:
    folder = compile_elf(Program.parse(LAYER), "vexii:rv32im", tmp_path, board="htif").parent
    assert "RV32IM " in (folder / "README.md").read_text()
