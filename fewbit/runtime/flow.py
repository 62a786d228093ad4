"""Where values of a placed program are: on which device each is, and what is transferred.

A value is on the device of the part that gives it, an input where functions run, and state with the
part that updates it.
"""

from __future__ import annotations

from functools import cached_property

from fewbit.program.artifact import Manifest, Part


class Flow:
    """The values of a manifest, by their names."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.default = manifest.options["default"]
        """The target where inputs are read and outputs are given."""

    @cached_property
    def makers(self) -> dict[str, int]:
        """The part that gives each value but inputs."""
        parts = enumerate(self.manifest.parts)
        return {name: number for number, part in parts for name in part.outputs}

    @cached_property
    def states(self) -> frozenset[str]:
        return frozenset(t.updates for t in self.manifest.outputs if t.updates is not None)

    @cached_property
    def updated(self) -> dict[str, str]:
        """The state whose new value a value is."""
        pairs = zip(self.manifest.outputs, self.manifest.results, strict=True)
        return {
            name: tensor.updates
            for tensor, name in pairs
            if tensor.updates is not None and name in self.makers
        }

    @cached_property
    def owners(self) -> dict[str, int]:
        """The part that updates each state."""
        return {state: self.makers[name] for name, state in self.updated.items()}

    def updates_of(self, part: Part) -> dict[int, int]:
        """Return the state that a part reads and updates, by numbers of its outputs and inputs."""
        pairs = ((i, self.updated.get(name)) for i, name in enumerate(part.outputs))
        return {i: part.inputs.index(state) for i, state in pairs if state in part.inputs}

    @cached_property
    def read_again(self) -> frozenset[str]:
        """State whose old value may be read where it is, after a part has updated it."""
        parts = self.manifest.parts
        again = {
            state
            for state, owner in self.owners.items()
            for number, part in enumerate(parts)
            if number != owner and state in part.inputs and part.target == parts[owner].target
        }
        return frozenset(again | (self.owners.keys() & set(self.manifest.results)))

    @cached_property
    def transfers(self) -> dict[str, list[int]]:
        """The transfers of each value, by their numbers."""
        numbers: dict[str, list[int]] = {}
        for number, transfer in enumerate(self.manifest.transfers):
            numbers.setdefault(transfer.value.name, []).append(number)
        return numbers

    def home(self, name: str) -> str:
        """Return the target on whose device a value is first."""
        maker = self.makers.get(name, self.owners.get(name))
        return self.default if maker is None else self.manifest.parts[maker].target

    def home_of_result(self, state: str | None, name: str) -> str:
        """Return where an output is read: new state where it stays, all else on the default."""
        return self.home(name) if state is not None else self.default

    @cached_property
    def needed(self) -> set[tuple[str, str, str]]:
        """What has to be transferred: value, source and target."""
        read = {(name, part.target) for part in self.manifest.parts for name in part.inputs}
        for tensor, name in zip(self.manifest.outputs, self.manifest.results, strict=True):
            read.add((name, self.home_of_result(tensor.updates, name)))
        return {(n, self.home(n), target) for n, target in read if self.home(n) != target}
