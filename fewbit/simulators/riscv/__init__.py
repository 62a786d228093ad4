"""A simulator of RISC-V processors that counts what they execute."""

from fewbit.simulators.riscv.execution import Execution, Histogram, Tally
from fewbit.simulators.riscv.machine import Machine
from fewbit.simulators.riscv.state import Coprocessor, SimulationError

__all__ = ["Coprocessor", "Execution", "Histogram", "Machine", "SimulationError", "Tally"]
