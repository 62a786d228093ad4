from torch_mlir.ir import _OperationBase

def apply_named_sequence(
    payload_root: _OperationBase,
    transform_root: _OperationBase,
    transform_module: _OperationBase,
) -> None: ...
