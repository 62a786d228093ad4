// RUN: fewbit-opt %s --split-input-file --verify-diagnostics

func.func @dominance(%x: i32) -> i32 {
  // expected-error @+1 {{used before it is defined}}
  %a = arith.addi %x, %b : i32
  %b = arith.addi %x, %x : i32
  func.return %a : i32
}

// -----

func.func @missing() {
  func.call @nobody() : () -> () // expected-error {{nobody}}
  func.return
}

// -----

// expected-error @below {{not_a_type}}
func.func @bad(%x: !not_a_type) {
  func.return
}

// -----

func.func @fine() {
  func.return
}
