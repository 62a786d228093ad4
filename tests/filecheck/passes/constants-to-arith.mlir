// Constants that stand in the text become arith.constant; those of the weight store stay.
// RUN: fewbit-opt %s -p constants-to-arith | filecheck %s

// CHECK-NOT: @plain
mico.constant @plain : tensor<2xf32> = dense<[1.0, 2.0]>
// CHECK: mico.constant @stored
mico.constant @stored : tensor<2xf32> = #mico.ref<"w", "0000000000000000000000000000000000000000000000000000000000000000">

// CHECK-LABEL: func.func @in_the_text
// CHECK-NEXT:    %[[K:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    func.return %[[K]]
func.func @in_the_text() -> tensor<2xf32> {
  %k = mico.get_constant @plain : tensor<2xf32>
  func.return %k : tensor<2xf32>
}

// Left alone: its elements are not in the text.
// CHECK-LABEL: func.func @in_the_store
// CHECK-NEXT:    %[[K:.*]] = mico.get_constant @stored
// CHECK-NEXT:    func.return %[[K]]
func.func @in_the_store() -> tensor<2xf32> {
  %k = mico.get_constant @stored : tensor<2xf32>
  func.return %k : tensor<2xf32>
}
