// Layers that the accelerator can run become blocks of tiled loops.
// RUN: fewbit-opt %s -p to-blocks -t bitfusion --split-input-file | filecheck %s

// CHECK:      "accelerator": "mico"
// CHECK:      "layer": "w",
// CHECK:      "inputs": 32,
// CHECK-NEXT: "outputs": 16,
// CHECK:      "act_bits": 8,
// CHECK-NEXT: "weight_bits": 4,
// CHECK:      "over": "batch",
// CHECK-NEXT: "count": 2,
// CHECK:      "stream": "weight"
// CHECK-NOT:  "layer"
mico.constant @w.scale : tensor<f32> = dense<0.5>
mico.constant @w : tensor<16x32x!mico.int<4>> = dense<1> scale @w.scale
func.func @quantized(%x: tensor<2x32xf32>) -> tensor<2x16xf32> {
  %y = mico.bitlinear(%x, @w) {act_bits = 8} : (tensor<2x32xf32>) -> tensor<2x16xf32>
  %r = mico.relu(%y) : (tensor<2x16xf32>) -> tensor<2x16xf32>
  func.return %r : tensor<2x16xf32>
}

// -----

// Left alone: a layer of floats is the host's.
// CHECK: "blocks": []
mico.constant @w : tensor<16x32xf32> = dense<1.0>
func.func @float(%x: tensor<2x32xf32>) -> tensor<2x16xf32> {
  %y = mico.bitlinear(%x, @w) : (tensor<2x32xf32>) -> tensor<2x16xf32>
  func.return %y : tensor<2x16xf32>
}
