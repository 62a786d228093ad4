// RUN: fewbit-opt %s -p expand-math | filecheck %s

// One polynomial, and the power of two from the bits of the rounded quotient.
// CHECK-LABEL: func.func @exp
// CHECK-NOT:     math.exp
// CHECK:         arith.bitcast %{{.*}} : f32 to i32
// CHECK:         arith.shli
// CHECK:         arith.bitcast %{{.*}} : i32 to f32
// CHECK:         arith.select
// CHECK-NEXT:    func.return
func.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  func.return %y : f32
}

// CHECK-LABEL: func.func @half
// CHECK:         arith.extf %x : f16 to f32
// CHECK:         arith.divf
// CHECK:         arith.truncf %{{.*}} : f32 to f16
func.func @half(%x: f16) -> f16 {
  %y = math.tanh %x : f16
  func.return %y : f16
}

// CHECK-LABEL: func.func @square
// CHECK:         [[Y:%.*]] = arith.mulf %x, %x : f32
// CHECK-NEXT:    func.return [[Y]] : f32
func.func @square(%x: f32) -> f32 {
  %n = arith.constant 2.0 : f32
  %y = math.powf %x, %n : f32
  func.return %y : f32
}

// Left alone: what the math library or instructions compute.
// CHECK-LABEL: func.func @kept
// CHECK:         math.exp %x : f64
// CHECK:         math.floor %y : f32
// CHECK:         math.exp %z : tensor<4xf32>
func.func @kept(%x: f64, %y: f32, %z: tensor<4xf32>) -> (f64, f32, tensor<4xf32>) {
  %a = math.exp %x : f64
  %b = math.floor %y : f32
  %c = math.exp %z : tensor<4xf32>
  func.return %a, %b, %c : f64, f32, tensor<4xf32>
}

// From f64 to bf16 by way of f32: no library rounds it at once.
// CHECK-LABEL: func.func @to_bf16
// CHECK:         [[Y:%.*]] = arith.truncf %x : f64 to f32
// CHECK-NEXT:    arith.truncf [[Y]] : f32 to bf16
func.func @to_bf16(%x: f64) -> bf16 {
  %y = arith.truncf %x : f64 to bf16
  func.return %y : bf16
}
