// Constants become globals of IREE's that an archive fills; small ones stand in the text.
// RUN: fewbit-opt %s -p bind-parameters | filecheck %s

// CHECK: util.global
// CHECK-SAME: large
// CHECK-SAME: flow.parameter.named
mico.constant @large : tensor<1024xf32> = dense<1.0>
mico.constant @small : tensor<2xf32> = dense<[1.0, 2.0]>

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    util.global.load
// CHECK-NEXT:    %{{.*}} = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// Left alone: what is a constant of the text already.
// CHECK-NEXT:    %{{.*}} = arith.constant dense<3.000000e+00> : tensor<2xf32>
func.func @main() -> (tensor<1024xf32>, tensor<2xf32>, tensor<2xf32>) {
  %large = mico.get_constant @large : tensor<1024xf32>
  %small = mico.get_constant @small : tensor<2xf32>
  %other = arith.constant dense<3.0> : tensor<2xf32>
  func.return %large, %small, %other : tensor<1024xf32>, tensor<2xf32>, tensor<2xf32>
}
// CHECK-NOT: mico.
