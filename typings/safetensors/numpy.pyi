from collections.abc import Mapping
from os import PathLike
from typing import Any

from numpy import ndarray

def load_file(filename: str | PathLike[str]) -> dict[str, ndarray[Any, Any]]: ...
def save_file(
    tensor_dict: Mapping[str, ndarray[Any, Any]],
    filename: str | PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None: ...
