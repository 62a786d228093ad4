// Quantization of activations leaves the layer that it is part of, and becomes loops.
// RUN: fewbit-opt %s -p lower-activation-quant | filecheck %s

// The largest magnitude of each row, 7 divided by it, and rounding to -8..7.
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[LARGEST:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%x :
// CHECK:           %[[ABS:.*]] = math.absf
// CHECK-NEXT:      arith.maximumf %{{.*}}, %[[ABS]] : f32
// CHECK:         %[[FACTOR:.*]] = linalg.generic {{.*}} ins(%[[LARGEST]] :
// CHECK:           %[[SEVEN:.*]] = arith.constant 7.000000e+00 : f32
// CHECK:           arith.divf %[[SEVEN]], %{{.*}} : f32
// CHECK:         %[[SCALE:.*]] = linalg.generic {{.*}} ins(%[[FACTOR]] :
// CHECK:         %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%x, %[[FACTOR]] :
// CHECK:           math.roundeven
// CHECK:           arith.constant -8.000000e+00 : f32
// CHECK:           arith.fptosi %{{.*}} : f32 to i8
// CHECK:         %[[U:.*]] = builtin.unrealized_conversion_cast %[[ROUNDED]] : tensor<?x6xi8> to tensor<?x6x!mico.int<4>>
// CHECK-NEXT:    func.return %[[U]], %[[SCALE]]
func.func @dynamic(%x: tensor<?x6xf32>) -> (tensor<?x6x!mico.int<4>>, tensor<?xf32>) {
  %u, %s = mico.activation_quant(%x) {bits = 4, granularity = "row"} : (tensor<?x6xf32>) -> (tensor<?x6x!mico.int<4>>, tensor<?xf32>)
  func.return %u, %s : tensor<?x6x!mico.int<4>>, tensor<?xf32>
}

// Where the scale is given, the integers are those of mico.quantize.
// CHECK-LABEL: func.func @static
// CHECK-NEXT:    %[[U:.*]] = mico.quantize(%x, %a) : (tensor<2x6xf32>, f32) -> tensor<2x6x!mico.int<8>>
// CHECK-NEXT:    mico.bitlinear(%[[U]], %w) weight_scale(%s) act_scale(%a)
func.func @static(%x: tensor<2x6xf32>, %w: tensor<4x6x!mico.int<3>>, %s: f32, %a: f32) -> tensor<2x4xf32> {
  %y = mico.bitlinear(%x, %w) weight_scale(%s) act_scale(%a) {act_bits = 8} : (tensor<2x6xf32>, tensor<4x6x!mico.int<3>>, f32, f32) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// Scales for groups are those of the rows of a tensor with one dimension more.
// CHECK-LABEL: func.func @groups
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK:         } -> tensor<?x3xf32>
// CHECK:         %[[U:.*]] = mico.reshape(%{{.*}}) {shape = [0, -1]} : (tensor<?x3x2x!mico.int<8>>) -> tensor<?x6x!mico.int<8>>
// CHECK-NEXT:    mico.bitlinear(%[[U]], %w) weight_scale(%s) act_scale(%{{.*}}) {weight_bits = 4 : i32, act_bits = 8 : i32}
func.func @groups(%x: tensor<?x6xf32>, %w: tensor<4x6x!mico.int<4>>, %s: tensor<4x3xf32>) -> tensor<?x4xf32> {
  %y = mico.bitlinear(%x, %w) weight_scale(%s) {act_bits = 8, act_group = 2 : i32} : (tensor<?x6xf32>, tensor<4x6x!mico.int<4>>, tensor<4x3xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// Left alone: activations that stay float, and those that are integers already.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    mico.bitlinear(%x, %w)
// CHECK-NEXT:    mico.bitlinear(%u, %w)
// CHECK-NEXT:    func.return
func.func @kept(%x: tensor<2x6xf32>, %u: tensor<2x6x!mico.int<8>>, %w: tensor<4x6x!mico.int<3>>, %s: f32, %a: f32) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %y = mico.bitlinear(%x, %w) weight_scale(%s) : (tensor<2x6xf32>, tensor<4x6x!mico.int<3>>, f32) -> tensor<2x4xf32>
  %z = mico.bitlinear(%u, %w) weight_scale(%s) act_scale(%a) : (tensor<2x6x!mico.int<8>>, tensor<4x6x!mico.int<3>>, f32, f32) -> tensor<2x4xf32>
  func.return %y, %z : tensor<2x4xf32>, tensor<2x4xf32>
}
