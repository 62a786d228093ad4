// RUN: fewbit-opt %s -p 'cse,dce' | filecheck %s
// RUN: fewbit-opt %s --cse --dce | filecheck %s
// RUN: fewbit-opt %s | fewbit-opt - -p cse -p dce | filecheck %s
// RUN: fewbit-opt %s | filecheck %s --check-prefix NOPASS

// CHECK-LABEL: func.func @twice
// CHECK-NEXT:    %a = arith.addi %x, %x : i32
// CHECK-NEXT:    %c = arith.muli %a, %a : i32
// CHECK-NEXT:    func.return %c : i32

// NOPASS:      %a = arith.addi %x, %x : i32
// NOPASS-NEXT: %b = arith.addi %x, %x : i32
func.func @twice(%x: i32) -> i32 {
  %a = arith.addi %x, %x : i32
  %b = arith.addi %x, %x : i32
  %c = arith.muli %a, %b : i32
  func.return %c : i32
}
