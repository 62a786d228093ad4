// Sizes are divided by at least 1: an empty batch would end the process.
// RUN: fewbit-opt %s -p guard-divisions | filecheck %s

// CHECK-LABEL: func.func @sizes
// CHECK:         %[[M:.*]] = arith.maxui %arg1, %c1
// CHECK-NEXT:    arith.divui %arg0, %[[M]] : index
// CHECK:         %[[M:.*]] = arith.maxui %arg1, %c1
// CHECK-NEXT:    arith.remsi %arg0, %[[M]] : index
func.func @sizes(%n: index, %m: index) -> (index, index) {
  %q = arith.divui %n, %m : index
  %r = arith.remsi %n, %m : index
  return %q, %r : index, index
}

// Left alone: a divisor that is known, and numbers that are no sizes.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     arith.maxui
// CHECK:         arith.divui %arg0, %c4 : index
// CHECK-NEXT:    arith.divsi %arg1, %arg2 : i32
func.func @kept(%n: index, %a: i32, %b: i32) -> (index, i32) {
  %four = arith.constant 4 : index
  %q = arith.divui %n, %four : index
  %r = arith.divsi %a, %b : i32
  return %q, %r : index, i32
}
