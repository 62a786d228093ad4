// A batch norm goes into the weight and the bias of the float layer in front of it.
// RUN: fewbit-opt %s -p fold-batch-norm | filecheck %s

// CHECK: mico.constant @fc.bias : tensor<2xf32> = #mico.ref<"fc.bias", "d26d48324c8123eab63fe2cb8a0938af3a0cde9acd4b54e101ac77dbe0944cad">
// CHECK: mico.constant @fc.weight : tensor<2x2xf32> = #mico.ref<"fc.weight", "f8d6f3178692596a8a7bdb1a83a45bb9a34a71ce7fe213b6fd521a64fbda3baa">
mico.constant @fc.weight : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
mico.constant @factor : tensor<2xf32> = dense<[2.0, 4.0]>
mico.constant @offset : tensor<2xf32> = dense<[1.0, 0.0]>
mico.constant @mean : tensor<2xf32> = dense<[0.5, 1.0]>
mico.constant @variance : tensor<2xf32> = dense<[1.0, 4.0]>
mico.constant @other : tensor<2x2xf32> = dense<1.0>
mico.constant @few.scale : tensor<f32> = dense<0.5>
mico.constant @few : tensor<2x2x!mico.int<4>> = dense<[[1, 2], [3, 4]]> scale @few.scale

// Both factors are 2: the hashes are those of [[2, 4], [6, 8]] and of [1 - 0.5 * 2, -1 * 2].
// CHECK-LABEL: func.func @float
// CHECK-NEXT:    %[[W:.*]] = mico.get_constant @fc.weight
// CHECK-NEXT:    %[[B:.*]] = mico.get_constant @fc.bias
// CHECK-NEXT:    %[[Y:.*]] = mico.bitlinear(%x, %[[W]], %[[B]])
// CHECK-NEXT:    func.return %[[Y]]
func.func @float(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %y = mico.bitlinear(%x, @fc.weight) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %n = mico.batch_norm(%y, @factor, @offset, @mean, @variance) {eps = 0.0} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %n : tensor<?x2xf32>
}

// Left alone: folding would move the integers of a quantized weight.
// CHECK-LABEL: func.func @quantized
// CHECK:         %[[Y:.*]] = mico.bitlinear(%x,
// CHECK:         mico.batch_norm(%[[Y]],
func.func @quantized(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %y = mico.bitlinear(%x, @few) {act_bits = 8} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %n = mico.batch_norm(%y, @factor, @offset, @mean, @variance) {eps = 0.0} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %n : tensor<?x2xf32>
}

// Left alone: something else reads what the layer gives.
// CHECK-LABEL: func.func @read_twice
// CHECK:         %[[Y:.*]] = mico.bitlinear(%x,
// CHECK:         %[[N:.*]] = mico.batch_norm(%[[Y]],
// CHECK:         func.return %[[Y]], %[[N]]
func.func @read_twice(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %y = mico.bitlinear(%x, @other) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %n = mico.batch_norm(%y, @factor, @offset, @mean, @variance) {eps = 0.0} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %y, %n : tensor<?x2xf32>, tensor<?x2xf32>
}
