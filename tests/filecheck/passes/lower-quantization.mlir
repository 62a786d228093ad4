// quantize, dequantize, requantize and weight_quant become loops.
// RUN: fewbit-opt %s -p lower-quantization | filecheck %s

// Divided, rounded half to even, moved by the zero point, and only then clamped.
// CHECK-LABEL: func.func @quantize
// CHECK:           %[[Q:.*]] = arith.divf
// CHECK-NEXT:      %[[R:.*]] = math.roundeven %[[Q]]
// CHECK-NEXT:      %[[ZERO:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK-NEXT:      %[[MOVED:.*]] = arith.addf %[[R]], %[[ZERO]]
// CHECK-NEXT:      %[[LEAST:.*]] = arith.constant -8.000000e+00 : f32
// CHECK-NEXT:      arith.constant 7.000000e+00 : f32
// CHECK-NEXT:      arith.maximumf %[[MOVED]], %[[LEAST]]
// CHECK-NEXT:      arith.minimumf
// CHECK-NEXT:      arith.fptosi %{{.*}} : f32 to i8
func.func @quantize(%x: tensor<2x4xf32>, %s: f32, %z: i32) -> tensor<2x4x!mico.int<4>> {
  %y = mico.quantize(%x, %s) zero_point(%z) : (tensor<2x4xf32>, f32, i32) -> tensor<2x4x!mico.int<4>>
  func.return %y : tensor<2x4x!mico.int<4>>
}

// A scale for each row.
// CHECK-LABEL: func.func @dequantize
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK:           %[[F:.*]] = arith.sitofp %{{.*}} : i8 to f32
// CHECK-NEXT:      arith.mulf %[[F]], %{{.*}} : f32
func.func @dequantize(%u: tensor<2x4x!mico.int<4>>, %s: tensor<2xf32>) -> tensor<2x4xf32> {
  %y = mico.dequantize(%u, %s) : (tensor<2x4x!mico.int<4>>, tensor<2xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// By a float, or by an integer and a shift: then all is done in i64.
// CHECK-LABEL: func.func @requantize
// CHECK:           arith.sitofp %{{.*}} : i32 to f32
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      math.roundeven
func.func @requantize(%x: tensor<2x4xi32>, %m: f32) -> tensor<2x4x!mico.int<8>> {
  %y = mico.requantize(%x, %m) : (tensor<2x4xi32>, f32) -> tensor<2x4x!mico.int<8>>
  func.return %y : tensor<2x4x!mico.int<8>>
}

// CHECK-LABEL: func.func @fixed_point
// CHECK-NOT:       f32
// CHECK:           %[[P:.*]] = arith.muli %{{.*}} : i64
// CHECK:           %[[FLOOR:.*]] = arith.shrsi %[[P]], %{{.*}} : i64
// CHECK:           %[[TIE:.*]] = arith.andi %{{.*}} : i1
// CHECK:           arith.addi %[[FLOOR]], %{{.*}} : i64
// CHECK:           arith.trunci %{{.*}} : i64 to i8
func.func @fixed_point(%x: tensor<2x4xi32>, %m: i32, %s: i32) -> tensor<2x4x!mico.int<8>> {
  %y = mico.requantize(%x, %m) shift(%s) : (tensor<2x4xi32>, i32, i32) -> tensor<2x4x!mico.int<8>>
  func.return %y : tensor<2x4x!mico.int<8>>
}

// CHECK-LABEL: func.func @weight
// CHECK:           math.absf
// CHECK:           arith.maximumf
// CHECK:           arith.divf
// CHECK:           math.roundeven
// CHECK-NOT:     mico.weight_quant
func.func @weight(%w: tensor<2x4xf32>) -> (tensor<2x4x!mico.int<4>>, tensor<2xf32>) {
  %u, %s = mico.weight_quant(%w) {bits = 4, granularity = "channel"} : (tensor<2x4xf32>) -> (tensor<2x4x!mico.int<4>>, tensor<2xf32>)
  func.return %u, %s : tensor<2x4x!mico.int<4>>, tensor<2xf32>
}

// Left alone: that is what lower-activation-quant is for.
// CHECK-LABEL: func.func @activation
// CHECK-NEXT:    mico.activation_quant(%x)
func.func @activation(%x: tensor<2x4xf32>) -> (tensor<2x4x!mico.int<4>>, tensor<2xf32>) {
  %u, %s = mico.activation_quant(%x) {bits = 4, granularity = "row"} : (tensor<2x4xf32>) -> (tensor<2x4x!mico.int<4>>, tensor<2xf32>)
  func.return %u, %s : tensor<2x4x!mico.int<4>>, tensor<2xf32>
}
