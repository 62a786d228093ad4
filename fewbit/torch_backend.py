"""`torch.compile(model, backend="fewbit")`: inference on compiled code.

Dynamo hands over graphs of torch functions. Each is compiled by `fewbit.jit` when it is first
called: parameters and buffers become constants, and are compared at every call, so that changed
weights compile again (torch keeps no count of writes through `.data`, which are not seen). An op
that cannot be compiled runs in PyTorch, with a warning that names it, and the parts before and
behind it are compiled. Where gradients are needed, all runs in PyTorch.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, cast

import torch
from torch import fx, nn
from torch._dynamo.backends.registry import register_backend
from torch.fx.node import map_arg
from torch.fx.passes.split_module import split_module
from torch.utils._python_dispatch import TorchDispatchMode

from fewbit.errors import Error, UsageError
from fewbit.quant.recipe import Recipe
from fewbit.runtime.jit import Jit
from fewbit.runtime.native import check_threads

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
    return Subgraph(graph_module, given)


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
        self.ports = _Ports(graph_module.graph)
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
        return self.ports.merge(outputs, args)

    def _must_be_eager(self, args: Sequence[Any]) -> bool:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            _warn(
                "gradients",
                "gradients are needed, so the model runs in PyTorch; call it under "
                "torch.no_grad() to run compiled code",
            )
            return True
        if not all(t.is_cpu for t in tensors):
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
        """Run in PyTorch what cannot be compiled: some ops, or else the whole graph."""
        self._fallback = True
        self._frozen.clear()
        ops = _named_ops(e)
        for op in ops:
            _warn(op, f"the op '{op}' cannot be compiled and runs in PyTorch")
        if not ops:
            reason = e.what if isinstance(e, Error) else f"{type(e).__name__}: {e}"
            _warn(reason, f"a part of the model runs in PyTorch: {reason}")
            return
        excluded = self.excluded.union(ops)
        parts = _split(self._graph_module, ops, args) if excluded != self.excluded else None
        if parts is None:
            return
        for name, part in list(parts.named_children()):
            if isinstance(part, fx.GraphModule) and not part.meta.get(_EAGER):
                setattr(parts, name, _Call(Subgraph(part, self.options, excluded)))
        self.eager = parts


class _Ports:
    """What a graph's inputs and outputs are to us."""

    def __init__(self, graph: fx.Graph) -> None:
        self.inputs = [node for node in graph.nodes if node.op == "placeholder"]
        self.frozen = dict(self._named_weights())
        self.constants = [
            i
            for i, node in enumerate(self.inputs)
            if not isinstance(_value(node), torch.Tensor) or _is_number(node)
        ]
        others = {*self.frozen, *self.constants}
        self.tensors = [i for i in range(len(self.inputs)) if i not in others]
        (self.output,) = (node for node in graph.nodes if node.op == "output")
        wanted = list(dict.fromkeys(self.output.all_input_nodes))
        self.computed = [node for node in wanted if self._is_computed(node)]
        self.uncompiled = [node for node in wanted if node not in self.computed]
        self._eager = _selection(graph, self.uncompiled) if self.uncompiled else None

    @property
    def symbolic(self) -> bool:
        """Whether a size is not known."""
        return any(self.dynamic_shapes)

    @property
    def dynamic_shapes(self) -> Any:
        """For `torch.export`: every size that is not known."""
        shapes = [_value(self.inputs[i]).shape for i in self.tensors]
        automatic = torch.export.Dim.AUTO
        return tuple(
            {axis: automatic for axis, size in enumerate(shape) if not isinstance(size, int)}
            for shape in shapes
        )

    def _named_weights(self) -> list[tuple[int, str]]:
        named: dict[str, int] = {}
        for i, node in enumerate(self.inputs):
            if not _is_weight(node):
                continue
            name = _weight_name(node)
            while name in named:
                name += "_"
            named[name] = i
        return [(i, name) for name, i in named.items()]

    def _is_computed(self, node: fx.Node) -> bool:
        """Sizes, inputs, and views of inputs are left to PyTorch: a copy is no view."""
        value = _value(node)
        if node.op in ("placeholder", "get_attr") or not isinstance(value, torch.Tensor):
            return False
        inputs = [_value(each) for each in self.inputs]
        shared = [_storage(each) for each in inputs if isinstance(each, torch.Tensor)]
        return _storage(value) not in shared

    def key(self, args: Sequence[Any]) -> Any:
        """Which weights are given, and which constants that are no sizes of inputs."""
        numbers = [args[i] for i in self.constants if self.size(self.inputs[i]) is None]
        plain = [n.item() if isinstance(n, torch.Tensor) else n for n in numbers]
        return tuple(id(args[i]) for i in self.frozen), tuple(plain)

    def size(self, node: fx.Node) -> tuple[int, int] | None:
        """The input, and the dimension of it, that a number is the size of."""
        for i in self.tensors:
            for axis, size in enumerate(_value(self.inputs[i]).shape):
                if not isinstance(size, int) and str(size) == str(_value(node)):
                    return i, axis
        return None

    def merge(self, compiled: Sequence[Any], args: Sequence[Any]) -> Any:
        """The graph's outputs, from compiled code and from PyTorch."""
        values = dict(zip(self.computed, compiled, strict=True))
        if self._eager is not None:
            values |= dict(zip(self.uncompiled, self._eager(*args), strict=True))
        return map_arg(self.output.args[0], lambda node: values[node])


