// RUN: fewbit-opt %s -p hoist-quantize | filecheck %s

// Past a reshape, pooling and a concatenation: both parts are quantized where they come from.
// CHECK-LABEL: func.func @moved
// CHECK-DAG:     %[[A:.*]] = mico.quantize(%x
// CHECK-DAG:     %[[B:.*]] = mico.quantize(%y
// CHECK:         %[[C:.*]] = mico.concat(%[[A]], %[[B]])
// CHECK-NEXT:    %[[P:.*]] = kernel.pool2d(%[[C]])
// CHECK-NEXT:    %[[R:.*]] = mico.reshape(%[[P]])
// CHECK-NEXT:    func.return %[[R]]
func.func @moved(%x: tensor<1x4x4x2xf32>, %y: tensor<1x4x4x2xf32>) -> tensor<1x16x!mico.int<4>> {
  %0 = mico.concat(%x, %y) {dim = 3 : i32} : (tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>) -> tensor<1x4x4x4xf32>
  %1 = kernel.pool2d(%0) {kind = "max", kernel_size = [2, 2]} : (tensor<1x4x4x4xf32>) -> tensor<1x2x2x4xf32>
  %2 = mico.reshape(%1) {shape = [1, 16]} : (tensor<1x2x2x4xf32>) -> tensor<1x16xf32>
  %step = arith.constant 0.25 : f32
  %3 = mico.quantize(%2, %step) : (tensor<1x16xf32>, f32) -> tensor<1x16x!mico.int<4>>
  func.return %3 : tensor<1x16x!mico.int<4>>
}

// Left alone: means, and what something else reads.
// CHECK-LABEL: func.func @left
// CHECK:         %[[M:.*]] = kernel.pool2d(%x)
// CHECK-NEXT:    %[[P:.*]] = kernel.pool2d(%x)
// CHECK:         mico.quantize(%[[M]]
// CHECK:         mico.quantize(%[[P]]
func.func @left(%x: tensor<1x4x4x2xf32>) -> (tensor<1x2x2x2x!mico.int<8>>, tensor<1x2x2x2x!mico.int<8>>, tensor<1x2x2x2xf32>) {
  %0 = kernel.pool2d(%x) {kind = "average", kernel_size = [2, 2]} : (tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32>
  %1 = kernel.pool2d(%x) {kind = "max", kernel_size = [2, 2]} : (tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32>
  %step = arith.constant 0.25 : f32
  %2 = mico.quantize(%0, %step) : (tensor<1x2x2x2xf32>, f32) -> tensor<1x2x2x2x!mico.int<8>>
  %3 = mico.quantize(%1, %step) : (tensor<1x2x2x2xf32>, f32) -> tensor<1x2x2x2x!mico.int<8>>
  func.return %2, %3, %1 : tensor<1x2x2x2x!mico.int<8>>, tensor<1x2x2x2x!mico.int<8>>, tensor<1x2x2x2xf32>
}
