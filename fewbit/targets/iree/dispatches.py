"""What a module consists of: its dispatches, with their ops, and the bytes and MACs of each.

They are read from the program after IREE's phase `flow`, in which each dispatch is a function on
tensors, when a module is compiled; an artifact keeps the list. Sizes that are not known count as 1,
and zeros that fill up a tile of a matrix count as all else does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from pydantic import TypeAdapter

from fewbit.base.folders import Record
from fewbit.errors import UsageError
from fewbit.program.artifact import Folder

DISPATCHES = "dispatches.json"
"""The file of an artifact that has the list."""

_EXECUTABLE = re.compile(r"flow\.executable private @([\w$.]+)")
_CALL = re.compile(r"flow\.dispatch @([\w$.]+)::@([\w$.]+)(.*)")
_KERNEL = re.compile(r'@([\w$.]+)\(.*\{hal\.import\.static, kernel = "(\w+)", macs = (\d+)')
_OP = re.compile(r"(?:= |^ *)((?:linalg|tensor|iree_linalg_ext)\.\w+(?:\.\w+)?)", re.MULTILINE)
_NO_WORK = ("linalg.yield", "linalg.index", "linalg.fill", "tensor.empty", "tensor.dim")
_TENSOR = re.compile(r"tensor<((?:\d+x|\?x)*)([a-z]+)(\d+)")
_MOVED = re.compile(r"\.tensor\.(?:load .*? -> |store .*?\] : )tensor<((?:\d+x|\?x)*)([a-z]+)(\d+)")
_MAP = re.compile(r"affine_map<\(([^)]*)\)(?:\[[^\]]*\])? -> \(([^)]*)\)>")
_LAYER = re.compile(r'loc\((?:callsite\()?(?:fused\[)?"([^"]+)"\(')


class Dispatch(Record):
    """A piece of a program that runs on the device as a whole."""

    name: str
    layer: str | None
    """From which most of it comes."""
    ops: tuple[str, ...]
    bytes: int
    """That it reads and writes."""
    macs: int
    calls: int
    """How often the program calls it; what makes the weights ready is called when they load."""
    at_load: bool


_LIST = TypeAdapter(list[Dispatch])


def write_dispatches(flow: str) -> bytes:
    return _LIST.dump_json(list(read_dispatches(flow)), indent=1)


def dispatches_of(folder: Folder) -> list[Dispatch]:
    """Return those of an artifact, in the order of its program."""
    if DISPATCHES not in folder.manifest.files:
        raise UsageError(
            f"the artifact, for {folder.manifest.target}, has no list of dispatches",
            hint="modules of IREE have one: compile for iree-cpu or another of its targets",
        )
    return _LIST.validate_json(folder.file(DISPATCHES).read_bytes())


def read_dispatches(flow: str) -> Iterator[Dispatch]:
    """Yield all dispatches in the text of a program after `flow`, with its locations."""
    yield from _of_kernels(flow)
    calls = [match[1] for match in _CALL.finditer(flow)]
    parts = _EXECUTABLE.split(flow)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        text = text.partition("\n  }")[0]
        layers = _LAYER.findall(text)
        plain = without_locations(text)
        yield Dispatch(
            name=name,
            layer=max(layers, key=layers.count) if layers else None,
            ops=tuple(op for op in _OP.findall(plain) if op not in _NO_WORK),
            bytes=sum(map(_bytes, plain.splitlines())),
            macs=sum(map(_macs, re.split(r"(?=%\w+(?::\d+)? = linalg\.)", plain))),
            calls=calls.count(name),
            at_load="_initializer_" in name,
        )


def _of_kernels(flow: str) -> Iterator[Dispatch]:
    """Yield those of the executable of `dispatch_kernels`, each of which is called once."""
    called = {match[2].removesuffix(".dispatch"): match[3] for match in _CALL.finditer(flow)}
    for name, symbol, macs in _KERNEL.findall(flow):
        call = called[name]
        layer = _LAYER.search(call)
        moved = _TENSOR.findall(without_locations(call))
        yield Dispatch(
            name=name,
            layer=layer[1] if layer else None,
            ops=(symbol,),
            bytes=sum(-(-prod(_sizes(sizes)) * int(bits) // 8) for sizes, _, bits in moved),
            macs=int(macs),
            calls=1,
            at_load=False,
        )


def without_locations(text: str) -> str:
    """Return the text without `loc(...)`."""
    parts: list[str] = []
    start = 0
    while (at := text.find(" loc(", start)) >= 0:
        parts.append(text[start:at])
        start = _closing(text, at + len(" loc(")) + 1
    return "".join([*parts, text[start:]])


def _closing(text: str, start: int) -> int:
    """Return the parenthesis that ends what began before `start`."""
    depth, position = 1, start
    for match in re.compile(r'[()]|"(?:[^"\\]|\\.)*"').finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        position = match.start()
        if depth == 0:
            break
    return position


def _bytes(line: str) -> int:
    """Return what a load or store moves."""
    moved = _MOVED.search(line)
    return 0 if moved is None else -(-prod(_sizes(moved[1])) * int(moved[3]) // 8)


def _macs(op: str) -> int:
    """Return steps of the loops of an op that multiplies and adds; 0 for any other."""
    head = op.partition("\n")[0]
    ins, outs = (_TENSOR.findall(head.partition(f"{word}(")[2]) for word in ("ins", "outs"))
    if "= linalg.generic" in head:
        body = op.partition("^bb0")[2].partition("linalg.yield")[0]
        multiplies = re.search(r"arith\.mul[fi]", body) and re.search(r"arith\.add[fi]", body)
        if not multiplies or '"reduction"' not in head or len(ins) < 2:
            return 0
        return prod(_loops(head).values())
    if not re.search(r"= linalg\.(batch_)?(matmul|mmt4d|conv|depthwise)", head) or len(ins) < 2:
        return 0
    if "mmt4d" in head:
        *rows, depth = _tiles(ins[0][0])
        return prod(rows) * depth * _tiles(ins[1][0])[-2]
    output, weight = prod(_sizes(outs[0][0])), _sizes(ins[1][0])
    if "matmul" in head:
        return output * _sizes(ins[0][0])[-1]
    return output * prod(weight[:-1])


def _loops(head: str) -> dict[str, int]:
    """Return the range of each loop that indexes a dimension by itself."""
    sizes = [_sizes(match[0]) for match in _TENSOR.findall(head.partition("ins(")[2])]
    ranges: dict[str, int] = {}
    for (_, results), shape in zip(_MAP.findall(head), sizes, strict=False):
        for expression, size in zip(results.split(", "), shape, strict=False):
            if re.fullmatch(r"d\d+", expression):
                ranges[expression] = size
    return ranges


def _tiles(text: str) -> list[int]:
    """Return sizes of a matrix in tiles: of the batch, if there is one, rows and columns.

    Rows that fill a tile up count, but not where the number of tiles is unknown.
    """
    *batch, rows, columns, height, width = text.rstrip("x").split("x")
    height = height if rows != "?" else "1"
    return [
        *_sizes("x".join(batch)),
        prod(_sizes(f"{rows}x{height}")),
        prod(_sizes(f"{columns}x{width}")),
    ]


def _sizes(text: str) -> list[int]:
    return [1 if size == "?" else int(size) for size in text.split("x") if size]
