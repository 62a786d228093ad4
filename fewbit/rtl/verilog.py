"""A dot unit as Verilog (2001), and a test bench around it.

Two modules: one adds up the products of a clock by a tree whose wires grow by a bit a level, the
other has the accumulators. In each clock with `valid`, a unit takes the next `lanes` elements of x
and of every row of w into registers, so that no path leads from an input through a tree; the next
clock adds them up. Two clocks behind the last of a row, `done` says that `sums` is complete.
Elements are packed lowest first; of one bit, 0 is +1 and 1 is -1.
"""

from __future__ import annotations

from collections.abc import Iterator

from fewbit.rtl.dot_unit import DotUnit


def write(unit: DotUnit) -> str:
    """Return the circuit as Verilog."""
    return f"{_tree(unit)}\n{_accumulators(unit)}"


def _tree(unit: DotUnit) -> str:
    x, w = unit.lanes * unit.x_bits, unit.lanes * unit.w_bits
    lines, width = _levels(unit)
    last = "  input wire last,\n" if unit.remainder < unit.lanes else ""
    return f"""module {unit.name}_tree (
{last}  input wire [{x - 1}:0] x,
  input wire [{w - 1}:0] w,
  output wire [{width - 1}:0] sum
);
{lines}
endmodule
"""


def _levels(unit: DotUnit) -> tuple[str, int]:
    """Return the lines of products and of pairwise sums, and the width of the last sum."""
    width = unit.product_bits
    lines = list(_products(unit, width))
    names = [f"p{i}" for i in range(unit.lanes)]
    level = 0
    while len(names) > 1:
        level += 1
        pairs = [names[i : i + 2] for i in range(0, len(names), 2)]
        names = [f"s{level}_{i}" for i in range(len(pairs))]
        for name, pair in zip(names, pairs, strict=True):
            total = " + ".join(_resize(part, width, width + 1) for part in pair)
            lines.append(f"  wire [{width}:0] {name} = {total};")
        width += 1
    lines.append(f"  assign sum = {names[0]};")
    return "\n".join(lines), width


def _products(unit: DotUnit, width: int) -> Iterator[str]:
    for i in range(unit.lanes):
        factors: list[str] = []
        for name, bits in (("x", unit.x_bits), ("w", unit.w_bits)):
            own = _element_bits(bits)
            yield f"  wire [{own - 1}:0] {name}{i} = {_element(name, bits, i)};"
            factors.append(_resize(f"{name}{i}", own, width))
        kept = "" if i < unit.remainder else f" & {{{width}{{!last}}}}"
        product = " * ".join(factors)
        yield f"  wire [{width - 1}:0] p{i} = {f'({product})' if kept else product}{kept};"


def _resize(name: str, width: int, to: int) -> str:
    """Extend or cut a signed wire, spelled out: tools warn of what is implicit."""
    if to <= width:
        return name if to == width else f"{name}[{to - 1}:0]"
    return f"{{{{{to - width}{{{name}[{width - 1}]}}}}, {name}}}"


def _element_bits(bits: int) -> int:
    return max(bits, 2)


def _element(name: str, bits: int, i: int) -> str:
    return f"{{{name}[{i}], 1'b1}}" if bits == 1 else f"{name}[{bits * i + bits - 1}:{bits * i}]"


def _accumulators(unit: DotUnit) -> str:
    x, w = unit.lanes * unit.x_bits, unit.lanes * unit.w_bits
    _, width = _levels(unit)
    step_bits = max(1, (unit.steps - 1).bit_length())
    last = ".last(last), " if unit.remainder < unit.lanes else ""
    wires, updates = "", ""
    for r in range(unit.rows):
        part = f"sums[{(r + 1) * unit.sum_bits - 1}:{r * unit.sum_bits}]"
        dot = _resize(f"dot{r}", width, unit.sum_bits)
        wires += f"""  wire [{width - 1}:0] dot{r};
  {unit.name}_tree tree{r} ({last}.x(xs), .w(ws[{(r + 1) * w - 1}:{r * w}]), .sum(dot{r}));
"""
        updates += f"      {part} <= first ? {dot} : {part} + {dot};\n"
    return f"""module {unit.name} (
  input wire clk,
  input wire reset,
  input wire valid,
  input wire [{x - 1}:0] x,
  input wire [{unit.rows * w - 1}:0] w,
  output reg done,
  output reg [{unit.rows * unit.sum_bits - 1}:0] sums
);
  reg taken;
  reg [{x - 1}:0] xs;
  reg [{unit.rows * w - 1}:0] ws;
  reg [{step_bits - 1}:0] step;
  wire first = step == {step_bits}'d0;
  wire last = step == {step_bits}'d{unit.steps - 1};
{wires}
  always @(posedge clk) begin
    taken <= !reset && valid;
    if (valid) begin
      xs <= x;
      ws <= w;
    end
    done <= !reset && taken && last;
    if (reset) step <= {step_bits}'d0;
    else if (taken) begin
      step <= last ? {step_bits}'d0 : step + {step_bits}'d1;
{updates}    end
  end
endmodule
"""


def test_bench(unit: DotUnit, inputs: int) -> str:
    """Return a bench that feeds x.hex and w.hex, prints each input's sums, and counts clocks."""
    x, w = unit.lanes * unit.x_bits, unit.rows * unit.lanes * unit.w_bits
    words = inputs * unit.steps
    return f"""module test_bench;
  reg clk = 0, reset = 1, valid = 0;
  reg [{x - 1}:0] x;
  reg [{w - 1}:0] w;
  wire done;
  wire [{unit.rows * unit.sum_bits - 1}:0] sums;
  reg [{x - 1}:0] xs [0:{words - 1}];
  reg [{w - 1}:0] ws [0:{unit.steps - 1}];
  integer i, clocks = 0;
  {unit.name} unit (
    .clk(clk), .reset(reset), .valid(valid), .x(x), .w(w), .done(done), .sums(sums)
  );
  always @(posedge clk) if (valid) clocks = clocks + 1;
  always @(negedge clk) if (done) $display("%h", sums);
  initial begin
    $readmemh("x.hex", xs);
    $readmemh("w.hex", ws);
    #1 clk = 1; #1 clk = 0;
    reset = 0; valid = 1;
    for (i = 0; i < {words}; i = i + 1) begin
      x = xs[i];
      w = ws[i % {unit.steps}];
      #1 clk = 1; #1 clk = 0;
    end
    valid = 0;
    #1 clk = 1; #1 clk = 0;
    #1 $display("clocks %0d", clocks);
    $finish;
  end
endmodule
"""
