"""The streams of an artifact: two files, one of commands and one that says whose they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from fewbit.artifact import Folder
from fewbit.errors import UsageError
from fewbit.targets.gemmini.call_streams import Stream
from fewbit.targets.gemmini.hardware import Hardware
from fewbit.targets.gemmini.records import RECORD_BYTES, pack, unpack

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
    packed = b"".join(pack(each.commands, each.buffers) for each in streams)
    text = json.dumps({"hardware": asdict(hardware), "streams": described}, indent=1)
    return {COMMANDS: packed, STREAMS: text.encode()}


def read_streams(folder: Folder) -> tuple[list[Stream], Hardware]:
    """The streams of an artifact for Gemmini, in the order in which they are sent."""
    if STREAMS not in folder.manifest.files:
        raise UsageError(
            f"{folder.path} has no commands: it is for the target '{folder.manifest.target}'",
            hint="compile with -t gemmini",
        )
    described = json.loads(folder.file(STREAMS).read_text())
    packed = folder.file(COMMANDS).read_bytes()
    streams: list[Stream] = []
    start = 0
    for each in described["streams"]:
        end = start + each["commands"] * RECORD_BYTES
        buffers = tuple(each["buffers"])
        commands = unpack(packed[start:end], buffers)
        about = (each["name"], each["kind"], buffers, each["macs"])
        streams.append(Stream(*about, commands, each["repeated"]))
        start = end
    return streams, Hardware(**described["hardware"])
