"""Products of matrices as calls of CBLAS: which call with which arguments, and what they compute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import fewbit
from fewbit.errors import MissingToolError, UsageError
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.targets.compile import lower
from fewbit.toolchain.cblas import Cblas
from fewbit.toolchain.elf import dynamic_symbols, soname_of

Array = np.ndarray[Any, Any]

WHEEL = "scipy-openblas32"
ROWS, NO, YES = 101, 111, 112
FRESH, ADDED = 0.0, 1.0


def library(name: str) -> str:
    try:
        Cblas.of(name)
    except MissingToolError as e:
        pytest.skip(f"{e.what}: {e.hint}")
    return name


@pytest.fixture(scope="module")
def wheel() -> str:
    return library(WHEEL)


# ---- what is called


def lowered(text: str, blas: str = "openblas") -> str:
    return lower(Program.parse(text), "memref", blas=blas)


def calls(text: str, blas: str = "openblas") -> list[tuple[Any, ...]]:
    """The name and the arguments of every call of CBLAS: numbers, or None for what a run knows."""
    result = lowered(text, blas)
    found: list[tuple[Any, ...]] = []
    for function in re.split(r"(?=func\.func )", result):
        constants = {
            name: float(value) if type.startswith("f") else int(value)
            for name, value, type in re.findall(r"(%\w+) = arith\.constant (\S+) : (\w+)", function)
        }
        for name, arguments in re.findall(r"func\.call @(\w*cblas_\w+)\(([^)]*)\)", function):
            found.append((name, *(constants.get(a) for a in arguments.split(", "))))
    return found


def tensor(*sizes: int | str, element: str = "f32") -> str:
    return f"tensor<{'x'.join(map(str, (*sizes, element)))}>"


@dataclass(frozen=True)
class Product:
    """A generic op on `a` and `b`, of a loop for each letter, as `ab,bc->ac`."""

    equation: str
    sizes: dict[str, int]
    element: str = "f32"
    adds: bool = False
    """Whether it is added to an input; otherwise, to zeros."""
    dynamic: str = ""
    """Letters of loops whose sizes only a run knows."""

    @property
    def letters(self) -> str:
        return "".join(sorted(self.sizes))

    @property
    def terms(self) -> list[str]:
        return re.split(",|->", self.equation)

    def type(self, term: str) -> str:
        return tensor(
            *("?" if c in self.dynamic else self.sizes[c] for c in term), element=self.element
        )

    def map(self, term: str) -> str:
        return f"affine_map<({', '.join(self.letters)}) -> ({', '.join(term)})>"

    def text(self) -> str:
        a, b, c = map(self.type, self.terms)
        maps = ", ".join(map(self.map, self.terms))
        kinds = ", ".join(
            f'"{"parallel" if c in self.terms[2] else "reduction"}"' for c in self.letters
        )
        given = f"%a: {a}, %b: {b}" + (f", %c: {c}" if self.adds else "")
        return f"""
