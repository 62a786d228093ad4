"""Folders for build systems: built with GCC and CMake where they are, and run in QEMU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.targets.mcu.board import board_of
from fewbit.targets.mcu.core import CORES
from tests.targets.mcu.emulated import check, compile_for, needs_emulator
from tests.targets.mcu.test_target import SMALL

gcc = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None,
    reason="there is no GCC for Arm (Debian: gcc-arm-none-eabi)",
)
cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake")


def made_up() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The inputs of all examples, as their C computes them."""
    i = np.arange(36)
    whole = (i * 37 % 201).astype(np.float32)
    return (whole / np.float32(100) - np.float32(1)).reshape(1, 4, 3, 3)


def package(kind: str, core: str, folder: Path) -> Path:
    compile_for(Program.parse(SMALL), core, folder / "net", package=kind)
    for path in (folder / "net").rglob("*"):
        if path.is_file() and path.suffix not in (".a", ".json"):
            assert not re.search(r"@\w+@", path.read_text()), f"{path} has a word left"
    return folder / "net"


def run(*command: object, folder: Path | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@cmake
@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
def test_cmake_project_is_built_and_runs(core: str, tmp_path: Path) -> None:
    needs_emulator(core)
    compiler = "arm-none-eabi-gcc" if CORES[core].is_arm else "riscv64-unknown-elf-gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} (Debian: gcc-{compiler.removesuffix('-gcc')})")
    source, build = package("cmake", core, tmp_path), tmp_path / "build"
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={source}/toolchain.cmake")
    run("cmake", "--build", build)
    board = board_of(CORES[core])
    serial = "none" if CORES[core].is_arm else "stdio"
    arguments = [*board.arguments, "-display", "none", "-monitor", "none", "-serial", serial]
    printed = run(board.emulator, *arguments, "-kernel", build / "example.elf")
    found = re.search(r"output0 ([0-9a-f]+)", printed)
    assert found is not None, printed
    (wanted,) = Program.parse(SMALL).run(made_up())
    assert bytes.fromhex(found[1]) == np.asarray(wanted).tobytes()


@gcc
@cmake
@pytest.mark.slow
def test_cmake_folder_in_a_project(tmp_path: Path) -> None:
    package("cmake", "cortex-m4", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(mine C)\nadd_subdirectory(net)\n"
        "add_library(mine STATIC mine.c)\ntarget_link_libraries(mine PRIVATE net)\n"
    )
    (tmp_path / "mine.c").write_text(
        '#include "net.h"\n'
        "void mine(const float *x, float *y, void *arena) { net_run(x, y, arena); }\n"
    )
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={tmp_path}/net/toolchain.cmake"
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", toolchain)
    run("cmake", "--build", tmp_path / "build")
    assert (tmp_path / "build" / "libmine.a").exists()


@pytest.mark.parametrize("kind", ["cmake", "arduino", "zephyr"])
def test_folder_is_still_an_artifact(kind: str, tmp_path: Path) -> None:
    needs_emulator("cortex-m4")
    folder = open_folder(package(kind, "cortex-m4", tmp_path))
    assert {"libnet.a", "net.h"} < set(folder.manifest.files)
    check(Program.parse(SMALL), "cortex-m4", tmp_path / "plain")


@pytest.mark.parametrize("core", ["rv32imc", "rv32imafc"])
def test_cmake_project_of_risc_v(core: str, tmp_path: Path) -> None:
    folder = package("cmake", core, tmp_path)
    flags = (folder / "toolchain.cmake").read_text()
    assert f"-march={core} -mabi={'ilp32f' if 'f' in core else 'ilp32'}" in flags
    assert "csrs mstatus" in (folder / "example" / "start.c").read_text()
    assert not (folder / "example" / "start_arm.c").exists()


def properties(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if line)


