"""Libraries for several processors: which variants they have, and that all compute the same."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.errors import UnsupportedError, UsageError
from fewbit.models import lenet_text
from fewbit.passes.native import native_pipeline
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.targets.cpu.variants import variants_of
from fewbit.toolchain.elf import dynamic_symbols
from fewbit.toolchain.isa import Isa, family, names
from fewbit.toolchain.llvm import host_features
from tests.targets.cpu.emulate import EMULATORS, emulated, variant_on
from tests.targets.cpu.programs import elementwise, inputs, layers

X86, ARM, RISCV = (Isa.of(name) for name in ("x86-64-v2", "aarch64", "riscv64"))
RUNNABLE = [name for name in names() if Isa.of(name).runs_on(host_features())]
"""By this machine."""

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="this machine is no x86")


# ---- which are meant


def chosen(given: str | list[str], target: Isa = X86) -> list[str]:
    return [isa.name for isa in variants_of(given, target)]


def test_best_first_whatever_the_order() -> None:
    assert chosen("x86-64-v2, x86-64-v4,x86-64-v3") == ["x86-64-v4", "x86-64-v3", "x86-64-v2"]
    assert chosen(["x86-64-v3", "x86-64-v3"]) == ["x86-64-v3"]


def test_other_names_are_understood() -> None:
    assert chosen("amd64,x86-64-v3") == ["x86-64-v3", "x86-64-v2"]
    assert chosen("arm64", ARM) == ["aarch64"]


@pytest.mark.parametrize("target", [X86, ARM, RISCV], ids=lambda isa: isa.architecture)
def test_sets_by_name(target: Isa) -> None:
    assert chosen("all", target) == [isa.name for isa in family(target.architecture)]
    auto = chosen("auto", target)
    assert set(auto) <= set(chosen("all", target))
    assert auto[-1] == target.name, "the plainest processor is always among them"


def test_every_processor_is_of_a_family() -> None:
    assert {isa.name for target in (X86, ARM, RISCV) for isa in family(target.architecture)} == set(
        names()
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [("z80", "no processor 'z80'"), ("", "no processor ''"), ([], "no variants are named"),
     ("x86-64-v2,aarch64", "'aarch64' is of another family"), ("host", "no processor 'host'")],
)  # fmt: skip
def test_what_is_refused(given: str | list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        variants_of(given, X86)


# ---- what a library has

PRODUCT = """
func.func @main(%a: tensor<8x40xf32>, %b: tensor<40x3xf32>) -> tensor<8x3xf32> {
  %e = tensor.empty() : tensor<8x3xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x3xf32>) -> tensor<8x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x40xf32>, tensor<40x3xf32>) outs(%f : tensor<8x3xf32>) -> tensor<8x3xf32>
  func.return %c : tensor<8x3xf32>
}
"""
"""A matrix that is packed by the run, in panels as wide as the processor's vectors."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("variants")


def compiled(home: Path, bits: int | None = 8) -> Artifact:
    """Quantized for all processors, in floats for some."""
    folder = home / f"net-{bits}"
    if not folder.exists():
        variants = "x86-64-v2,x86-64-v4" if bits is None else "all"
        program = layers(dynamic=True, bits=bits)
        fewbit.compile(program, "cpu", folder, name="net", cpu_variants=variants)
    return fewbit.load(folder)


@on_x86
def test_only_two_functions_are_added(home: Path) -> None:
    library = (compiled(home).folder / "libnet.so").read_bytes()
    plain = ["net_arena_bytes", "net_run", "net_shapes", "net_signature"]
    assert sorted(dynamic_symbols(library)) == [*plain, "net_use_variant", "net_variant"]


def test_library_for_one_processor_is_as_before(tmp_path: Path) -> None:
    artifact = fewbit.compile(layers(), "cpu", tmp_path / "net")
    library = (artifact.folder / "libnet.so").read_bytes()
    plain = ["net_arena_bytes", "net_run", "net_shapes", "net_signature"]
    assert sorted(dynamic_symbols(library)) == plain
    assert b"cpuid" not in library
    assert artifact.manifest.variants == ()
    assert "variant(" not in (artifact.folder / "net.h").read_text()
    assert artifact.variant is None
    with pytest.raises(UsageError, match="has no variants"):
        artifact.use_variant("x86-64-v2")


@on_x86
def test_equal_weights_are_stored_once(home: Path, tmp_path: Path) -> None:
    # Floats have one layout for both: their vectors are equally wide.
    pair = ("x86-64-v4", "x86-64-v4-vnni")
    alike = fewbit.compile(layers(), "cpu", tmp_path / "net", cpu_variants=pair).manifest
    assert [v.weight_bytes for v in alike.variants] == [alike.weight_bytes] * 2
    apart = compiled(home, None).manifest
    sizes = [v.weight_bytes for v in apart.variants]
    assert max(sizes) < apart.weight_bytes <= sum(sizes)
    for variant in apart.variants:
        for weight in variant.weights:
            size = int(np.prod(weight.shape)) * np.dtype(weight.dtype).itemsize
            assert weight.offset + size <= apart.weight_bytes


