from collections.abc import Callable
from typing import Any

from torch._ops import OpOverload

def get_decomposition_table() -> dict[OpOverload, Callable[..., Any]]: ...
