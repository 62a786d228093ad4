// Large splat constants are filled by loops, not kept as data.
// RUN: fewbit-opt %s -p fill-splats --split-input-file | filecheck %s

// CHECK-LABEL: func.func @large
// CHECK-NEXT:    %[[NUMBER:.*]] = arith.constant 1.500000e+00 : f32
// CHECK-NEXT:    %[[MEMORY:.*]] = tensor.empty() : tensor<128x128xf32>
// CHECK-NEXT:    %[[FILLED:.*]] = linalg.fill ins(%[[NUMBER]] : f32) outs(%[[MEMORY]] : tensor<128x128xf32>)
// CHECK-NEXT:    func.return %[[FILLED]]
func.func @large() -> tensor<128x128xf32> {
  %k = arith.constant dense<1.5> : tensor<128x128xf32>
  func.return %k : tensor<128x128xf32>
}

// -----

// Left alone: a small constant, and one of several numbers.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    arith.constant dense<1.500000e+00> : tensor<4xf32>
// CHECK-NEXT:    arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK-NEXT:    func.return
func.func @kept() -> (tensor<4xf32>, tensor<2xf32>) {
  %small = arith.constant dense<1.5> : tensor<4xf32>
  %several = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  func.return %small, %several : tensor<4xf32>, tensor<2xf32>
}