func.func @main({given}) -> {c} {{
{"" if self.adds else self.zeros()}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%a, %b : {a}, {b}) outs(%{"c" if self.adds else "f"} : {c}) {{
  ^bb0(%x: {self.element}, %y: {self.element}, %z: {self.element}):
    %p = arith.mulf %x, %y : {self.element}
    %s = arith.addf %z, %p : {self.element}
    linalg.yield %s : {self.element}
  }} -> {c}
  func.return %r : {c}
}}"""

    def zeros(self) -> str:
        lines: list[str] = []
        for letter in self.terms[2]:
            if letter in self.dynamic:
                name = "a" if letter in self.terms[0] else "b"
                axis = self.terms["ab".index(name)].index(letter)
                lines.append(f"%i{letter} = arith.constant {axis} : index")
                type = self.type(self.terms["ab".index(name)])
                lines.append(f"%d{letter} = tensor.dim %{name}, %i{letter} : {type}")
        sizes = ", ".join(f"%d{letter}" for letter in self.terms[2] if letter in self.dynamic)
        c = self.type(self.terms[2])
        lines += [
            f"%zero = arith.constant 0.0 : {self.element}",
            f"%e = tensor.empty({sizes}) : {c}",
            f"%f = linalg.fill ins(%zero : {self.element}) outs(%e : {c}) -> {c}",
        ]
        return "\n".join(f"  {line}" for line in lines)

    def inputs(self, seed: int = 0) -> list[Array]:
        """Small integers, whose sums are exact in any order."""
        random = np.random.default_rng(seed)
        dtype = np.float32 if self.element == "f32" else np.float64
        return [
            random.integers(-4, 5, [self.sizes[c] for c in term]).astype(dtype)
            for term in self.terms[: 3 if self.adds else 2]
        ]

    def expected(self, a: Array, b: Array, *c: Array) -> Array:
        return np.einsum(self.equation, a, b) + (c[0] if c else 0)


MKN = {"m": 3, "k": 5, "n": 7}


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        pytest.param(
            Product("mk,kn->mn", MKN),
            ("cblas_sgemm", ROWS, NO, NO, 3, 7, 5, 1, None, 5, None, 7, FRESH, None, 7),
            id="plain",
        ),
        pytest.param(
            Product("mk,kn->mn", MKN, adds=True),
            ("cblas_sgemm", ROWS, NO, NO, 3, 7, 5, 1, None, 5, None, 7, ADDED, None, 7),
            id="accumulated",
        ),
        pytest.param(
            Product("km,kn->mn", MKN),
            ("cblas_sgemm", ROWS, YES, NO, 3, 7, 5, 1, None, 3, None, 7, FRESH, None, 7),
            id="left transposed",
        ),
        pytest.param(
            Product("mk,nk->mn", MKN, element="f64"),
            ("cblas_dgemm", ROWS, NO, YES, 3, 7, 5, 1, None, 5, None, 5, FRESH, None, 7),
            id="right transposed, double",
        ),
        pytest.param(
            Product("mk,kn->nm", MKN),
            ("cblas_sgemm", ROWS, YES, YES, 7, 3, 5, 1, None, 7, None, 5, FRESH, None, 3),
            id="result transposed",
        ),
        pytest.param(
            Product("mk,kn->mn", MKN, dynamic="mk"),
            ("cblas_sgemm", ROWS, NO, NO, None, 7, None, 1, None, None, None, 7, FRESH, None, 7),
            id="dynamic",
        ),
        pytest.param(
            Product("bmk,bkn->bmn", {"b": 2, **MKN}),
            ("cblas_sgemm", ROWS, NO, NO, 3, 7, 5, 1, None, 5, None, 7, FRESH, None, 7),
            id="batch",
        ),
        pytest.param(
            Product("bmk,nk->bmn", {"b": 2, **MKN}),
            ("cblas_sgemm", ROWS, NO, YES, 6, 7, 5, 1, None, 5, None, 5, FRESH, None, 7),
            id="rows of two dimensions are rows",
        ),
        pytest.param(
            Product("bmhk,bnhk->bhmn", {"b": 2, "h": 4, **MKN}),
            ("cblas_sgemm", ROWS, NO, YES, 3, 7, 5, 1, None, 20, None, 20, FRESH, None, 7),
            id="heads between rows",
        ),
        pytest.param(
            Product("mk,k->m", {"m": 3, "k": 5}),
            ("cblas_sgemv", ROWS, NO, 3, 5, 1, None, 5, None, 1, FRESH, None, 1),
            id="matrix times vector",
        ),
        pytest.param(
            Product("k,kn->n", {"n": 7, "k": 5}, adds=True),
            ("cblas_sgemv", ROWS, YES, 5, 7, 1, None, 7, None, 1, ADDED, None, 1),
            id="vector times matrix",
        ),
        pytest.param(
            Product("mk,kn->mn", {"m": 1, "k": 5, "n": 7}),
            ("cblas_sgemv", ROWS, YES, 5, 7, 1, None, 7, None, 1, FRESH, None, 1),
            id="one row",
        ),
    ],
)  # fmt: skip
def test_call(product: Product, expected: tuple[Any, ...]) -> None:
    assert calls(product.text()) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(Product("mk,kn->mn", MKN, element="f16").text(), id="f16"),
        pytest.param(Product("m,n->mn", {"m": 3, "n": 7}).text(), id="nothing summed"),
        pytest.param(Product("k,k->", {"k": 5}).text(), id="vectors"),
        pytest.param(Product("bmk,bkn->mn", {"b": 2, **MKN}).text(), id="two sums apart"),
        pytest.param(Product("mbk,kn->mbn", {"b": 2, **MKN}).text().replace("mulf", "addf"), id="sums"),
        pytest.param(
            Product("mk,kn->mn", MKN, element="i32").text().replace("mulf", "muli").replace("addf", "addi").replace("0.0", "0"),
            id="integers",
        ),
    ],
)  # fmt: skip
def test_stays_loops(text: str) -> None:
    result = lowered(text)
    assert "cblas" not in result
    assert "linalg.generic" in result


def test_no_fill_where_the_call_clears() -> None:
    fresh = lowered(Product("mk,kn->mn", MKN).text())
    assert "linalg.generic" not in fresh
    assert "memref.alloc" not in fresh


def test_products_of_one_form_share_a_function() -> None:
    text = """
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%0, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %1 : tensor<4x4xf32>
}"""
    result = lowered(text)
    assert result.count("func.func private @blas_") == 1
    assert result.count("call @blas_") == 2


def test_a_transpose_and_a_broadcast_are_folded() -> None:
    text = """
