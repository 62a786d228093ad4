# Builders of ops: their constructors are generated, and each takes what its op is made of.
from typing import Any

from torch_mlir.ir import _OperationBase

class _Dialect:
    def __getattr__(self, name: str) -> Any: ...

class _Llvm(_Dialect):
    def translate_module_to_llvmir(self, module: _OperationBase) -> str: ...

affine: _Dialect
arith: _Dialect
bufferization: _Dialect
builtin: _Dialect
cf: _Dialect
func: _Dialect
linalg: _Dialect
llvm: _Llvm
math: _Dialect
memref: _Dialect
scf: _Dialect
tensor: _Dialect
torch: _Dialect
vector: _Dialect
