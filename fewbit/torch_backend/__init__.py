"""`torch.compile(model, backend="fewbit")`: inference on compiled code.

Dynamo hands over graphs of torch functions. Each is compiled by `fewbit.jit` when it is first
called: parameters and buffers become constants, and are compared at every call, so that changed
weights compile again (torch keeps no count of writes through `.data`, which are not seen). What
cannot be compiled runs in PyTorch, with a warning that names it, and the parts before and behind it
are compiled (`split`); `report()` has them all. Where gradients are needed, all runs in PyTorch.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.registry import register_backend

from fewbit.errors import Error, UsageError
from fewbit.quant.recipe import Recipe
from fewbit.runtime.jit import Jit
from fewbit.runtime.native import check_threads
from fewbit.torch_backend.ports import Ports, freeze
from fewbit.torch_backend.report import Part, Report, add_graph, clear_report, report
from fewbit.torch_backend.split import EAGER, Call, calls_in, split_at_ops, split_in_two

__all__ = ["EagerWarning", "Part", "Report", "Subgraph", "clear_report", "fewbit", "report"]

OPTIONS = ("recipe", "calibration", "passes", "threads")
"""What `torch.compile(..., options={...})` may set; as for `fewbit.jit`."""


class EagerWarning(UserWarning):
    """A part of a model runs in PyTorch, not on compiled code."""


def fewbit(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """The backend: a function that does what the graph does."""
    for name in options or {}:
        if name not in OPTIONS:
            hint = f"options of the backend are {', '.join(OPTIONS)}"
            raise UsageError(f"there is no option '{name}'", hint=hint)
    given = dict(options or {})
    if given.get("recipe") is not None:
        given["recipe"] = Recipe.of(given["recipe"])
    if "threads" in given:
        check_threads(given["threads"])
    graph = Subgraph(graph_module, given)
    add_graph(graph.part)
    return Summarized(graph)


class Summarized:
    """A whole graph, which says once how much of it runs in PyTorch."""

    def __init__(self, graph: Subgraph) -> None:
        self.graph = graph
        self._said: str | None = None

    def __call__(self, *args: Any) -> Any:
        result = self.graph(*args)
        if self.graph.part.reasons and str(self.graph.part) != self._said:
            self._said = str(self.graph.part)
            _log.info(self._said)
            if self.graph.part.compiled_ops:
                _warn(self._said, f"{self._said}. fewbit.torch_backend.report() lists all graphs")
        return result


class Subgraph:
    """A graph of Dynamo's, compiled when it is called."""

    def __init__(
        self,
        graph_module: fx.GraphModule,
        options: dict[str, Any],
        excluded: frozenset[str] = frozenset(),
    ) -> None:
        self.excluded = excluded
        """Ops that were left out of this part already."""
        self.eager: Callable[..., Any] = graph_module
        self.options = options
        self.part = Part(len(calls_in(graph_module)))
        """What is told of it."""
        self.ports = Ports(graph_module.graph)
        self._graph_module = graph_module
        self._frozen: dict[Any, _Compiled] = {}
        self._fallback = not self.ports.computed

    def __call__(self, *args: Any) -> Any:
        if self._fallback or self._must_be_eager(args):
            return self.eager(*args)
        try:
            outputs = self._compile(args)(args)
        except Exception as e:
            self._give_up(e, args)
            return self.eager(*args)
        self.part.is_compiled, self.part.reason = True, None
        return self.ports.merge(outputs, args)

    def _must_be_eager(self, args: Sequence[Any]) -> bool:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            self.part.reason = "gradients are needed"
            _warn(
                "gradients",
                "gradients are needed, so the model runs in PyTorch; call it under "
                "torch.no_grad() to run compiled code",
            )
            return True
        if not all(t.is_cpu for t in tensors):
            self.part.reason = "tensors are not on the CPU"
            _warn("device", "the tensors are not on the CPU, so the model runs in PyTorch")
            return True
        return False

    def _compile(self, args: Sequence[Any]) -> _Compiled:
        """The code for the weights and constants among these arguments, as they are now."""
        key = self.ports.key(args)
        stamps = tuple(_stamp(args[i]) for i in self.ports.frozen)
        known = self._frozen.get(key)
        if known is None or known.stamps != stamps:
            known = _Compiled(self._graph_module, self.ports, self.options, list(args), stamps)
            self._frozen[key] = known
        return known

    def _give_up(self, e: Exception, args: Sequence[Any]) -> None:
        """Run in PyTorch what cannot be compiled: some ops, or a part of the graph."""
        self._fallback = True
        self._frozen.clear()
        ops = _named_ops(e)
        reason = e.what if isinstance(e, Error) else f"{type(e).__name__}: {e}"
        self.part.is_compiled = False
        self.part.reason = ", ".join(ops) or next(iter(reason.splitlines()), "")
        for op in ops:
            _warn(op, f"the op '{op}' cannot be compiled and runs in PyTorch")
        if not ops:
            _warn(reason, f"a part of the model runs in PyTorch: {reason}")
        parts = self._cut(e, ops, args)
        if parts is None:
            return
        for name, child in list(parts.named_children()):
            if not isinstance(child, fx.GraphModule):
                continue
            if child.meta.get(EAGER):
                self.part.parts.append(Part(len(calls_in(child)), self.part.reason))
                continue
            inner = Subgraph(child, self.options, self.excluded.union(ops))
            self.part.parts.append(inner.part)
            setattr(parts, name, Call(inner))
        self.eager = parts

    def _cut(self, e: Exception, ops: list[str], args: Sequence[Any]) -> fx.GraphModule | None:
        """Return the graph in parts; None where PyTorch has to run all of it."""
        if self.excluded.union(ops) != self.excluded:
            return split_at_ops(self._graph_module, ops, args)
        # What the user got wrong, such as a recipe, is wrong for each part as well.
        if ops or isinstance(e, UsageError):
            return None
        return split_in_two(self._graph_module, args)


