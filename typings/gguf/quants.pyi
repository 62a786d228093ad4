from typing import Any

from gguf import GGMLQuantizationType
from numpy import ndarray

def dequantize(data: ndarray[Any, Any], qtype: GGMLQuantizationType) -> ndarray[Any, Any]: ...
def quantize(data: ndarray[Any, Any], qtype: GGMLQuantizationType) -> ndarray[Any, Any]: ...
