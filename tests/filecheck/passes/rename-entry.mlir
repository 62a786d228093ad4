// The entry gets a name that no function of the C interface can have.
// RUN: fewbit-opt %s -p rename-entry --split-input-file --verify-diagnostics | filecheck %s
// RUN: fewbit-opt %s -p 'rename-entry{to="start"}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=TO

// CHECK-LABEL: func.func @program.entry(
// CHECK:         func.call @helper(%x)
// TO-LABEL: func.func @start(
func.func @main(%x: i32) -> i32 {
  %y = func.call @helper(%x) : (i32) -> i32
  func.return %y : i32
}

// Left alone: what the entry calls.
// CHECK-LABEL: func.func private @helper(
func.func private @helper(%x: i32) -> i32 {
  func.return %x : i32
}

// -----

// Refused: it is inlined first.
// expected-error @unknown {{the entry is a subgraph, not a function}}
graph.subgraph @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  graph.return %x : tensor<4xf32>
}
