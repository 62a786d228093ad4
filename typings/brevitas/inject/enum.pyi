from enum import Enum

class ScalingImplType(Enum):
    PARAMETER_FROM_STATS = "parameter_from_stats"

class ScalingPerOutputType(Enum):
    GROUP = "group"
