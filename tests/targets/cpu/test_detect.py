"""What a processor is asked before code for it is run."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pytest

from fewbit.codegen.detect import BITS, detect_ir, instructions_ir
from fewbit.errors import UnsupportedError
from fewbit.toolchain.isa import Isa, family, names
from fewbit.toolchain.objects import link_in, link_modules


@pytest.mark.parametrize("architecture", BITS)
def test_code_for_every_family(architecture: str) -> None:
    isas = family(architecture)
    text = detect_ir(isas)
    module = link_modules([text], ["variants.fitting"], isas[0])
    link_in(module, instructions_ir(architecture))
    missing = [f.name for f in module.functions if f.is_declaration]
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
        detect_ir([Strange(**asdict(Isa.of("aarch64")))])


@pytest.mark.parametrize(
    ("name", "masks"),
    [("x86-64-v2", []), ("x86-64-v3", ["%saved, 6"]), ("x86-64-v4", ["%saved, 230"])],
)
def test_system_must_save_the_registers(name: str, masks: list[str]) -> None:
    text = detect_ir([Isa.of(name)])
    assert [mask for mask in ("%saved, 6", "%saved, 230") if f"and i64 {mask}\n" in text] == masks


def test_needs_grow_from_level_to_level() -> None:
    levels = [Isa.of(f"x86-64-v{level}").needs for level in (2, 3, 4)]
    assert levels[0] < levels[1] < levels[2] < Isa.of("x86-64-v4-vnni").needs
