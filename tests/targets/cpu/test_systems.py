"""Libraries for Windows, macOS and Android: what is in them, and what can be run of them here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.cli.main import run
from fewbit.codegen.support import support_object
from fewbit.errors import MissingToolError, UnsupportedError, UsageError
from fewbit.models import lenet_text
from fewbit.passes.llvm import translate_to_llvm_ir
from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.runtime import Artifact, emulated
from fewbit.runtime.emulated import EMULATORS, EmulatedLibrary, Emulator, Wine, foreign_isa
from fewbit.targets.registry import find_target
from fewbit.toolchain import objects
from fewbit.toolchain.elf import dynamic_symbols, needed_by, sections, soname_of
from fewbit.toolchain.isa import Isa, elsewhere, names
from fewbit.toolchain.link import link_library
from fewbit.toolchain.link_windows import import_library
from fewbit.toolchain.lld import lld, write_object
from fewbit.toolchain.system import MACOS, SYSTEMS, WINDOWS
from tests.targets.cpu.images import TLS, read_dll, read_dylib
from tests.targets.cpu.programs import CLASSES, ROWS, WIDE, Array, inputs, layers

CLIENTS = Path(__file__).parent / "clients"
FUNCTIONS = {"net_arena_bytes", "net_shapes", "net_run", "net_signature"}
FLOATS = """
func.func @main(%x: tensor<?x40xf32>) -> (tensor<?x40xf32>, tensor<?x40xf16>, tensor<?x40xf32>) {
  %a = mico.softmax(%x) {dim = 1} : tensor<?x40xf32> -> tensor<?x40xf32>
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x40xf32>
  %e = tensor.empty(%n) : tensor<?x40xf16>
  %f = tensor.empty(%n) : tensor<?x40xf32>
  %h = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x40xf32>) outs(%e : tensor<?x40xf16>) {
  ^bb0(%in: f32, %out: f16):
    %0 = arith.truncf %in : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<?x40xf16>
  %t = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<?x40xf16>) outs(%f : tensor<?x40xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    %1 = math.atan %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x40xf32>
  func.return %a, %h, %t : tensor<?x40xf32>, tensor<?x40xf16>, tensor<?x40xf32>
}
"""
"""Functions of a C library, conversions of f16, and sizes that only a run knows."""

wine = pytest.mark.skipif(
    Wine().path is None, reason="there is no wine (Debian: wine64, without what it recommends)"
)
zig = pytest.mark.skipif(find_spec("ziglang") is None, reason="there is no C compiler of Zig")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("systems")


def compiled(home: Path, processor: str, kind: str = "static") -> Artifact:
    folder = home / f"{processor}-{kind}"
    if folder.exists():
        return fewbit.load(folder)
    program = layers(dynamic=kind == "dynamic", bits=8)
    return fewbit.compile(program, f"cpu:{processor}", folder, name="net")


def called(artifact: Artifact) -> EmulatedLibrary:
    processor = foreign_isa(artifact.manifest)
    assert processor is not None
    return EmulatedLibrary(open_folder(artifact.folder), processor)


def test_names() -> None:
    assert Isa.of("x64-windows") == Isa.of("x86-64-windows") == Isa.of("x86-64-v2-windows")
    assert Isa.of("arm64-macos").cpu == "apple-m1"
    assert Isa.of("aarch64-dotprod-android").dot == Isa.of("aarch64-dotprod").dot
    assert Isa.of("x86-64-v4-popcnt-windows").needs == Isa.of("x86-64-v4-popcnt").needs
    assert [Isa.of(name).system.name for name in elsewhere()] == ["windows", "macos", "macos", "android"]  # fmt: skip
    assert {Isa.of(name).system.name for name in names()} == {"linux"}
    for wrong in ("riscv64-windows", "aarch64-windows", "x86-64-android", "aarch64-dotprod-macos"):
        with pytest.raises(UsageError, match="no target"):
            fewbit.compile(layers(), f"cpu:{wrong}")


@pytest.mark.parametrize("processor", elsewhere())
def test_code_is_not_for_this_machine(processor: str) -> None:
    isa = Isa.of(processor)
    obstacle = find_target("cpu").find_obstacle(f"cpu:{processor}")
    assert obstacle == f"it does not load libraries for {isa.system.title}"


def test_dll(home: Path) -> None:
    artifact = compiled(home, "x86-64-windows")
    assert artifact.manifest.target == "cpu:x86-64-v2-windows"
    assert set(artifact.manifest.files) == {"net.dll", "net.lib", "net.h"}
    dll = read_dll((artifact.folder / "net.dll").read_bytes())
    assert (dll.machine, dll.is_dll, dll.entry) == (0x8664, True, 0)
    assert dll.characteristics & 0x160 == 0x160, "any address, and no code in data"
    assert set(dll.exports) == FUNCTIONS
    assert dll.directories[TLS] == 0
    for library, functions in dll.imports.items():
        assert set(functions) <= WINDOWS.libraries[library]
    text = (artifact.folder / "net.h").read_text()
    signature = dll.bytes_of["net_signature"].split(b"\0")[0].decode()
    assert f'#define NET_SIGNATURE "{signature}"' in text
    assert "extern __declspec(dllimport) const char net_signature" in text
    assert "the caller's thread computes alone" not in text
    alone = (compiled(home, "aarch64-macos").folder / "net.h").read_text()
    assert "On macOS, the caller's thread computes alone." in alone
    imports = (artifact.folder / "net.lib").read_bytes()
    assert imports.startswith(b"!<arch>\n")
    for name in FUNCTIONS:
        assert f"__imp_{name}\0".encode() in imports


def test_same_inputs_give_the_same_dll(home: Path, tmp_path: Path) -> None:
    first = compiled(home, "x86-64-windows")
    again = fewbit.compile(layers(bits=8), "cpu:x86-64-windows", tmp_path / "again", name="net")
    for name in first.manifest.files:
        assert (first.folder / name).read_bytes() == (again.folder / name).read_bytes()


@pytest.mark.parametrize(("processor", "cpu"), [("aarch64-macos", 0x100000C), ("x86-64-macos", 0x1000007)])  # fmt: skip
def test_dylib(home: Path, processor: str, cpu: int) -> None:
    artifact = compiled(home, processor)
    assert set(artifact.manifest.files) == {"libnet.dylib", "net.h"}
    data = (artifact.folder / "libnet.dylib").read_bytes()
    dylib = read_dylib(data)
    assert artifact.manifest.options["threads"] == "the caller's"
    assert (dylib.cpu, dylib.kind, dylib.own_name) == (cpu, 6, "@rpath/libnet.dylib")
    assert dylib.libraries == ("/usr/lib/libSystem.B.dylib",)
    assert (dylib.platform, dylib.oldest) == (1, (11, 0))
    assert set(dylib.exports) == {f"_{name}" for name in FUNCTIONS}
    taken = {name.removeprefix("_") for name in dylib.imports} - {"dyld_stub_binder"}
    assert taken <= MACOS.libraries["/usr/lib/libSystem.B.dylib"]
    assert dylib.signature_flags & 0x2, "signed ad hoc"


def test_android(home: Path) -> None:
    artifact = compiled(home, "aarch64-android")
    assert set(artifact.manifest.files) == {"libnet.so", "libnet.a", "net.h"}
    data = (artifact.folder / "libnet.so").read_bytes()
    assert soname_of(data) == "libnet.so"
    assert set(needed_by(data)) <= {"libc.so", "libm.so"}
    assert set(dynamic_symbols(data)) == FUNCTIONS
    kinds = {each.name for each in sections(data)}
    assert {".gnu.hash"} <= kinds
    assert not {".gnu.version_r", ".tdata", ".tbss"} & kinds
    assert all(align % 16384 == 0 for align in load_alignments(data)), "pages of 16 KB"


def load_alignments(elf: bytes) -> list[int]:
    start, size, count = (int.from_bytes(elf[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))  # fmt: skip
    headers = [elf[start + i * size : start + (i + 1) * size] for i in range(count)]
    return [int.from_bytes(h[48:56], "little") for h in headers if h[:4] == b"\1\0\0\0"]


@pytest.mark.parametrize("processor", elsewhere())
def test_in_this_process_it_is_refused(home: Path, processor: str) -> None:
    artifact = compiled(home, processor)
    title = Isa.of(processor).system.title
    with pytest.raises(UnsupportedError, match=f"for {title}, and this machine does not load it"):
        artifact(*inputs())


@pytest.mark.parametrize("processor", ["aarch64-macos", "x86-64-macos", "aarch64-android"])
def test_what_nothing_runs_is_said(home: Path, processor: str) -> None:
    artifact = compiled(home, processor)
    title = Isa.of(processor).system.title
    with pytest.raises(UnsupportedError, match=f"code for {title}, which nothing runs"):
        run(["run", str(artifact.folder), "--random"])


def test_without_wine_it_says_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(program: str) -> None:
        return None

    artifact = compiled(home, "x86-64-windows")
    monkeypatch.setattr(shutil, "which", nothing)
    with pytest.raises(MissingToolError, match="in wine") as caught:
        run(["run", str(artifact.folder), "--random"])
    assert "wine64" in str(caught.value.hint)


def test_blas_of_other_systems_is_refused() -> None:
    isa = Isa.of("aarch64-macos")
    with pytest.raises(UnsupportedError, match="call no libraries of others"):
        link_library([], "net", isa, (), {"cblas": "libx.dylib"})


def test_variants_of_one_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="one kind of code"):
        fewbit.compile(layers(), "cpu:aarch64-macos", cpu_variants="all")
    with pytest.raises(UsageError, match="for Windows, and the target for macOS"):
        fewbit.compile(layers(), "cpu:x86-64-macos", cpu_variants="x86-64-v3-windows")


@wine
@pytest.mark.slow
@pytest.mark.parametrize("processor", ["x86-64-windows", "x86-64-v3-windows"])
def test_windows_same_numbers(home: Path, processor: str) -> None:
    library = called(compiled(home, processor, "dynamic"))
    program = layers(dynamic=True, bits=8)
    for rows, threads in ((1, 1), (40, 3)):
        given = inputs(rows)
        for got, wanted in zip(library(*given, threads=threads), program.run(*given), strict=True):
            assert np.array_equal(got, wanted)


@wine
@pytest.mark.slow
def test_windows_floats(tmp_path: Path) -> None:
    program = Program.parse("#same = affine_map<(i, j) -> (i, j)>\n" + FLOATS)
    library = called(fewbit.compile(program, "cpu:x86-64-windows", tmp_path / "floats"))
    x = np.random.default_rng(0).standard_normal((7, 40)).astype(np.float32) * 1e3
    for got, wanted in zip(library(x), program.run(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-7)


@wine
@pytest.mark.slow
def test_windows_lenet_with_weights_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    program = Program.parse(lenet_text())
    target, folder = "cpu:x86-64-windows", tmp_path / "lenet"
    fewbit.compile(program, target, folder, weights="beside")
    x = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    np.save(tmp_path / "x.npy", x)
    run(["run", str(folder), "-i", str(tmp_path / "x.npy"), "-o", str(tmp_path / "y.npy")])
    assert "it runs in wine" in capsys.readouterr().err
    (wanted,) = program.run(x)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-5, atol=1e-6)


@wine
@pytest.mark.slow
def test_windows_variants(tmp_path: Path) -> None:
    """The processor is asked by code of our own, which takes arguments as Windows gives them."""
    program, given = layers(bits=8), inputs()
    artifact = fewbit.compile(
        program, "cpu:x86-64-windows", tmp_path / "net", name="net",
        cpu_variants="x86-64-v2,x86-64-v3",
    )  # fmt: skip
    assert [each.name for each in artifact.manifest.variants] == ["x86-64-v3-windows", "x86-64-v2-windows"]  # fmt: skip
    assert "net_use_variant" in read_dll((artifact.folder / "net.dll").read_bytes()).exports
    for got, wanted in zip(called(artifact)(*given), program.run(*given), strict=True):
        assert np.array_equal(got, wanted)


DEEP = """
define i32 @_start() {
  %large = alloca [700000 x i8]
  %last = getelementptr i8, ptr %large, i64 699999
  store volatile i8 40, ptr %large
  store volatile i8 2, ptr %last
  %a = load volatile i8, ptr %large
  %b = load volatile i8, ptr %last
  %sum = add i8 %a, %b
  %code = zext i8 %sum to i32
  call void @_exit(i32 %code)
  ret i32 0
}
declare void @_exit(i32)
"""
"""A frame of many pages, of which the farthest is written first."""


@wine
@pytest.mark.slow
def test_windows_large_frames(tmp_path: Path) -> None:
    isa = Isa.of("x86-64-windows")
    code = objects.emit_object(objects.link_modules([DEEP], ["_start"], isa), isa)
    support = support_object([code], isa)
    assert support is not None
    assert support[1] == ("__chkstk",)
    paths = [write_object(tmp_path, f"{i}.o", data) for i, data in enumerate((code, support[0]))]
    exit_of_c = import_library(tmp_path, "ucrtbase.dll", ["_exit"], isa)
    program = tmp_path / "deep.exe"
    flags = ["/nodefaultlib", "/entry:_start", "/subsystem:console", f"/out:{program}"]
    lld([*flags, *paths, exit_of_c], "link")
    environment = Wine().environment()
    done = subprocess.run([*Wine().command, str(program)], env=environment, timeout=120)
    assert done.returncode == 42


def zig_cc(folder: Path, *options: str) -> None:
    """Compile C for another system, by a compiler that has the headers of each."""
    cache = {name: str(folder / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    strict = (
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-fno-sanitize=all",
        "-fno-stack-protector",
    )
    strict = (*strict, "-Wno-unused-command-line-argument")
    subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", *strict, *options],
        check=True,
        env={**os.environ, **cache},
    )


START = """
declare i32 @main()
declare void @exit(i32)
define void @__main() { ret void }
define i32 @_start() {
  %code = call i32 @main()
  call void @exit(i32 %code)
  ret i32 0
}
"""
"""What a program of C begins with."""
TAKEN = {
    "ucrtbase.dll": [
        *("__acrt_iob_func", "_fileno", "_setmode", "exit", "fread", "fwrite", "strcmp"),
        *("memcmp", "memcpy", "memset"),
    ],
    "kernel32.dll": [
        *("CreateThread", "FreeLibrary", "GetExitCodeThread", "GetModuleHandleA"),
        *("GetProcAddress", "LoadLibraryA", "Sleep", "WaitForSingleObject"),
    ],
}


def _module(text: str, isa: Isa) -> Any:
    module = objects.parse_ir(text)
    module.triple = isa.triple
    return module


def sent(arrays: tuple[Array, ...]) -> bytes:
    return b"".join(array.tobytes() for array in arrays)


def windows_client(client: str, artifact: Artifact, folder: Path) -> Path:
    """A program of C beside the DLL that it is linked with."""
    isa, program = Isa.of("x86-64-windows"), folder / f"{client}.exe"
    zig_cc(
        folder, "-target", "x86_64-windows-gnu", f"-I{artifact.folder}",
        "-c", str(CLIENTS / f"{client}.c"), "-o", str(folder / "client.o"),
    )  # fmt: skip
    start = write_object(folder, "start.o", objects.emit_object(_module(START, isa), isa))
    flags = ["/nodefaultlib", "/entry:_start", "/subsystem:console", f"/out:{program}"]
    imports = [import_library(folder, dll, names, isa) for dll, names in TAKEN.items()]
    lld([*flags, start, str(folder / "client.o"), str(artifact.folder / "net.lib"), *imports], "link")  # fmt: skip
    shutil.copy(artifact.folder / "net.dll", folder)
    return program


@zig
@wine
@pytest.mark.slow
def test_windows_c_client(home: Path, tmp_path: Path) -> None:
    client = windows_client("portable", compiled(home, "x86-64-windows"), tmp_path)
    done = subprocess.run(
        [*Wine().command, str(client)], input=sent(inputs()), capture_output=True,
        env=Wine().environment(), timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr)
    floats = np.frombuffer(done.stdout, np.float32)
    assert floats.size == ROWS * (CLASSES + WIDE)
    for got, wanted in zip(np.split(floats, [ROWS * CLASSES]), layers(bits=8).run(*inputs()), strict=True):  # fmt: skip
        assert np.array_equal(got, wanted.ravel())


@zig
@wine
@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, None])
def test_windows_calls_at_the_same_time(tmp_path: Path, bits: int | None, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Threads start, work, sleep and wake; those of calls that meet end with them."""
    monkeypatch.setattr(translate_to_llvm_ir, "WORTH_SHARING", 1e-30)
    monkeypatch.setattr(translate_to_llvm_ir, "WORTH_WAKING", 1e-30)
    artifact = fewbit.compile(layers(bits=bits), "cpu:x86-64-windows", tmp_path / "net", name="net")
    client = windows_client("repeat", artifact, tmp_path)
    done = subprocess.run([*Wine().command, str(client)], env=Wine().environment(), timeout=120)
    assert done.returncode == 0


