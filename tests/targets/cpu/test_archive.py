"""Static libraries, read back by hand and by a linker."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewbit.errors import PassError
from fewbit.toolchain.archive import MAGIC, Member, archive
from fewbit.toolchain.elf import symbols
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.lld import lld
from fewbit.toolchain.objects import emit_object, parse_ir


def read(data: bytes) -> list[tuple[str, int, bytes]]:
    """Members as name, place and content."""
    assert data.startswith(MAGIC)
    found: list[tuple[str, int, bytes]] = []
    at = len(MAGIC)
    while at < len(data):
        header = data[at : at + 60].decode()
        assert header.endswith("`\n")
        size = int(header[48:58])
        found.append((header[:16].rstrip(), at, data[at + 60 : at + 60 + size]))
        at += 60 + size + size % 2
    assert at == len(data)
    return found


def index(members: list[tuple[str, int, bytes]]) -> dict[str, int]:
    name, _, data = members[0]
    assert name == "/"
    count = int.from_bytes(data[:4], "big")
    offsets = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(count)]
    names = data[4 + 4 * count :].split(b"\0")
    return dict(zip([n.decode() for n in names[:count]], offsets, strict=True))


def test_members_and_index_are_read_back() -> None:
    given = [
        Member("a.o", b"odd", ("one", "two")),
        Member("a_name_that_is_long.o", b"even", ("three",)),
        Member("another_name_that_is_long.o", b"", ()),
    ]
    found = read(archive(given))
    names = found[1][2].decode()
    assert found[1][0] == "//"
    assert [content for _, _, content in found[2:]] == [b"odd", b"even", b""]
    assert found[2][0] == "a.o/"
    for (name, _, _), member in zip(found[3:], given[1:], strict=True):
        assert names[int(name[1:]) :].startswith(f"{member.name}/\n")
    places = [place for _, place, _ in found[2:]]
    assert index(found) == {"one": places[0], "two": places[0], "three": places[1]}


def test_equal_inputs_give_equal_files() -> None:
    members = [Member("a.o", b"data", ("x",))]
    assert archive(members) == archive(members)


def test_linker_takes_what_it_needs(tmp_path: Path) -> None:
    isa = Isa.of("x86-64-v2")

    def compiled(text: str) -> bytes:
        module = parse_ir(text)
        module.triple = isa.triple
        return emit_object(module, isa)

    library = archive(
        [
            Member("first_function.o", compiled("define i32 @first() { ret i32 1 }"), ("first",)),
            Member("second.o", compiled("define i32 @second() { ret i32 2 }"), ("second",)),
        ]
    )
    (tmp_path / "libboth.a").write_bytes(library)
    (tmp_path / "user.o").write_bytes(
        compiled("declare i32 @second()\ndefine i32 @user() { %r = call i32 @second() ret i32 %r }")
    )
    path = tmp_path / "made.o"
    lld(["-r", "-o", str(path), str(tmp_path / "user.o"), str(tmp_path / "libboth.a")])
    assert {s.name for s in symbols(path.read_bytes()) if s.defined} == {"user", "second"}
    (tmp_path / "libboth.a").write_bytes(library[:-40])
    with pytest.raises(PassError, match="linker failed"):
        lld(["-r", "-o", str(path), str(tmp_path / "user.o"), str(tmp_path / "libboth.a")])