class _Compiled:
    """A graph with given weights: for any size where that works, else size by size."""

    def __init__(
        self,
        graph_module: fx.GraphModule,
        ports: Ports,
        options: dict[str, Any],
        args: Sequence[Any],
        stamps: tuple[Any, ...],
    ) -> None:
        self.stamps = stamps
        self._graph_module, self._ports, self._options = graph_module, ports, options
        # Their identity is the key, so they must live.
        self._weights = [args[i] for i in ports.frozen]
        self._any_size = self._jit(args, ports.dynamic_shapes) if ports.symbolic else None
        self._by_size: dict[Any, Jit] = {}

    def __call__(self, args: Sequence[Any]) -> Sequence[Any]:
        tensors = [args[i].detach() for i in self._ports.tensors]
        with torch.inference_mode(False), torch.no_grad():
            if self._any_size is not None:
                try:
                    return self._any_size(*tensors)
                except Error as e:
                    if _named_ops(e):
                        raise
                    # Not for any size, then.
                    self._any_size = None
            numbers = [args[i] for i in self._ports.constants]
            key = tuple(n for n in numbers if not isinstance(n, torch.Tensor))
            if key not in self._by_size:
                self._by_size[key] = self._jit(args)
            return self._by_size[key](*tensors)

    def _jit(self, args: Sequence[Any], dynamic_shapes: Any = None) -> Jit:
        dynamic = dynamic_shapes is not None
        with torch.inference_mode(False), torch.no_grad():
            module = freeze(self._graph_module, self._ports, args, dynamic=dynamic)
        return Jit(module, dynamic_shapes=dynamic_shapes, **self._options)


def _stamp(tensor: torch.Tensor) -> tuple[int, int]:
    """Another one after the tensor was written to."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


def _named_ops(e: Exception) -> list[str]:
    """The ops that an error of the importer lists."""
    return list(dict.fromkeys(re.findall(r"^  ([\w.]+): ", str(e), re.MULTILINE)))


_log = logging.getLogger(__name__)
_warned: set[str] = set()


def _warn(about: str, message: str) -> None:
    """Once for each op or reason."""
    if about in _warned:
        return
    _warned.add(about)
    warnings.warn(message, EagerWarning, stacklevel=4)


# PyTorch finds the entry point by itself, and refuses a name that is registered twice.
if "fewbit" not in entry_points(group="torch_dynamo_backends").names:
    register_backend(fewbit, name="fewbit")
