"""`fewbit inspect DIR --commands`: what an artifact for Gemmini sends, disassembled."""

from __future__ import annotations

from fewbit.base.json_output import print_json
from fewbit.program.artifact import open_folder
from fewbit.targets.gemmini.call_streams import Stream
from fewbit.targets.gemmini.streams_file import read_streams


def show_commands(artifact: str, as_json: bool) -> None:
    sent = read_streams(open_folder(artifact))
    if as_json:
        start = [str(command) for command in sent.start]
        print_json({"start": start, "streams": [_plain(stream) for stream in sent.layers]})
        return
    if sent.start:
        print("\n".join(["start of a run:", *(f"  {command}" for command in sent.start)]))
    for number, stream in enumerate(sent.layers):
        if number or sent.start:
            print()
        print(_title(stream))
        width = len(str(len(stream.commands) - 1))
        for place, command in enumerate(stream.commands):
            print(f"  {place:>{width}}  {command}")


def _title(stream: Stream) -> str:
    for_each = ", for each sample" if stream.repeated else ""
    buffers = ", ".join(stream.buffers)
    return (
        f"{stream.name}: {stream.kind} of {buffers}; {len(stream.commands):,} commands, "
        f"{stream.macs:,} MACs{for_each}"
    )


def _plain(stream: Stream) -> dict[str, object]:
    return {
        "layer": stream.name,
        "kind": stream.kind,
        "buffers": stream.buffers,
        "macs": stream.macs,
        "repeated": stream.repeated,
        "commands": [str(command) for command in stream.commands],
    }
