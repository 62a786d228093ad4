"""The constants that a traced graph reads, held by a torch module under their names in the file.

A first run, before the trace, asks for every constant once, and so registers it. While torch
traces, the same questions are answered with what stands for the module's tensors in the trace, or,
in a branch, with what was passed to it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from fewbit.frontends.onnx.values import Known, outside_trace


class Constants:
    def __init__(self, host: nn.Module) -> None:
        self.host = host
        self._paths: dict[str, list[tuple[str, Tensor]]] = {}
        self._passed: dict[str, Tensor] = {}
        self._noted: list[list[str]] = []

    def read(self, value: Known, tracing: bool) -> Tensor:
        path = self.path(value, tracing)
        return value.tensor if path is None else self.at(path)

    def path(self, value: Known, tracing: bool) -> str | None:
        """Return where a constant is held; None where it is only found while torch traces."""
        return self._path(value.name or "constant", value.tensor, tracing)

    def at(self, path: str) -> Tensor:
        for noted in self._noted:
            if path not in noted:
                noted.append(path)
        if path in self._passed:
            return self._passed[path]
        return self.host.get_buffer(path)

    @contextmanager
    def noting(self) -> Generator[list[str]]:
        """The paths that are read inside."""
        noted: list[str] = []
        self._noted.append(noted)
        try:
            yield noted
        finally:
            self._noted = [n for n in self._noted if n is not noted]

    @contextmanager
    def passing(self, paths: Sequence[str], tensors: Sequence[Tensor]) -> Generator[None]:
        """Read these as given: the operands of a branch."""
        before = self._passed
        self._passed = before | dict(zip(paths, tensors, strict=True))
        try:
            yield
        finally:
            self._passed = before

    def _path(self, name: str, tensor: Tensor, tracing: bool) -> str | None:
        known = self._paths.setdefault(name, [])
        for path, other in known:
            if other is tensor or _same(other, tensor):
                return path
        if tracing:
            return None  # Torch holds it as a constant of the trace.
        path = self._register(f"{name}${len(known)}" if known else name, tensor)
        known.append((path, tensor))
        return path

    def _register(self, name: str, tensor: Tensor) -> str:
        *owners, own = [part or "_" for part in name.split(".")]
        home = self.host
        path: list[str] = []
        for owner in owners:
            while not isinstance(getattr(home, owner, None), nn.Module):
                if not hasattr(home, owner):
                    home.add_module(owner, nn.Module())
                else:
                    owner += "_"
            home = home.get_submodule(owner)
            path.append(owner)
        while hasattr(home, own):
            own += "_"
        with outside_trace():
            home.register_buffer(own, tensor.contiguous())
        return ".".join([*path, own])


def _same(a: Tensor, b: Tensor) -> bool:
    with outside_trace():
        return a.dtype is b.dtype and a.shape == b.shape and bool(torch.equal(a, b))
