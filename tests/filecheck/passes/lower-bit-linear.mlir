// RUN: fewbit-opt %s -p lower-bit-linear | filecheck %s
// RUN: fewbit-opt %s -p lower-activation-quant | filecheck %s --check-prefix=SPLIT

// The quantization of the input leaves the layer; what is left multiplies integers.
// SPLIT-LABEL: func.func @dynamic
// SPLIT:         arith.maximumf
// SPLIT:         arith.constant 1.000000e-05 : f32
// SPLIT:         math.roundeven
// SPLIT:         arith.fptosi %{{.*}} : f32 to i8
// SPLIT:         mico.bitlinear
// SPLIT-SAME:      act_scale

// CHECK-LABEL: func.func @dynamic
// CHECK:         mico.activation_quant
// CHECK:         %[[ACC:.*]] = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "reduction"]
// CHECK:           arith.extsi %{{.*}} : i8 to i32
// CHECK:           arith.muli %{{.*}} : i32
// CHECK:           arith.addi %{{.*}} : i32
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[ACC]]
// CHECK:           %[[F:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK:           %[[X:.*]] = arith.mulf %[[F]], %{{.*}} : f32
// CHECK:           arith.mulf %[[X]], %{{.*}} : f32
func.func @dynamic(%x: tensor<?x6xf32>, %w: tensor<4x6x!mico.int<3>>, %s: tensor<4xf32>) -> tensor<?x4xf32> {
  %y = mico.bitlinear(%x, %w) weight_scale(%s) {act_bits = 8} : (tensor<?x6xf32>, tensor<4x6x!mico.int<3>>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// A sum for each group of weights, and then the sum of the groups.
// CHECK-LABEL: func.func @groups
// CHECK:         tensor.expand_shape {{.*}} : tensor<2x6xi8> into tensor<2x3x2xi8>
// CHECK:         tensor.expand_shape {{.*}} : tensor<4x6xi8> into tensor<4x3x2xi8>
// CHECK:         linalg.generic {{.*}} -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK:         } -> tensor<2x4x3xi32>
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK:         } -> tensor<2x4xf32>
func.func @groups(%x: tensor<2x6x!mico.int<4>>, %w: tensor<4x6x!mico.int<4>>, %s: tensor<4x3xf32>, %a: f32) -> tensor<2x4xf32> {
  %y = mico.bitlinear(%x, %w) weight_scale(%s) act_scale(%a) : (tensor<2x6x!mico.int<4>>, tensor<4x6x!mico.int<4>>, tensor<4x3xf32>, f32) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// Where rows have scales for groups, they are read by row and group.
// CHECK-LABEL: func.func @groups_of_rows
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>
func.func @groups_of_rows(%x: tensor<2x6x!mico.int<4>>, %w: tensor<4x6x!mico.int<4>>, %s: tensor<4x3xf32>, %a: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %y = mico.bitlinear(%x, %w) weight_scale(%s) act_scale(%a) : (tensor<2x6x!mico.int<4>>, tensor<4x6x!mico.int<4>>, tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// Left alone: convolutions, and matmuls that are kernel ops already.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    mico.bitconv2d(%x, %w)
// CHECK-NEXT:    kernel.matmul(%u, %v)
func.func @kept(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x1x1xf32>, %u: tensor<2x6xf32>, %v: tensor<4x6xf32>) -> (tensor<1x3x4x4xf32>, tensor<2x4xf32>) {
  %y = mico.bitconv2d(%x, %w) : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32>
  %z = kernel.matmul(%u, %v) : (tensor<2x6xf32>, tensor<4x6xf32>) -> tensor<2x4xf32>
  func.return %y, %z : tensor<1x3x4x4xf32>, tensor<2x4xf32>
}

// Weights with offsets count from 0, and a group adds the sum of its inputs times its offset.
// CHECK-LABEL: func.func @offsets
// CHECK:         %[[LEAST:.*]] = arith.constant -8 : i32
// CHECK:         arith.subi %{{.*}}, %[[LEAST]] : i32
// CHECK:         } -> tensor<2x4x3xi32>
// CHECK:         } -> tensor<2x3xi32>
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK:           %[[SCALED:.*]] = arith.mulf
// CHECK:           arith.sitofp
// CHECK:           %[[SHIFT:.*]] = arith.mulf
// CHECK:           arith.addf
func.func @offsets(%x: tensor<2x6x!mico.int<4>>, %w: tensor<4x6x!mico.int<4>>, %s: tensor<4x3xf32>, %m: tensor<4x3xf32>, %a: f32) -> tensor<2x4xf32> {
  %y = mico.bitlinear(%x, %w) weight_scale(%s) weight_offset(%m) act_scale(%a) : (tensor<2x6x!mico.int<4>>, tensor<4x6x!mico.int<4>>, tensor<4x3xf32>, tensor<4x3xf32>, f32) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}
