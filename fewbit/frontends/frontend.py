"""What a front end is: which objects and files it takes, and the programs that it makes of them.

An object is known by the packages that its classes come from, a file by its suffix or content, so
that no framework is loaded to find out. `frontends/registry.py` lists ours and finds others'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.errors import UsageError
from fewbit.language.config import Logits
from fewbit.quant.cache_scheme import F32, CacheSchemeLike

if TYPE_CHECKING:
    from fewbit.frontends import Shapes
    from fewbit.frontends.input_shape import InputShape
    from fewbit.program.program import Program


@dataclass(frozen=True)
class Given:
    """What a user says of a model beside the model itself."""

    example_inputs: Sequence[Any] | Mapping[str, Any] = ()
    example_kwargs: Mapping[str, Any] | None = None
    dynamic_shapes: Any = None
    input_shapes: Shapes | None = None
    constants: Mapping[str, Any] | None = None
    """Values of inputs that are to be built in."""
    context: int | None = None
    """How many tokens a language model is to keep."""
    cache: CacheSchemeLike = F32
    """What a language model keeps keys and values as."""
    logits: Logits = "last"
    """Whether a language model gives the logits of the last token, or of all."""
    sequences: int = 1
    """How many texts a language model decodes together."""
    steps: bool = False
    """Whether a language model takes one token a call, for targets that fix all sizes."""

    def refuse_decoding(self) -> None:
        """Refuse what only checkpoints of decoders have."""
        if self.logits != "last" or self.sequences != 1:
            raise UsageError(
                "logits of all tokens, and several sequences, are for checkpoints of decoders",
                hint="give a GGUF file or a Hugging Face folder",
            )

    @property
    def inputs_in_order(self) -> Sequence[Any]:
        """Example inputs, of which only PyTorch's models take named ones."""
        if isinstance(self.example_inputs, Mapping):
            raise UsageError(
                "example inputs by name are for PyTorch's models",
                hint="give them in the order of the model's inputs",
            )
        return self.example_inputs

    @property
    def sizes(self) -> list[InputShape] | None:
        """Shapes and types of inputs, in order; None where none are given."""
        from fewbit.frontends.input_shape import InputShape

        if self.input_shapes is None:
            return None
        shapes = self.input_shapes
        given = shapes.values() if isinstance(shapes, Mapping) else shapes
        return [InputShape.of(shape) for shape in given]


class Frontend:
    """A framework or format that models come from; a front end takes objects, files, or both."""

    def takes(self, model: Any) -> bool:
        """Return whether an object is a model of this framework."""
        return False

    def import_object(self, model: Any, given: Given) -> Program:
        raise NotImplementedError

    def reads(self, path: Path) -> bool:
        """Return whether a file or folder that exists is a model in this format."""
        return False

    def import_file(self, path: Path, given: Given) -> Program:
        raise NotImplementedError

    takes_sizes = False
    """Whether `--input-shape` chooses sizes of a file's inputs."""
    takes_constants = False
    """Whether inputs of a file can be given values that are built in."""
    takes_context = False
    """Whether a file is a language model, whose context can be chosen."""


def packages_of(model: object) -> set[str]:
    """The packages that the classes of an object come from."""
    return {each.__module__.partition(".")[0] for each in type(model).__mro__}
