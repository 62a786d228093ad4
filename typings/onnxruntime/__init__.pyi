from collections.abc import Mapping, Sequence
from typing import Any

from numpy import ndarray

Array = ndarray[Any, Any]

class NodeArg:
    name: str
    type: str
    shape: list[int | str | None]

class SessionOptions:
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int

class IOBinding:
    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None: ...
    def bind_output(self, name: str, device_type: str = "cpu") -> None: ...
    def copy_outputs_to_cpu(self) -> list[Array]: ...

class InferenceSession:
    def __init__(
        self,
        path_or_bytes: str | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str] | None = None,
    ) -> None: ...
    def get_inputs(self) -> list[NodeArg]: ...
    def get_outputs(self) -> list[NodeArg]: ...
    def io_binding(self) -> IOBinding: ...
    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Array]
    ) -> list[Array]: ...
    def run_with_iobinding(self, iobinding: IOBinding) -> None: ...
