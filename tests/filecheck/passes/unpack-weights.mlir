// RUN: fewbit-opt %s -p unpack-weights,lower-few-bit-types | filecheck %s

// CHECK: mico.constant @w4 : tensor<2x2xi8> = dense<{{\[\[}}33, 3], [-2, 15]]>
mico.constant @w4 : tensor<2x3x!mico.int<4>> = dense<[[1, 2, 3], [-2, -1, -1]]>
mico.constant @w3 : tensor<1x9x!mico.int<3>> = dense<[[1, 2, 3, -4, -3, -2, -1, 0, 1]]>
mico.constant @stored : tensor<2x4x!mico.int<2>> = #mico.ref<"w", "0000000000000000000000000000000000000000000000000000000000000000">

// A field goes to the top of its byte and back; the padding of a row is cut off.
// CHECK-LABEL: func.func @in_bytes() -> tensor<2x3xi8>
// CHECK:         mico.get_constant @w4 : tensor<2x2xi8>
// CHECK:         linalg.index 2
// CHECK:         arith.shli %{{.*}} : i8
// CHECK:         arith.shrsi %{{.*}} : i8
// CHECK:         tensor.extract_slice {{.*}} : tensor<2x4xi8> to tensor<2x3xi8>
func.func @in_bytes() -> tensor<2x3x!mico.int<4>> {
  %w = mico.get_constant @w4 : tensor<2x3x!mico.int<4>>
  func.return %w : tensor<2x3x!mico.int<4>>
}

// Fields that run on across bytes: three bytes make a word of eight fields.
// CHECK-LABEL: func.func @across_bytes
// CHECK:         tensor.pad {{.*}} high[0, 2]
// CHECK:         tensor.expand_shape {{.*}} into tensor<1x2x3xi8>
// CHECK:         arith.extui %{{.*}} : i8 to i32
// CHECK:         arith.ori %{{.*}} : i32
// CHECK:         arith.shrsi %{{.*}} : i32
func.func @across_bytes() -> tensor<1x9x!mico.int<3>> {
  %w = mico.get_constant @w3 : tensor<1x9x!mico.int<3>>
  func.return %w : tensor<1x9x!mico.int<3>>
}

// Bytes of the weight store are unsigned there, and stay so.
// CHECK-LABEL: func.func @from_store
// CHECK:         %[[B:.*]] = mico.get_constant @stored : tensor<2x1xui8>
// CHECK:         tensor.bitcast %[[B]] : tensor<2x1xui8> to tensor<2x1xi8>
func.func @from_store() -> tensor<2x4x!mico.int<2>> {
  %w = mico.get_constant @stored : tensor<2x4x!mico.int<2>>
  func.return %w : tensor<2x4x!mico.int<2>>
}

// Left alone: a table of which elements are looked up stays packed.
// CHECK-LABEL: func.func @lookup
// CHECK:         %[[T:.*]] = mico.get_constant @w4 : tensor<2x2xi8>
// CHECK:         linalg.generic
// CHECK:           %[[B:.*]] = tensor.extract %[[T]][%{{.*}}, %{{.*}}] : tensor<2x2xi8>
// CHECK-NEXT:      arith.extui %[[B]] : i8 to i32
// CHECK:           arith.shli %{{.*}} : i32
// CHECK:           arith.shrsi %{{.*}} : i32
// CHECK-NOT:     linalg.generic
func.func @lookup(%i: tensor<5xi64>) -> tensor<5xi8> {
  %w = mico.get_constant @w4 : tensor<2x3x!mico.int<4>>
  %t = builtin.unrealized_conversion_cast %w : tensor<2x3x!mico.int<4>> to tensor<2x3xi8>
  %e = tensor.empty() : tensor<5xi8>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%i : tensor<5xi64>) outs(%e : tensor<5xi8>) {
  ^bb0(%n: i64, %o: i8):
    %r = arith.index_cast %n : i64 to index
    %c = arith.constant 1 : index
    %v = tensor.extract %t[%r, %c] : tensor<2x3xi8>
    linalg.yield %v : i8
  } -> tensor<5xi8>
  func.return %y : tensor<5xi8>
}
