"""The dataflow of a model without example inputs, by symbolic tracing (torch.fx).

Symbolic tracing runs `forward` on stand-ins for tensors, so it fails, and says so, where a model's
Python depends on shapes or values. Ranks of tensors are unknown to it. With example inputs,
`fewbit.quant.fusion.dataflow.trace` knows more and takes every model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import fx, nn

from fewbit.base.typed_torch import forward_hooks, named_modules
from fewbit.errors import UnsupportedError
from fewbit.quant.fusion.dataflow import Dataflow, LayerCall, shared_parameters
from fewbit.quant.fusion.layers import TRANSPARENT, is_layer
from fewbit.quant.fusion.running import looking_at


class _LayerTracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return is_layer(m) or super().is_leaf_module(m, module_qualified_name)


def trace_symbolically(model: nn.Module) -> Dataflow:
    attributes = [(module, dict(vars(module))) for module in model.modules()]
    try:
        with looking_at(model):
            graph = _LayerTracer().trace(model)
    except Exception as problem:
        raise _tracing_error(
            f"{type(problem).__name__}: {str(problem).partition(chr(10))[0]}"
        ) from problem
    finally:
        stored = _take_back_stand_ins(attributes)
    if stored:
        raise _tracing_error(f"it stores tensors in '{stored[0]}'")
    return _Reader(model, graph).dataflow()


def _tracing_error(why: str) -> UnsupportedError:
    return UnsupportedError(
        f"the structure of this model cannot be seen without running it: {why}",
        hint="pass example_inputs, the arguments of one call",
    )


def _take_back_stand_ins(attributes: list[tuple[nn.Module, dict[str, Any]]]) -> list[str]:
    """Put back what `forward` assigned while it was traced; the names of those attributes."""
    stored: list[str] = []
    for module, before in attributes:
        now = vars(module)
        names = [name for name, value in now.items() if isinstance(value, fx.Proxy)]
        for name in names:
            del now[name]
            if name in before:
                now[name] = before[name]
        stored += names
    return stored


class _Reader:
    def __init__(self, model: nn.Module, graph: fx.Graph) -> None:
        self._model = model
        self._graph = graph
        self._modules = dict(named_modules(model, remove_duplicate=False))
        self._paths = {module: path for path, module in named_modules(model)}
        self._calls: dict[fx.Node, LayerCall] = {}

    def dataflow(self) -> Dataflow:
        for node in self._graph.nodes:
            module = self._module(node)
            if module is not None and is_layer(module):
                call = LayerCall(self._paths[module], module, self._source(node))
                call.altered = bool(forward_hooks(module))  # not run here: assume the worst
                self._calls[node] = call
        for node, call in self._calls.items():
            self._note_users(node, call)
        return Dataflow(
            list(self._calls.values()), set(self._strays()), shared_parameters(self._model)
        )

    def _module(self, node: fx.Node) -> nn.Module | None:
        return self._modules[str(node.target)] if node.op == "call_module" else None

    def _source(self, node: fx.Node) -> LayerCall | None:
        first: Any = next(iter([*node.args, *node.kwargs.values()]), None)
        while isinstance(first, fx.Node) and isinstance(self._module(first), TRANSPARENT):
            first = first.args[0]
        return self._calls.get(first) if isinstance(first, fx.Node) else None

    def _note_users(self, node: fx.Node, call: LayerCall) -> None:
        for user in node.users:
            if user.op == "output":
                call.kept = True
            elif isinstance(self._module(user), TRANSPARENT):
                self._note_users(user, call)
            else:
                call.used_by(self._calls.get(user) or f"'{user.name}'")

    def _strays(self) -> Iterator[str]:
        for node in self._graph.nodes:
            if node.op != "get_attr":
                continue
            owner = self._modules.get(str(node.target).rpartition(".")[0])
            if owner is not None:
                yield self._paths[owner]