func.func @main(%a: tensor<2x3x5xf32>, %b: tensor<7x5xf32>, %c: tensor<2x3x7xf32>) -> tensor<2x3x7xf32> {
  %te = tensor.empty() : tensor<5x7xf32>
  %t = linalg.transpose ins(%b : tensor<7x5xf32>) outs(%te : tensor<5x7xf32>) permutation = [1, 0]
  %ue = tensor.empty() : tensor<2x5x7xf32>
  %u = linalg.broadcast ins(%t : tensor<5x7xf32>) outs(%ue : tensor<2x5x7xf32>) dimensions = [0]
  %r = linalg.batch_matmul ins(%a, %u : tensor<2x3x5xf32>, tensor<2x5x7xf32>) outs(%c : tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  func.return %r : tensor<2x3x7xf32>
}"""
    expected = ("cblas_sgemm", ROWS, NO, YES, 6, 7, 5, 1, None, 5, None, 5, ADDED, None, 7)
    assert calls(text) == [expected]


def test_what_makes_a_factor_is_not_computed_in_the_product() -> None:
    product = Product("mk,kn->mn", MKN).text()
    squared = """
  %se = tensor.empty() : tensor<3x5xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<3x5xf32>) outs(%se : tensor<3x5xf32>) {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %x : f32
    linalg.yield %p : f32
  } -> tensor<3x5xf32>
  %r = """
    result = lowered(product.replace("  %r = ", squared).replace("ins(%a, %b", "ins(%q, %b"))
    assert result.count("linalg.generic") == 1
    assert result.count("cblas_sgemm") == 2


SLICE = """
func.func @main(%a: tensor<8x20xf32>, %b: tensor<6x9xf32>, %c: tensor<4x7xf32>) -> tensor<4x7xf32> {{
  %s = tensor.extract_slice %a[2, 3] [4, 5] [1, {step}] : tensor<8x20xf32> to tensor<4x5xf32>
  %t = tensor.extract_slice %b[1, 2] [5, 7] [1, 1] : tensor<6x9xf32> to tensor<5x7xf32>
  %r = linalg.matmul ins(%s, %t : tensor<4x5xf32>, tensor<5x7xf32>) outs(%c : tensor<4x7xf32>) -> tensor<4x7xf32>
  func.return %r : tensor<4x7xf32>
}}"""


def test_a_slice_is_read_in_its_place() -> None:
    expected = ("cblas_sgemm", ROWS, NO, NO, 4, 7, 5, 1, None, 20, None, 9, ADDED, None, 7)
    text = SLICE.format(step=1)
    assert calls(text) == [expected]
    # (2 * 20 + 3) floats and (1 * 9 + 2) floats from where the inputs begin.
    assert {"172", "44"} <= set(re.findall(r"arith\.constant (\d+) : index", lowered(text)))


def test_elements_with_gaps_stay_loops() -> None:
    assert calls(SLICE.format(step=2)) == []


def test_symbols_and_integers_of_a_library(wheel: str) -> None:
    text = Product("mk,kn->mn", MKN).text()
    ((name, *_),) = calls(text, wheel)
    assert name == "scipy_cblas_sgemm"
    assert "i64, i64, i64, f32, !llvm.ptr" not in lowered(text, wheel)


# ---- what is computed


def compiled(text: str, folder: Path, blas: str = WHEEL) -> Artifact:
    return fewbit.compile(Program.parse(text), "cpu", folder / "product", name="product", blas=blas)


@st.composite
def products(draw: st.DrawFn) -> Product:
    b, m, n, k = (pair[: draw(st.integers(0, 2))] for pair in ("bc", "mo", "np", "kl"))
    every = [*b, *m, *n, *k]
    sizes = {letter: draw(st.integers(1, 5)) for letter in every}
    terms = [
        "".join(draw(st.permutations(term))) for term in ([*b, *m, *k], [*b, *k, *n], [*b, *m, *n])
    ]
    equation = f"{terms[0]},{terms[1]}->{terms[2]}"
    inside = [c for c in every if draw(st.integers(0, 3)) == 0]
    element = draw(st.sampled_from(["f32", "f64"]))
    return Product(equation, sizes, element, draw(st.booleans()), "".join(inside))


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(Product("bmk,bpkn->pmnb", {"b": 5, "m": 3, "n": 4, "p": 3, "k": 1}, adds=True))
@example(
    Product("bmlck,kcbl->cbm", {"b": 5, "c": 3, "m": 1, "k": 3, "l": 3}, adds=True, dynamic="b")
)
@given(product=products().filter(lambda p: len(p.sizes) > 0))
def test_random_products(wheel: str, tmp_path: Path, product: Product) -> None:
    artifact = compiled(product.text(), tmp_path)
    given_ = product.inputs()
    for threads in (1, 3):
        (result,) = artifact.run(*given_, threads=threads)
        np.testing.assert_array_equal(result, product.expected(*given_))


@pytest.mark.parametrize("step", [1, 2])
def test_slices(wheel: str, tmp_path: Path, step: int) -> None:
    a, b, c = (np.random.default_rng(s).integers(-4, 5, n).astype(np.float32) for s, n in enumerate([(8, 20), (6, 9), (4, 7)]))  # fmt: skip
    (result,) = compiled(SLICE.format(step=step), tmp_path).run(a, b, c)
    np.testing.assert_array_equal(result, a[2:6, 3 : 3 + 5 * step : step] @ b[1:, 2:] + c)


def test_a_slice_of_dynamic_place(wheel: str, tmp_path: Path) -> None:
    """Offsets, sizes and strides that only a run knows."""
    text = """
