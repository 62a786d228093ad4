"""What a program that boots prints, on the simulator: for people to look at before they copy it."""

from __future__ import annotations

from fewbit.errors import UsageError
from fewbit.program.artifact import Folder
from fewbit.simulators.riscv.state import Coprocessor
from fewbit.targets.bare_metal.program import read_report
from fewbit.targets.bare_metal.simulate import boot
from fewbit.targets.view import Seen


def boot_folder(folder: Folder, coprocessor: Coprocessor | None = None) -> Seen:
    """Boot an artifact's program, and return its text and status."""
    name = f"{folder.manifest.name}.elf"
    if name not in folder.manifest.files:
        raise UsageError(
            f"{folder.path} has no program that boots", hint="compile it with --bare-metal"
        )
    uart = folder.manifest.options.get("uart")
    done = boot(
        folder.file(name).read_bytes(), coprocessor, uart=None if uart is None else int(uart, 16)
    )
    plain = {"status": done.status, "report": dict(read_report(done.printed))}
    return Seen(plain, f"{done.printed}status {done.status}")
