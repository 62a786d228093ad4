# What is not named here is Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
