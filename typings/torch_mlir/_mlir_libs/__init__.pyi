from typing import Any

_mlirRegisterEverything: Any
