from typing import Any

from gguf import GGMLQuantizationType
from numpy import ndarray

def quantize(data: ndarray[Any, Any], qtype: GGMLQuantizationType) -> ndarray[Any, Any]: ...