func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %m = tensor.dim %a, %zero : tensor<?x?xf32>
  %k = tensor.dim %b, %zero : tensor<?x4xf32>
  %rows = arith.subi %m, %two : index
  %s = tensor.extract_slice %a[%two, %one] [%rows, %k] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = linalg.matmul ins(%s, %b : tensor<?x?xf32>, tensor<?x4xf32>) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %r : tensor<?x4xf32>
}"""
    assert [name for name, *_ in calls(text)] == ["cblas_sgemm"]
    artifact = compiled(text, tmp_path)
    for m, width, k in ((5, 9, 6), (3, 8, 7), (7, 3, 0), (2, 4, 3)):
        a = np.arange(m * width, dtype=np.float32).reshape(m, width)
        b = np.arange(k * 4, dtype=np.float32).reshape(k, 4)
        (result,) = artifact.run(a, b)
        np.testing.assert_array_equal(result, a[2:, 1 : 1 + k] @ b)


def test_wide_integers(tmp_path: Path) -> None:
    """numpy brings an OpenBLAS of 64-bit integers, whose functions have names of their own."""
    folder = Path(np.__file__).parents[1] / "numpy.libs"
    found = sorted(folder.glob("libscipy_openblas64_*.so"))
    if not found:
        pytest.skip("this numpy brings no OpenBLAS")
    product = Product("bmk,bkn->bmn", {"b": 3, **MKN}, dynamic="m")
    ((name, *_),) = calls(product.text(), str(found[0]))
    assert name == "scipy_cblas_sgemm64_"
    (result,) = compiled(product.text(), tmp_path, str(found[0])).run(*product.inputs())
    np.testing.assert_array_equal(result, product.expected(*product.inputs()))


CONV = """
mico.constant @w : tensor<{o}x{c}x{kh}x{kw}xf32> = dense<{weight}>
mico.constant @b : tensor<{o}xf32> = dense<{bias}>
func.func @main(%x: tensor<?x{i}x9x8xf32>) -> tensor<?x{o}x{oh}x{ow}xf32> {{
  %y = mico.bitconv2d(%x, @w, @b) {{stride = [{s}, {s}], padding = [{p}, {p}], dilation = [{d}, {d}], groups = {g}}} : (tensor<?x{i}x9x8xf32>) -> tensor<?x{o}x{oh}x{ow}xf32>
  %r = mico.relu(%y) : tensor<?x{o}x{oh}x{ow}xf32> -> tensor<?x{o}x{oh}x{ow}xf32>
  func.return %r : tensor<?x{o}x{oh}x{ow}xf32>
}}"""


def convolution(
    kernel: Sequence[int], stride: int, padding: int, groups: int, dilation: int = 1
) -> str:
    """A convolution of 4 channels to 6, with bias and relu."""
    random = np.random.default_rng(1)
    shape = (6, 4 // groups, *kernel)
    oh, ow = (
        (size + 2 * padding - dilation * (k - 1) - 1) // stride + 1
        for size, k in zip((9, 8), kernel, strict=True)
    )
    return CONV.format(
        o=6, c=4 // groups, kh=kernel[0], kw=kernel[1], i=4, s=stride, p=padding, d=dilation, g=groups,
        oh=oh, ow=ow, weight=random.integers(-3, 4, shape).astype(float).tolist(),
        bias=random.integers(-3, 4, 6).astype(float).tolist(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        pytest.param(convolution((3, 3), 1, 1, 1), (None, 6, 36), id="3x3"),
        pytest.param(convolution((3, 2), 2, 1, 1), (None, 6, 24), id="stride"),
        pytest.param(convolution((2, 2), 1, 0, 1, dilation=2), (None, 6, 16), id="dilation"),
        pytest.param(convolution((1, 1), 1, 0, 1), (None, 6, 4), id="1x1"),
        pytest.param(convolution((1, 1), 2, 0, 1), (None, 6, 4), id="1x1, stride"),
        pytest.param(convolution((3, 3), 1, 1, 2), (None, 3, 18), id="groups"),
    ],
)
def test_convolution(wheel: str, tmp_path: Path, text: str, sizes: tuple[Any, ...]) -> None:
    ((name, *arguments),) = calls(text)
    assert name == "cblas_sgemm"
    assert tuple(arguments[3:6]) == sizes
    artifact = compiled(text, tmp_path)
    x = np.random.default_rng(2).integers(-4, 5, (2, 4, 9, 8)).astype(np.float32)
    for threads in (1, 3):
        (result,) = artifact.run(x, threads=threads)
        np.testing.assert_array_equal(result, Program.parse(text).run(x)[0])


# ---- the library


def test_the_library_records_what_it_needs(wheel: str, tmp_path: Path) -> None:
    artifact = compiled(Product("mk,kn->mn", MKN).text(), tmp_path)
    made = (artifact.folder / "libproduct.so").read_bytes()
    assert artifact.manifest.options["blas"] == WHEEL
    assert Cblas.of(WHEEL).soname.encode() in made
    assert soname_of(made) == "libproduct.so"
    assert "product_run" in set(dynamic_symbols(made))


def test_nothing_is_needed_where_nothing_is_called(tmp_path: Path) -> None:
    text = Product("k,k->", {"k": 5}).text()
    artifact = compiled(text, tmp_path, "libabsent-from-everywhere.so.1")
    assert "blas" not in artifact.manifest.options
    (result,) = artifact.run(np.ones(5, np.float32), np.ones(5, np.float32))
    assert result == 5


def test_an_absent_library_is_named(tmp_path: Path) -> None:
    product = Product("mk,kn->mn", MKN)
    artifact = compiled(product.text(), tmp_path, "libabsent-from-everywhere.so.1")
    with pytest.raises(MissingToolError, match=r"libabsent-from-everywhere\.so\.1 does not load"):
        artifact.run(*product.inputs())


def test_names() -> None:
    assert Cblas.of("openblas").soname == "libopenblas.so.0"
    assert Cblas.of("libmine.so.3").soname == "libmine.so.3"
    with pytest.raises(UsageError, match="no BLAS 'openblass'"):
        Cblas.of("openblass")


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_text("hello")
    with pytest.raises(UsageError, match="no shared library"):
        Cblas.of(str(tmp_path / "x.so"))


def test_compiles_for_another_processor(tmp_path: Path) -> None:
    text = Product("mk,kn->mn", MKN).text()
    artifact = fewbit.compile(
        Program.parse(text), "cpu:aarch64", tmp_path / "p", name="p", blas="openblas"
    )
    assert b"libopenblas.so.0" in (artifact.folder / "libp.so").read_bytes()


def test_integer_layers_keep_our_kernels() -> None:
    result = lowered("""
mico.constant @s : tensor<f32> = dense<0.5>
mico.constant @w : tensor<4x8x!mico.int<4>> = dense<1> scale @s
func.func @main(%x: tensor<3x8xf32>) -> tensor<3x4xf32> {
  %y = mico.bitlinear(%x, @w) {act_bits = 8} : (tensor<3x8xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}""")
    assert "cblas" not in result


def test_program_of_the_documentation(wheel: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[3] / "docs" / "blas.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out.count("9.") == 12
