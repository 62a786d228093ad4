"""`fewbit doctor`: what is installed, and what works on this machine.

The probing is in `fewbit.targets`; here its results are gathered into one `Examination`, which is
printed as tables or, with `--json`, as one JSON object with the same content. The exit status is
about the core alone: optional packages and targets may be absent.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from fewbit.targets.probe import Report
    from fewbit.toolchain.machine import Machine
    from fewbit.toolchain.tools import Package, Tool


@dataclass(frozen=True)
class Examination:
    """All that `fewbit doctor` knows of this machine."""

    fewbit: str
    python: str
    healthy: bool
    """Every core package is there, in a version that suits."""
    machine: Machine
    packages: list[Package]
    tools: list[Tool]
    targets: list[Report]


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    hardware: Annotated[
        bool,
        typer.Option("--hardware", help="Measure this processor, and keep its description."),
    ] = False,
) -> int:
    """Show versions, this machine, and which targets work on it."""
    if hardware:
        from fewbit.cost.hardware.host import measure_host, write_host

        description = measure_host()
        path = write_host(description)
        print(description.model_dump_json() if as_json else f"{path.read_text()}\n# kept in {path}")
        return 0
    from fewbit.base.garbage import collect_rarely
    from fewbit.base.progress import progress

    with progress("Examining this machine"), collect_rarely():
        examination = examine()
    if as_json:
        print(json.dumps(asdict(examination), indent=2))
    else:
        _print(examination)
    return 0 if examination.healthy else 1


def examine() -> Examination:
    import fewbit
    from fewbit.targets.probe import probe_targets
    from fewbit.toolchain.machine import this_machine
    from fewbit.toolchain.tools import packages, tools

    installed = packages()
    return Examination(
        fewbit=fewbit.__version__,
        python=platform.python_version(),
        healthy=all(package.suits for package in installed if package.extra is None),
        machine=this_machine(),
        packages=installed,
        tools=tools(),
        targets=probe_targets(),
    )


def _print(examination: Examination) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 140
    console.print(f"fewbit {examination.fewbit}, Python {examination.python}")
    for line in _machine_lines(examination.machine):
        console.print(line)
    for table in (
        _core_table(examination.packages),
        _extras_table(examination.packages),
        _tool_table(examination.tools),
        _target_table(examination.targets),
    ):
        console.print()
        console.print(table)
    if not examination.healthy:
        console.print()
        console.print("The core is broken: run 'make setup', or 'pip install -e .'", style="red")


def _machine_lines(machine: Machine) -> list[str]:
    caches = ", ".join(f"{name} {_size(size)}" for name, size in machine.caches.items())
    return [
        f"{machine.processor or machine.architecture} ({machine.architecture}, LLVM calls it "
        f"{machine.llvm_processor or 'nothing'}), {machine.system}",
        f"{machine.cores} cores, {_size(machine.memory)} memory, caches {caches or 'unknown'}",
        f"features for low-bit kernels: {' '.join(machine.features) or 'none known'}",
    ]


def _size(count: int) -> str:
    if count >= 1 << 30:
        return f"{count / (1 << 30):.1f} GiB"
    return f"{count / (1 << 20):.4g} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def _core_table(packages: list[Package]) -> Table:
    table = _table("core package", "found", "wanted", "")
    for package in packages:
        if package.extra is None:
            verdict = "ok" if package.suits else "wrong version" if package.found else "missing"
            table.add_row(
                package.name,
                package.found or "-",
                package.wanted or "any",
                verdict,
                style=None if package.suits else "red",
            )
    return table


def _extras_table(packages: list[Package]) -> Table:
    table = _table("extra", "status", "found", "what to install")
    extras = dict.fromkeys(package.extra for package in packages if package.extra)
    for extra in extras:
        members = [package for package in packages if package.extra == extra]
        complete = all(package.suits for package in members)
        versions = " ".join(f"{p.name} {p.found}" for p in members if p.found)
        install = "" if complete else f"pip install -e '.[{extra}]'"
        table.add_row(extra, "installed" if complete else "not installed", versions or "-", install)
    return table


def _tool_table(tools: list[Tool]) -> Table:
    table = _table("tool", "version", "what for", "path")
    for tool in tools:
        version = tool.version or ("found" if tool.path else "not found")
        table.add_row(tool.name, version, tool.purpose, tool.path or "-")
    return table


def _target_table(reports: list[Report]) -> Table:
    styles = {"works": "green", "unavailable": "yellow"}
    table = _table("target", "status", "why", "what to install")
    for report in reports:
        table.add_row(
            report.target, report.status, report.why, report.install, style=styles[report.status]
        )
    return table


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
