// What IREE does not compile for some types is written in other ops.
// RUN: fewbit-opt %s -p legalize-for-iree | filecheck %s

// Truth values are joined as bytes, and cut to single bits then.
// CHECK-LABEL: func.func @joins
// CHECK-NEXT:    %[[A:.*]] = arith.extui %a : i1 to i8
// CHECK-NEXT:    %[[B:.*]] = arith.extui %b : i1 to i8
// CHECK-NEXT:    %[[BYTES:.*]] = tensor.from_elements %[[A]], %[[B]] : tensor<2xi8>
// CHECK:         linalg.generic {{.*}} ins(%[[BYTES]] : tensor<2xi8>) outs(%{{.*}} : tensor<2xi1>)
// CHECK:           arith.trunci %{{.*}} : i8 to i1
func.func @joins(%a: i1, %b: i1) -> tensor<2xi1> {
  %both = tensor.from_elements %a, %b : tensor<2xi1>
  func.return %both : tensor<2xi1>
}

// Left alone: other elements.
// CHECK-LABEL: func.func @joins_numbers
// CHECK-NEXT:    tensor.from_elements %a, %a : tensor<2xi8>
// CHECK-NEXT:    func.return
func.func @joins_numbers(%a: i8) -> tensor<2xi8> {
  %both = tensor.from_elements %a, %a : tensor<2xi8>
  func.return %both : tensor<2xi8>
}

// A single element of another sign is cast outside of dispatches; a row of them is left alone.
// CHECK-LABEL: func.func @casts
// CHECK:         "flow.tensor.bitcast"(%x) {{.*}} : (tensor<ui8>) -> tensor<i8>
// CHECK:         "flow.tensor.bitcast"(%y) {{.*}} : (tensor<1x1xui8>) -> tensor<1x1xi8>
// CHECK:         tensor.bitcast %z : tensor<3xui8> to tensor<3xi8>
func.func @casts(%x: tensor<ui8>, %y: tensor<1x1xui8>, %z: tensor<3xui8>) -> (tensor<i8>, tensor<1x1xi8>, tensor<3xi8>) {
  %a = tensor.bitcast %x : tensor<ui8> to tensor<i8>
  %b = tensor.bitcast %y : tensor<1x1xui8> to tensor<1x1xi8>
  %c = tensor.bitcast %z : tensor<3xui8> to tensor<3xi8>
  func.return %a, %b, %c : tensor<i8>, tensor<1x1xi8>, tensor<3xi8>
}

// Rounding to bf16 is done on the bits; to f16 it is left alone.
// CHECK-LABEL: func.func @rounds
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %x : f32 to i32
// CHECK-NOT:     arith.truncf
// CHECK:         %[[HIGH:.*]] = arith.trunci %{{.*}} : i32 to i16
// CHECK-NEXT:    arith.bitcast %[[HIGH]] : i16 to bf16
// CHECK-NEXT:    arith.truncf %x : f32 to f16
func.func @rounds(%x: f32) -> (bf16, f16) {
  %a = arith.truncf %x : f32 to bf16
  %b = arith.truncf %x : f32 to f16
  func.return %a, %b : bf16, f16
}