class _Compiled:
    """A graph with given weights: for any size where that works, else size by size."""

    def __init__(
        self,
        graph_module: fx.GraphModule,
        ports: _Ports,
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
            module = _freeze(self._graph_module, self._ports, args, dynamic=dynamic)
        return Jit(module, dynamic_shapes=dynamic_shapes, **self._options)


def _freeze(
    graph_module: fx.GraphModule, ports: _Ports, args: Sequence[Any], *, dynamic: bool
) -> fx.GraphModule:
    """The graph with its weights and constants inside, and outputs that are computed."""
    graph = fx.Graph()
    known: dict[fx.Node, Any] = {}
    attributes: dict[str, Any] = {}
    for i in ports.tensors:
        known[ports.inputs[i]] = graph.placeholder(ports.inputs[i].name)
    for i, name in ports.frozen.items():
        # Tracing writes to buffers, and what it writes to shall not look changed.
        keep = isinstance(args[i], nn.Parameter) and not args[i].is_inference()
        attributes[name] = args[i] if keep else args[i].detach().clone()
        known[ports.inputs[i]] = graph.get_attr(name)
    for i in ports.constants:
        node, value = ports.inputs[i], args[i]
        size = ports.size(node) if dynamic else None
        if size is not None:
            sized = known[ports.inputs[size[0]]]
            known[node] = graph.call_function(torch.ops.aten.sym_size.int, (sized, size[1]))
        else:
            known[node] = value.item() if isinstance(value, torch.Tensor) else value
    for node in graph_module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op == "call_method" and node.target == "item" and _is_number(node.args[0]):
            known[node] = known[node.args[0]]
            continue
        if node.op in ("get_attr", "call_module"):
            attributes[node.target] = operator.attrgetter(node.target)(graph_module)
        known[node] = graph.node_copy(node, known.__getitem__)
    graph.output(tuple(known[node] for node in ports.computed))
    return fx.GraphModule(attributes, graph)


def _selection(graph: fx.Graph, nodes: Sequence[fx.Node]) -> fx.GraphModule:
    """Return the part of a graph that computes these nodes."""
    copy = fx.Graph()
    known: dict[fx.Node, fx.Node] = {}
    needed = set(nodes)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.all_input_nodes)
    for node in graph.nodes:
        if node.op == "placeholder" or (node in needed and node.op != "output"):
            known[node] = copy.node_copy(node, known.__getitem__)
    copy.output(tuple(known[node] for node in nodes))
    return fx.GraphModule(cast(nn.Module, graph.owning_module), copy)


_EAGER, _NAME = "fewbit_eager", "fewbit_name"
"""Notes of ours in the metadata of parts and nodes."""


def _split(
    graph_module: fx.GraphModule, ops: Sequence[str], args: Sequence[Any]
) -> fx.GraphModule | None:
    """The graph as parts, in turn without and with these ops; None if no node has them."""
    with torch.no_grad():
        bad = _nodes_with(graph_module, set(ops), args)
    calls = [n for n in graph_module.graph.nodes if n.op.startswith("call")]
    if not bad or len(bad) == len(calls):
        return None
    place: dict[fx.Node, int] = {}
    part = 0
    for node in calls:
        if node.target is operator.getitem and node.args[0] in place:
            place[node] = place[node.args[0]]
            continue
        if place and (node in bad) != (part % 2 == 1):
            part += 1
        elif not place and node in bad:
            part = 1
        place[node] = part
    parts = split_module(graph_module, graph_module, lambda node: place.get(node, 0))
    for name, child in parts.named_children():
        number = name.rpartition("_")[2]
        if isinstance(child, fx.GraphModule) and number.isdigit() and int(number) % 2 == 1:
            child.meta[_EAGER] = True
    return parts


def _nodes_with(graph_module: fx.GraphModule, ops: set[str], args: Sequence[Any]) -> set[fx.Node]:
    """The nodes that call one of these ATen ops, found by running the graph on copies."""
    nodes: set[fx.Node] = set()

    class Record(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            called.add(str(function))
            return function(*args, **(kwargs or {}))

    class Attribute(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            called.clear()
            result = super().run_node(n)
            if called & ops and n.op.startswith("call"):
                nodes.add(n)
            return result

    called: set[str] = set()
    copies = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    with Record():
        Attribute(graph_module).run(*copies)
    return nodes


class _Call(nn.Module):
    """A part of a graph that stands in for the module that it was."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def _value(node: fx.Node) -> Any:
    return node.meta.get("example_value")


def _storage(tensor: torch.Tensor) -> int:
    return cast(Any, tensor.untyped_storage())._cdata


def _is_weight(node: fx.Node) -> bool:
    """Dynamo marks what belongs to modules: parameters, buffers, tensors in attributes."""
    return "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {})


def _is_number(node: Any) -> bool:
    """Whether this is a float, which Dynamo passes as a tensor for its item."""
    if not isinstance(node, fx.Node) or node.op != "placeholder":
        return False
    value = _value(node)
    if not isinstance(value, torch.Tensor) or value.shape or value.dtype != torch.float64:
        return False
    return all(user.target == "item" for user in node.users)


def _weight_name(node: fx.Node) -> str:
    """`fc.weight`, of `L['self']._modules['fc']._parameters['weight']`.

    Dynamo forgets where an input came from when it is done, and parts are cut later.
    """
    if _NAME not in node.meta:
        source = getattr(node.meta.get("grapharg"), "source", None)
        parts = re.findall(r"_(?:modules|parameters|buffers)\['(\w+)'\]", _source_name(source))
        node.meta[_NAME] = ".".join(parts) or node.name
    return node.meta[_NAME]


def _source_name(source: Any) -> str:
    name: Any = getattr(source, "name", "")
    return str(name() if callable(name) else name)


def _stamp(tensor: torch.Tensor) -> tuple[int, int]:
    """Another one after the tensor was written to."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


def _named_ops(e: Exception) -> list[str]:
    """The ops that an error of the importer lists."""
    return list(dict.fromkeys(re.findall(r"^  ([\w.]+): ", str(e), re.MULTILINE)))


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
