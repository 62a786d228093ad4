"""What a processor is asked before code for it is run."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pytest

from fewbit.codegen.detect import BITS, instructions_ir, needs_ir
from fewbit.codegen.runtime import runtime_ir
from fewbit.errors import UnsupportedError
from fewbit.toolchain.isa import Isa, family, names
from fewbit.toolchain.objects import link_in, link_modules


@pytest.mark.parametrize("architecture", BITS)
def test_code_for_every_family(architecture: str) -> None:
    isas = family(architecture)
    texts = [runtime_ir("detect", architecture), needs_ir(isas)]
    module = link_modules(texts, ["variants.fitting"], isas[0])
    link_in(module, instructions_ir(isas[0]))
    declared = [f.name for f in module.functions if f.is_declaration]
    missing = [name for name in declared if not name.startswith("llvm.")]
    assert missing == ([] if architecture == "x86_64" else ["getauxval"])


@pytest.mark.parametrize("name", names())
def test_every_need_is_asked_for(name: str) -> None:
    isa = Isa.of(name)
    known = {feature for bits in BITS[isa.architecture].values() for feature in bits}
    assert isa.needs <= known


def test_need_that_is_not_known_is_named() -> None:
    @dataclass(frozen=True)
    class Strange(Isa):
        @property
        def needs(self) -> set[str]:
            return {"telepathy"}

    with pytest.raises(UnsupportedError, match="telepathy"):
        needs_ir([Strange(**asdict(Isa.of("aarch64")))])


@pytest.mark.parametrize(("name", "mask"), [("x86-64-v2", 0), ("x86-64-v3", 6), ("x86-64-v4", 230)])
def test_system_must_save_the_registers(name: str, mask: int) -> None:
    assert needs_ir([Isa.of(name)]).endswith(f"i64 {mask}]]")


def test_needs_grow_from_level_to_level() -> None:
    levels = [Isa.of(f"x86-64-v{level}").needs for level in (2, 3, 4)]
    assert levels[0] < levels[1] < levels[2] < Isa.of("x86-64-v4-vnni").needs