@zig
@pytest.mark.slow
def test_macos_c_client_links(home: Path, tmp_path: Path) -> None:
    """Another linker than ours finds in the dylib what the header declares."""
    artifact, isa = compiled(home, "aarch64-macos"), Isa.of("aarch64-macos")
    client = tmp_path / "client"
    zig_cc(
        tmp_path, "-target", f"{isa.architecture}-macos", f"-I{artifact.folder}",
        str(CLIENTS / "portable.c"), str(artifact.folder / "libnet.dylib"), "-o", str(client),
    )  # fmt: skip
    made = read_dylib(client.read_bytes())
    assert "@rpath/libnet.dylib" in made.libraries
    assert {"_net_run", "_net_signature"} <= set(made.imports)


@dataclass(frozen=True)
class Phone(Emulator):
    """qemu with glibc under the names that Android's libraries have."""

    shims: str = ""

    @property
    def command(self) -> list[str]:
        return [*super().command, "-E", f"LD_LIBRARY_PATH={self.shims}"]


@pytest.mark.parametrize("threads", [1, 2])
def test_android_code_runs_where_its_libraries_are(home: Path, tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    ours, isa = EMULATORS["aarch64"], Isa.of("aarch64")
    try:
        ours.check()
    except MissingToolError as e:
        pytest.skip(e.what)
    phone = Phone(ours.architecture, ours.loader, ours.libc, ours.processor, shims=str(tmp_path))
    empty = write_object(tmp_path, "empty.o", objects.emit_object(objects.parse_ir(""), isa))
    for name in SYSTEMS["android"].libraries:
        real = ours.root / "lib" / f"{name}.6"
        flags = ["-shared", "--no-as-needed", "-soname", name, "-o", str(tmp_path / name)]
        lld([*flags, empty, str(real)])

    def emulator_of(isa: Isa) -> Emulator:
        return phone

    monkeypatch.setattr(emulated, "emulator_of", emulator_of)
    library = called(compiled(home, "aarch64-android", "dynamic"))
    program, given = layers(dynamic=True, bits=8), inputs(40)
    for got, wanted in zip(library(*given, threads=threads), program.run(*given), strict=True):
        assert np.array_equal(got, wanted)
