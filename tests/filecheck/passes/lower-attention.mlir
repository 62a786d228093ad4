// Attention becomes a matmul of queries and keys, a softmax, and a matmul with values.
// RUN: fewbit-opt %s -p lower-attention | filecheck %s
// RUN: fewbit-opt %s -p 'lower-attention{fused=false}' | filecheck %s --check-prefix=APART

// One head of keys and values serves two of queries; 0.5 is 1 / sqrt(4).
// CHECK-LABEL: func.func @causal
// CHECK:         linalg.generic {{.*}} ins(%v :
// CHECK:         %[[V:.*]] = tensor.collapse_shape {{.*}} into tensor<1x2x3x4xf32>
// CHECK:         linalg.generic {{.*}} ins(%k :
// CHECK:         %[[K:.*]] = tensor.collapse_shape {{.*}} into tensor<1x2x3x4xf32>
// CHECK:         %[[QK:.*]] = linalg.generic {{.*}}"reduction"]} ins(%q, %[[K]] :
// CHECK:           math.fma
// CHECK:         arith.constant 5.000000e-01 : f32
// CHECK:         linalg.generic {{.*}} ins(%[[QK]] :
// CHECK:           %[[J:.*]] = linalg.index 3
// CHECK-NEXT:      %[[I:.*]] = linalg.index 2
// CHECK-NEXT:      %[[LATER:.*]] = arith.cmpi sgt, %[[J]], %[[I]]
// CHECK-NEXT:      %[[LEAST:.*]] = arith.constant 0xff800000 : f32
// CHECK-NEXT:      arith.select %[[LATER]], %[[LEAST]]
// CHECK:           arith.maximumf
// CHECK:           math.exp
// CHECK:           arith.addf %{{.*}} : f64
// CHECK:           arith.truncf
// CHECK:         %[[P:.*]] = linalg.generic
// CHECK:           arith.divf
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[P]], %[[V]] :
// CHECK:           math.fma
// CHECK:         func.return %[[Y]]
// APART-LABEL: func.func @causal
// APART-NOT:     math.fma
// APART:         func.return
func.func @causal(%q: tensor<1x2x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %y = mico.attention(%q, %k, %v) {causal = true} : (tensor<1x2x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<1x2x3x4xf32>
  func.return %y : tensor<1x2x3x4xf32>
}

// Without a mask nothing is compared.
// CHECK-LABEL: func.func @of_all
// CHECK-NOT:     linalg.index
// CHECK:         func.return
func.func @of_all(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x4xf32>) -> tensor<1x1x3x4xf32> {
  %y = mico.attention(%q, %k, %v) : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<1x1x3x4xf32>
  func.return %y : tensor<1x1x3x4xf32>
}

// Left alone: a softmax that is no part of attention.
// CHECK-LABEL: func.func @softmax
// CHECK-NEXT:    mico.softmax(%x)
func.func @softmax(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = mico.softmax(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}
