"""The streams of an artifact: two files, one of commands and one that says whose they are.

Commands that a run begins with come before those of streams.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from fewbit.errors import UsageError
from fewbit.program.artifact import Folder
from fewbit.simulators.gemmini.command import Command
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.simulators.gemmini.records import RECORD_BYTES, pack, unpack
from fewbit.targets.gemmini.call_streams import Stream
from fewbit.targets.gemmini.issue import START

COMMANDS = "commands.bin"
STREAMS = "streams.json"


def stream_files(streams: Sequence[Stream], hardware: Hardware) -> Mapping[str, bytes]:
    described = [
        {
            "name": each.name,
            "kind": each.kind,
            "buffers": each.buffers,
            "macs": each.macs,
            "commands": len(each.commands),
            "repeated": each.repeated,
        }
        for each in streams
    ]
    start = START if streams else ()
    packed = pack(start, ()) + b"".join(pack(each.commands, each.buffers) for each in streams)
    about = {"hardware": asdict(hardware), "start": len(start), "streams": described}
    text = json.dumps(about, indent=1)
    return {COMMANDS: packed, STREAMS: text.encode()}


@dataclass(frozen=True)
class Streams:
    """What an artifact for Gemmini sends."""

    start: Sequence[Command]
    """Once, before all streams."""
    layers: Sequence[Stream]
    """In the order in which they are sent."""
    hardware: Hardware


def read_streams(folder: Folder) -> Streams:
    """Return what an artifact for Gemmini sends, and to which hardware."""
    if STREAMS not in folder.manifest.files:
        raise UsageError(
            f"{folder.path} has no commands: it is for the target '{folder.manifest.target}'",
            hint="compile with -t gemmini",
        )
    described = json.loads(folder.file(STREAMS).read_text())
    packed = folder.file(COMMANDS).read_bytes()
    streams: list[Stream] = []
    start = described.get("start", 0) * RECORD_BYTES
    first = unpack(packed[:start], ())
    for each in described["streams"]:
        end = start + each["commands"] * RECORD_BYTES
        buffers = tuple(each["buffers"])
        commands = unpack(packed[start:end], buffers)
        about = (each["name"], each["kind"], buffers, each["macs"])
        streams.append(Stream(*about, commands, each["repeated"]))
        start = end
    return Streams(first, streams, Hardware(**described["hardware"]))
