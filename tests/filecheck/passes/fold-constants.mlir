// RUN: fewbit-opt %s -p fold-constants,dce,symbol-dce | filecheck %s
// RUN: fewbit-opt %s -p 'fold-constants{max-bytes=0}' | filecheck %s --check-prefix=TIGHT

// CHECK-NOT: mico.constant
mico.constant @k : tensor<2xf32> = dense<[1.0, -2.0]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[K:.*]] = arith.constant dense<[1.500000e+00, 5.000000e-01]> : tensor<2xf32>
// CHECK-NEXT:    %y = arith.mulf %x, %[[K]] : tensor<2xf32>
// Left alone: what would be larger than is allowed.
// TIGHT-LABEL: func.func @main
// TIGHT:         mico.relu
// TIGHT-NEXT:    arith.addf
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %k = mico.get_constant @k : tensor<2xf32>
  %half = arith.constant dense<0.5> : tensor<2xf32>
  %r = mico.relu(%k) : (tensor<2xf32>) -> tensor<2xf32>
  %s = arith.addf %r, %half : tensor<2xf32>
  %y = arith.mulf %x, %s : tensor<2xf32>
  func.return %y : tensor<2xf32>
}
