"""Other tools that run the same model, and which of them are installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from fewbit.bench.peers.peer import Peer
from fewbit.errors import MissingToolError, UsageError

PEERS = {
    "torch": "eager:Eager",
    "onnxruntime": "onnx_runtime:OnnxRuntime",
    "openvino": "open_vino:OpenVino",
    "iree": "iree:Iree",
}
"""Where each is; a tool is imported only by the process that runs it."""
SPECIAL = {"llama.cpp": "llamacpp:LlamaCpp"}
"""Tools that run one family of models, and are asked for by name."""
OURS = "fewbit"
OF_TEXT = {OURS: "text_compiled:TextCompiled", "llama.cpp": "text_llamacpp:TextLlamaCpp"}
"""Tools that read a text with a language model and keep its caches themselves."""
AVAILABLE, NONE = "available", "none"


def find_tool(name: str, of_text: bool = False) -> Peer:
    """Return what runs the model by a tool; `fewbit` is one of them."""
    places = OF_TEXT if of_text else {OURS: "compiled:Compiled", **PEERS, **SPECIAL}
    place = places[name]
    module, _, kind = place.partition(":")
    return getattr(import_module(f"fewbit.bench.peers.{module}"), kind)()


def parse_peers(text: str, quantized: bool) -> list[str]:
    """Return the tools that `a,b`, `available` or `none` means, all of them installed."""
    if text == NONE:
        return []
    if text == AVAILABLE:
        return [name for name in PEERS if not missing_packages(name, quantized)]
    names = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in (*PEERS, *SPECIAL):
            raise UsageError(
                f"there is no tool '{name}' to compare with",
                hint=f"tools are {', '.join((*PEERS, *SPECIAL))}; or {AVAILABLE}, or {NONE}",
            )
    refuse_missing(names, quantized)
    return names


def parse_text_peers(text: str) -> list[str]:
    """Return the tools to read text beside that `llama.cpp`, `available` or `none` means."""
    others = [name for name in OF_TEXT if name != OURS]
    if text == NONE:
        return []
    if text == AVAILABLE:
        return [name for name in others if not missing_packages(name, True, of_text=True)]
    names = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in others:
            raise UsageError(
                f"there is no tool '{name}' to read text beside",
                hint=f"tools are {', '.join(others)}; or {AVAILABLE}, or {NONE}",
            )
    refuse_missing(names, True, of_text=True)
    return names


def refuse_missing(names: Sequence[str], quantized: bool, of_text: bool = False) -> None:
    missing = {name: missing_packages(name, quantized, of_text) for name in names}
    absent = {name: packages for name, packages in missing.items() if packages}
    if not absent:
        return
    what = "; ".join(f"{name} needs {', '.join(packages)}" for name, packages in absent.items())
    raise MissingToolError(
        f"not all tools to compare with are installed: {what}",
        hint=f"pip install 'fewbit[bench]', or --against {AVAILABLE}",
    )


def missing_packages(name: str, quantized: bool, of_text: bool = False) -> list[str]:
    """Return the packages of a tool that are not installed."""
    return [p for p in find_tool(name, of_text).packages(quantized) if not _is_installed(p)]


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
