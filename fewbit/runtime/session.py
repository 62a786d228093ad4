"""A compiled program with a state, called step by step.

    decode = artifact.session()
    logits = decode(token, position)

The state is in arrays that the session keeps, and that each call updates where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fewbit.errors import UsageError
from fewbit.runtime.held_state import HeldState
from fewbit.runtime.native import Array


class StatefulCall(Protocol):
    """A call that can be made again and again."""

    @property
    def run(self) -> Callable[[], None]: ...

    @property
    def own_outputs(self) -> tuple[Array, ...]:
        """The outputs that are not new values of state."""
        ...


@runtime_checkable
class StatefulRunner(Protocol):
    """What runs an artifact and can update its state in place."""

    @property
    def state(self) -> Sequence[object]: ...

    def initial_state(self) -> Mapping[str, Array | HeldState]: ...

    def check_own(self, arrays: Sequence[Any]) -> list[Array]: ...

    def prepare(
        self, *arrays: Any, threads: int | None = None, in_place: bool = False
    ) -> StatefulCall: ...


class Session:
    """One course of a program; sessions of one program do not know of each other."""

    def __init__(self, library: StatefulRunner, threads: int | None = None) -> None:
        if not library.state:
            raise UsageError(
                "this program has no state", hint="call it as it is: artifact(*inputs)"
            )
        self._library = library
        self._threads = threads
        self._calls: dict[tuple[tuple[int, ...], ...], tuple[list[Array], StatefulCall]] = {}
        self.state: dict[str, Any] = dict(library.initial_state())
        """The state, by the names of inputs; what is written here is seen by the next call.

        These are arrays; what a device holds reads as one, and is written by `assign`."""

    def __call__(self, *arrays: Any) -> Any:
        """Return the program's own outputs: one, or a tuple of several."""
        outputs = self.run(*arrays)
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, *arrays: Any) -> tuple[Array, ...]:
        given = self._library.check_own(arrays)
        sizes = tuple(array.shape for array in given)
        if sizes not in self._calls:
            kept = [array.copy() for array in given]
            call = self._library.prepare(
                *kept, *self.state.values(), threads=self._threads, in_place=True
            )
            self._calls[sizes] = kept, call
        kept, call = self._calls[sizes]
        for array, place in zip(given, kept, strict=True):
            np.copyto(place, array)
        call.run()
        return tuple(output.copy() for output in call.own_outputs)

    def reset(self) -> None:
        """Begin anew, with the state that the program starts from."""
        for name, start in self._library.initial_state().items():
            state = self.state[name]
            if isinstance(state, HeldState):
                state.assign(start)
            else:
                np.copyto(state, start)
