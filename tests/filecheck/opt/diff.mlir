// RUN: fewbit-opt %s -p cse,cse --diff | filecheck %s

// CHECK:      --- input
// CHECK-NEXT: +++ cse
// CHECK:      -    %b = arith.addi %x, %x : i32
// CHECK:      // cse: no change
// CHECK-NOT:  builtin.module
func.func @twice(%x: i32) -> i32 {
  %a = arith.addi %x, %x : i32
  %b = arith.addi %x, %x : i32
  %c = arith.muli %a, %b : i32
  func.return %c : i32
}