@on_x86
def test_arena_is_enough_for_all(tmp_path: Path) -> None:
    program = Program.parse(PRODUCT)
    artifact = fewbit.compile(program, "cpu", tmp_path / "net", cpu_variants="x86-64-v2,x86-64-v4")
    sizes = [variant.arena_bytes or 0 for variant in artifact.manifest.variants]
    assert min(sizes) < max(sizes) == artifact.manifest.arena_bytes
    header = (tmp_path / "net/net.h").read_text()
    assert f"#define NET_ARENA_BYTES {max(sizes)}\n" in header
    a, b = np.ones((8, 40), np.float32), np.ones((40, 3), np.float32)
    assert artifact.runner.arena_bytes(a, b) == max(sizes)
    artifact.use_variant("x86-64-v2")
    assert artifact.runner.arena_bytes(a, b) == max(sizes)


@on_x86
def test_stages_for_all_processors_run_once(tmp_path: Path) -> None:
    seen: list[str] = []
    fewbit.compile(elementwise("f32", "addf"), "cpu", tmp_path / "net", name="net",
                   cpu_variants="x86-64-v3,x86-64-v2", watch=lambda s, _: seen.append(s))  # fmt: skip
    variants = [f"{s}:{v}" for v in ("x86-64-v3", "x86-64-v2") for s in native_pipeline().names[2:]]
    assert seen == ["mico", "kernel", *variants]


# ---- what it computes


@on_x86
def test_best_is_chosen_here(home: Path) -> None:
    here = [isa.name for isa in family("x86_64") if isa.name in RUNNABLE]
    artifact = compiled(home)
    assert artifact.variant == here[0]
    for name in names():
        if name in here:
            artifact.use_variant(name)
            assert artifact.variant == name
        elif Isa.of(name).architecture == "x86_64":
            with pytest.raises(UnsupportedError, match="does not execute"):
                artifact.use_variant(name)
        else:
            with pytest.raises(UsageError, match="has no variant"):
                artifact.use_variant(name)
    artifact.use_variant("auto")
    assert artifact.variant == here[0]


@on_x86
@pytest.mark.parametrize("bits", [8, None])
def test_same_numbers(home: Path, bits: int | None) -> None:
    program, artifact = layers(dynamic=True, bits=bits), compiled(home, bits)
    for variant in artifact.manifest.variants:
        if variant.name not in RUNNABLE:
            continue
        artifact.use_variant(variant.name)
        for rows, threads in ((1, 1), (40, 3)):
            given = inputs(rows)
            results, wanted = artifact.run(*given, threads=threads), program.run(*given)
            assert all(map(np.array_equal, results, wanted)), variant.name


@pytest.mark.slow
@on_x86
def test_lenet_in_all_variants(tmp_path: Path) -> None:
    program = Program.parse(lenet_text())
    x = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    artifact = fewbit.compile(program, "cpu", tmp_path / "lenet", cpu_variants="auto")
    for variant in artifact.manifest.variants:
        if variant.name in RUNNABLE:
            artifact.use_variant(variant.name)
            assert np.array_equal(artifact(x), program.run(x)[0])


@pytest.mark.parametrize("processor", EMULATORS)
def test_other_families(home: Path, tmp_path: Path, processor: str) -> None:
    program, target = layers(dynamic=True, bits=8), EMULATORS[processor].architecture
    folder = home / target
    if not folder.exists():
        fewbit.compile(program, f"cpu:{target}", folder, name="net", cpu_variants="all")
    artifact = fewbit.load(folder)
    assert variant_on(processor, artifact, tmp_path) == processor
    given = inputs(7)
    wanted = program.run(*given)
    found = emulated(artifact, tmp_path, *given, like=wanted, threads=2, processor=processor)
    for got, expected in zip(found, wanted, strict=True):
        assert np.array_equal(got, expected)


def test_processor_that_no_variant_is_for(tmp_path: Path) -> None:
    artifact = fewbit.compile(
        layers(), "cpu:riscv64", tmp_path / "net", name="net", cpu_variants=["riscv64-v"]
    )
    assert variant_on("riscv64", artifact, tmp_path) == ""
    if platform.machine() != "riscv64":
        with pytest.raises(UnsupportedError, match="does not execute"):
            artifact.run(*inputs())


@on_x86
def test_with_blas(tmp_path: Path) -> None:
    try:
        artifact = fewbit.compile(
            layers(),
            "cpu",
            tmp_path / "net",
            cpu_variants=["x86-64-v2", "x86-64-v3"],
            blas="scipy-openblas32",
        )
    except fewbit.errors.MissingToolError as e:
        pytest.skip(str(e.hint))
    for variant in artifact.manifest.variants:
        if variant.name in RUNNABLE:
            artifact.use_variant(variant.name)
            for got, wanted in zip(artifact.run(*inputs()), layers().run(*inputs()), strict=True):
                assert np.allclose(got, wanted, rtol=1e-5)