def test_arduino_library(tmp_path: Path) -> None:
    """It has what Arduino's specification asks of libraries that are compiled beforehand."""
    folder = package("arduino", "cortex-m4", tmp_path)
    found = properties(folder / "library.properties")
    assert set(found) >= {
        *("name", "version", "author", "maintainer", "sentence", "paragraph"),
        *("category", "url", "architectures", "includes", "precompiled", "ldflags"),
    }
    assert (found["precompiled"], found["ldflags"]) == ("full", "-lnet")
    assert (folder / "src" / "net.h").read_bytes() == (folder / "net.h").read_bytes()
    library = (folder / "src" / "cortex-m4" / "libnet.a").read_bytes()
    assert library == (folder / "libnet.a").read_bytes()


ARDUINO = """
#include <stddef.h>
#define HEX 16
struct Serial_ {
  void begin(long) {}
  template <class T> void print(T) {}
  template <class T> void print(T, int) {}
  template <class T> void println(T) {}
  void println() {}
};
extern Serial_ Serial;
unsigned long micros();
void delay(unsigned long);
"""


@gcc
@pytest.mark.parametrize("abi", ["hard", "softfp"])
def test_arduino_sketch_links(abi: str, tmp_path: Path) -> None:
    """A sketch is C++; floats go as the board's core says, in registers or not."""
    folder = package("arduino", "cortex-m4", tmp_path)
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    main = tmp_path / "main.cpp"
    sketch = (folder / "examples" / "Run" / "Run.ino").read_text()
    main.write_text(
        f'#include "Arduino.h"\n{sketch}\nSerial_ Serial;\n'
        "unsigned long micros() { return 0; }\nvoid delay(unsigned long) {}\n"
        'extern "C" void _start() { setup(); loop(); }\n'
    )
    library = folder / "src" / "cortex-m4"
    flags = f"-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi={abi}".split()
    run(
        *(
            "arm-none-eabi-g++",
            *flags,
            "-Wall",
            "-Wextra",
            "-Werror",
            "-ffreestanding",
            "-fno-exceptions",
        ),
        *(f"-I{folder / 'src'}", main, f"-L{library}", "-lnet", "-nostdlib", "-lgcc"),
        *(
            "-Wl,--fatal-warnings",
            "-Wl,-z,noexecstack",
            "-Wl,--no-warn-rwx-segments",
            "-o",
            tmp_path / "sketch.elf",
        ),
    )


def test_zephyr_module(tmp_path: Path) -> None:
    """It says where its CMake and Kconfig are, and these say what Zephyr's build asks of a module."""
    yaml = pytest.importorskip("yaml")
    folder = package("zephyr", "cortex-m4", tmp_path)
    module = yaml.safe_load((folder / "zephyr" / "module.yml").read_text())
    assert (module["name"], module["samples"]) == ("net", ["sample"])
    cmake = (folder / module["build"]["cmake"] / "CMakeLists.txt").read_text()
    assert "zephyr_library_import(net ${CMAKE_CURRENT_LIST_DIR}/libnet.a)" in cmake
    kconfig = (folder / module["build"]["kconfig"]).read_text()
    assert kconfig.startswith("config FEWBIT_NET\n\tbool ")
    assert "depends on FPU\n" in kconfig
    assert "CONFIG_FEWBIT_NET=y" in (folder / "sample" / "prj.conf").read_text()
    sample = yaml.safe_load((folder / "sample" / "sample.yaml").read_text())
    assert sample["tests"]["sample.net"]["harness_config"]["regex"] == ["net ran"]


KERNEL = """
#include <stdint.h>
#define __aligned(n) __attribute__((aligned(n)))
int printk(const char *format, ...);
uint32_t k_cycle_get_32(void);
"""


@gcc
def test_zephyr_sample_compiles(tmp_path: Path) -> None:
    folder = package("zephyr", "cortex-m33", tmp_path)
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / "kernel.h").write_text(KERNEL)
    flags = (
        "-mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16 -ffreestanding -Wall -Wextra"
    )
    run(
        "arm-none-eabi-gcc", *flags.split(), f"-I{tmp_path}", f"-I{folder}", "-c",
        folder / "sample" / "src" / "main.c", "-o", tmp_path / "main.o",
    )  # fmt: skip
    assert os.path.getsize(tmp_path / "main.o") > 0
