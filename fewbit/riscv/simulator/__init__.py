"""A simulator of RISC-V processors that counts what they execute."""

from fewbit.riscv.simulator.execution import Execution, Histogram, Tally
from fewbit.riscv.simulator.machine import Machine
from fewbit.riscv.simulator.state import Coprocessor, SimulationError

__all__ = ["Coprocessor", "Execution", "Histogram", "Machine", "SimulationError", "Tally"]
