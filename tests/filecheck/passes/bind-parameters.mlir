// Constants become globals of IREE's that an archive fills; small ones stand in the text.
// RUN: fewbit-opt %s -p bind-parameters | filecheck %s

// CHECK-NOT: mico.
// CHECK: util.global
// CHECK-SAME: large
// CHECK-SAME: flow.parameter.named
mico.constant @large : tensor<1024xf32> = dense<1.0>
mico.constant @small : tensor<2xf32> = dense<[1.0, 2.0]>

// CHECK-LABEL: func.func @read
// CHECK-NEXT:    %[[LARGE:.*]] = {{.*}}util.global.load{{.*}}@large
// CHECK-NEXT:    %[[SMALL:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    func.return %[[LARGE]], %[[SMALL]]
func.func @read() -> (tensor<1024xf32>, tensor<2xf32>) {
  %large = mico.get_constant @large : tensor<1024xf32>
  %small = mico.get_constant @small : tensor<2xf32>
  func.return %large, %small : tensor<1024xf32>, tensor<2xf32>
}

// Left alone: what is a constant of the text already, however large.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    arith.constant dense<3.000000e+00> : tensor<1024xf32>
func.func @kept() -> tensor<1024xf32> {
  %k = arith.constant dense<3.0> : tensor<1024xf32>
  func.return %k : tensor<1024xf32>
}
