"""Compile the runtime's C to LLVM IR, for every family of processors: `make runtime`.

The compiler is clang, from the wheel of Zig at the version that pyproject.toml pins; it brings the
headers of every system. What it writes is kept in the package, so users need no compiler. Facts of
the machine (target, its features, debug information) are taken out: the code becomes part of a
module for one processor, which knows them better. `--check` says whether what is kept is current.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

RUNTIME = Path(__file__).parents[1] / "fewbit" / "codegen" / "runtime"
LINUX = ("threads", "dispatch", "detect", "profile")
ANYWHERE = ("alone",)
TARGETS = {
    "x86_64": ("x86_64-linux-gnu", (*LINUX, *ANYWHERE, "half")),
    "aarch64": ("aarch64-linux-gnu", (*LINUX, *ANYWHERE)),
    "riscv64": ("riscv64-linux-gnu", LINUX),
    "x86_64-windows": ("x86_64-windows-gnu", ("threads",)),
    "rv32": ("riscv32-freestanding-none", ("bare_metal", "microcontroller")),
    "rv64": ("riscv64-freestanding-none", ("bare_metal",)),
}
"""By the folder of each: Zig's name of the target, and the parts that are compiled for it."""
FLAGS = (
    *(
        "-std=gnu11",
        "-O1",
        "-g0",
        "-S",
        "-emit-llvm",
        "-fno-discard-value-names",
        "-Wall",
        "-Werror",
    ),
    *("-Wno-unused-command-line-argument", "-fno-strict-aliasing", "-ffp-contract=off"),
    *("-fno-sanitize=all", "-fno-stack-protector", "-fno-unwind-tables"),
    *("-fno-asynchronous-unwind-tables", "-fomit-frame-pointer", "-fvisibility=default"),
)
MORE_FLAGS = {"bare_metal": ["-fno-builtin"], "microcontroller": ["-fno-builtin"]}
HEAD = """; Written by `make runtime` from {source}, do not edit.

"""
KEPT = {"alwaysinline", "noinline", "nounwind", '"no-builtins"'}
"""Attributes of functions that say something about the code itself."""


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale: list[str] = []
    for folder, (target, parts) in TARGETS.items():
        for part in parts:
            path = RUNTIME / "ir" / folder / f"{part}.ll"
            text = compile_part(part, target)
            if check:
                if not path.exists() or path.read_text() != text:
                    stale.append(str(path.relative_to(RUNTIME)))
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if stale:
        print(f"not what the C says, run `make runtime`: {', '.join(stale)}", file=sys.stderr)
    return 1 if stale else 0


def compile_part(part: str, target: str) -> str:
    """The LLVM IR of one file, as it is kept."""
    with TemporaryDirectory() as folder:
        output = Path(folder) / "out.ll"
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target]
        subprocess.run(
            [*compiler, *FLAGS, *MORE_FLAGS.get(part, []), "-o", str(output), f"{part}.c"],
            check=True,
            cwd=RUNTIME,
            env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder},
        )
        return HEAD.format(source=f"{part}.c") + plain(output.read_text())


def plain(text: str) -> str:
    """Clang's text without what depends on the machine or says nothing about the code."""
    lines: list[str] = []
    for line in text.splitlines():
        if re.match(r"; (ModuleID|Function Attrs)|source_filename|target |!", line):
            continue
        line = re.sub(r", ![\w.]+ !\d+", "", line)
        line = re.sub(r"\s+; preds = .*$", "", line)
        line = line.replace("dso_local ", "")
        lines.append(line)
    kept = "\n".join(lines)
    for group in re.findall(r"^attributes (#\d+) = \{.*\}$", kept, re.MULTILINE):
        kept = _with_few_attributes(kept, group)
    return re.sub(r"\n{3,}", "\n\n", kept).strip() + "\n"


def _with_few_attributes(text: str, group: str) -> str:
    """The text without what a group of attributes says of the machine; LLVM wants no empty one."""
    line = re.compile(rf"^attributes {group} = \{{(.*)\}}$", re.MULTILINE)
    match = line.search(text)
    assert match is not None
    kept = [word for word in match[1].split() if word in KEPT]
    if kept:
        return line.sub(f"attributes {group} = {{ {' '.join(kept)} }}", text)
    return re.sub(rf" {group}\b", "", line.sub("", text))


if __name__ == "__main__":
    sys.exit(main())
