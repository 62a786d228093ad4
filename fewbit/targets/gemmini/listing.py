"""What an artifact sends to the accelerator, disassembled."""

from __future__ import annotations

from collections.abc import Iterator

from fewbit.program.artifact import Folder
from fewbit.targets.gemmini.call_streams import Stream
from fewbit.targets.gemmini.streams_file import Streams, read_streams
from fewbit.targets.view import Seen


def list_commands(folder: Folder) -> Seen:
    """Return the commands of a run, stream by stream."""
    sent = read_streams(folder)
    start = [str(command) for command in sent.start]
    plain = {"start": start, "streams": [_plain(stream) for stream in sent.layers]}
    return Seen(plain, "\n".join(_lines(sent)))


def _lines(sent: Streams) -> Iterator[str]:
    if sent.start:
        yield "start of a run:"
        yield from (f"  {command}" for command in sent.start)
    for number, stream in enumerate(sent.layers):
        if number or sent.start:
            yield ""
        yield _title(stream)
        width = len(str(len(stream.commands) - 1))
        yield from (f"  {place:>{width}}  {each}" for place, each in enumerate(stream.commands))


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
