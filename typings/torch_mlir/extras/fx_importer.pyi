from typing import Any

from torch.fx import Graph
from torch_mlir.ir import Context

class FxImporter:
    module: Any
    def __init__(self, *, context: Context) -> None: ...
    def import_stateless_graph(self, g: Graph, *, func_name: str) -> None: ...
