// Valid modules, with every op of the dialect. In the form that people write.

builtin.module {
  mico.constant @dense : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  mico.constant @scale : tensor<2xf32> = dense<[0.5, 0.25]>
  mico.constant @zero : tensor<2xi32> = dense<[1, -1]>
  mico.constant @packed : tensor<2x2x!mico.int<4>> = dense<"0x2143"> scale @scale zero_point @zero
  mico.constant @stored : tensor<2x3x!mico.ternary> = #mico.ref<"fc.weight", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"> scale @scale
  func.func @constants() -> (tensor<2x2xf32>, tensor<2x3x!mico.ternary>) {
    %0 = mico.get_constant @dense : tensor<2x2xf32>
    %1 = mico.get_constant @stored : tensor<2x3x!mico.ternary>
    func.return %0, %1 : tensor<2x2xf32>, tensor<2x3x!mico.ternary>
  }
}

// -----

builtin.module {
  func.func @widths(%1: tensor<3x!mico.int<1>>, %2: tensor<3x!mico.int<2>>, %3: tensor<3x!mico.int<3>>, %4: tensor<3x!mico.int<4>>, %5: tensor<3x!mico.int<5>>, %6: tensor<3x!mico.int<6>>, %7: tensor<3x!mico.int<7>>, %8: tensor<3x!mico.int<8>>, %t: tensor<3x!mico.ternary>) {
    func.return
  }
  func.func @types(%q: !mico.qtensor<tensor<4x8x!mico.int<3>>, f32, none>, %k: !mico.kv_cache<tensor<1x2x?x8xf32>, none>) {
    func.return
  }
}

// -----

builtin.module {
  func.func @quantization(%w: tensor<4x8xf32>, %x: tensor<?x8xf32>, %acc: tensor<?x4xi32>, %s: f32, %z: i32, %zs: tensor<4xi32>) {
    %v, %vs = mico.weight_quant(%w) {bits = 4 : i32, granularity = "channel"} : (tensor<4x8xf32>) -> (tensor<4x8x!mico.int<4>>, tensor<4xf32>)
    %a, %as, %az = mico.weight_quant(%w) {bits = 8 : i32, granularity = "tensor"} : (tensor<4x8xf32>) -> (tensor<4x8x!mico.int<8>>, tensor<f32>, tensor<i32>)
    %f = mico.activation_quant(%x) {bits = !mico.ternary} : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %i, %is = mico.activation_quant(%x) {bits = 8 : i32} : (tensor<?x8xf32>) -> (tensor<?x8x!mico.int<8>>, tensor<?xf32>)
    %q = mico.quantize(%x, %s) : (tensor<?x8xf32>, f32) -> tensor<?x8x!mico.int<6>>
    %qz = mico.quantize(%x, %s) zero_point(%z) : (tensor<?x8xf32>, f32, i32) -> tensor<?x8x!mico.int<6>>
    %d = mico.dequantize(%v, %vs) zero_point(%zs) : (tensor<4x8x!mico.int<4>>, tensor<4xf32>, tensor<4xi32>) -> tensor<4x8xf32>
    %r = mico.requantize(%acc, %s) zero_point(%z) : (tensor<?x4xi32>, f32, i32) -> tensor<?x4x!mico.int<5>>
    %b = mico.bundle(%v, %vs) : (tensor<4x8x!mico.int<4>>, tensor<4xf32>) -> !mico.qtensor<tensor<4x8x!mico.int<4>>, tensor<4xf32>, none>
    %u, %us = mico.unbundle(%b) : (!mico.qtensor<tensor<4x8x!mico.int<4>>, tensor<4xf32>, none>) -> (tensor<4x8x!mico.int<4>>, tensor<4xf32>)
    func.return
  }
}

// -----

builtin.module {
  func.func @layers(%x: tensor<?x8xf32>, %q: tensor<?x8x!mico.int<8>>, %f: tensor<4x8xf32>, %w: tensor<4x8x!mico.int<4>>, %b: tensor<4xf32>, %s: tensor<4xf32>, %z: tensor<4xi32>, %xs: f32, %gs: tensor<4x4xf32>, %rs: tensor<?x4xf32>) {
    %0 = mico.bitlinear(%x, %f) : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
    %1 = mico.bitlinear(%x, %w, %b) weight_scale(%s) {weight_bits = 4 : i32, act_bits = 8 : i32} : (tensor<?x8xf32>, tensor<4x8x!mico.int<4>>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
    %2 = mico.bitlinear(%q, %w) weight_scale(%s) act_scale(%xs) {weight_bits = 4 : i32} : (tensor<?x8x!mico.int<8>>, tensor<4x8x!mico.int<4>>, tensor<4xf32>, f32) -> tensor<?x4xf32>
    %5 = mico.bitlinear(%x, %w) weight_scale(%gs) {weight_bits = 4 : i32, act_bits = 8 : i32, act_group = 2 : i32} : (tensor<?x8xf32>, tensor<4x8x!mico.int<4>>, tensor<4x4xf32>) -> tensor<?x4xf32>
    %6 = mico.bitlinear(%q, %w) weight_scale(%gs) act_scale(%rs) {weight_bits = 4 : i32} : (tensor<?x8x!mico.int<8>>, tensor<4x8x!mico.int<4>>, tensor<4x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %3 = mico.bitlinear(%q, %w) {weight_bits = 4 : i32} : (tensor<?x8x!mico.int<8>>, tensor<4x8x!mico.int<4>>) -> tensor<?x4xi32>
    func.return
  }
  func.func @convolutions(%x: tensor<1x4x8x8xf32>, %w: tensor<6x2x3x3x!mico.ternary>, %s: tensor<6xf32>, %l: tensor<1x4x?xf32>, %v: tensor<6x4x3x!mico.int<2>>) {
    %0 = mico.bitconv2d(%x, %w) weight_scale(%s) {act_bits = 8 : i32, stride = [2, 1], padding = [1, 0, 1, 1], dilation = [1, 1], groups = 2 : i32} : (tensor<1x4x8x8xf32>, tensor<6x2x3x3x!mico.ternary>, tensor<6xf32>) -> tensor<1x6x4x8xf32>
    %1 = mico.bitconv1d(%l, %v) weight_scale(%s) {act_bits = 4 : i32} : (tensor<1x4x?xf32>, tensor<6x4x3x!mico.int<2>>, tensor<6xf32>) -> tensor<1x6x?xf32>
    func.return
  }
  func.func @lookups(%i: tensor<1x?xi64>, %t: tensor<10x8x!mico.int<4>>, %s: tensor<10xf32>, %q: tensor<1x4x?x8xf32>, %m: tensor<1x1x?x?xf32>) {
    %0 = mico.embedding(%i, %t) weight_scale(%s) : (tensor<1x?xi64>, tensor<10x8x!mico.int<4>>, tensor<10xf32>) -> tensor<1x?x8xf32>
    %1 = mico.attention(%q, %q, %q) mask(%m) {causal = true} : (tensor<1x4x?x8xf32>, tensor<1x4x?x8xf32>, tensor<1x4x?x8xf32>, tensor<1x1x?x?xf32>) -> tensor<1x4x?x8xf32>
    func.return
  }
}

// -----

builtin.module {
  func.func @between(%x: tensor<1x4x8x8xf32>, %c: tensor<4xf32>, %r: tensor<8xf32>) {
    %0 = mico.relu(%x) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %1 = mico.relu6(%0) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %2 = mico.gelu(%1) {approximate = "tanh"} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %3 = mico.silu(%2) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %4 = mico.softmax(%3) {dim = 1 : i32} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %5 = mico.add(%4, %x) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %6 = mico.mul(%5, %r) : (tensor<1x4x8x8xf32>, tensor<8xf32>) -> tensor<1x4x8x8xf32>
    %7 = mico.batch_norm(%6, %c, %c, %c, %c) : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
    %8 = mico.layer_norm(%7, %r, %r) : (tensor<1x4x8x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x4x8x8xf32>
    %9 = mico.rms_norm(%8) {eps = 1.0e-6 : f64} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %rotated = mico.hadamard(%9) {block = 4 : i32} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %10 = mico.maxpool2d(%9) {kernel_size = [2, 2], stride = [2, 2]} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
    %11 = mico.avgpool2d(%9) {kernel_size = [2, 2], stride = [2, 2]} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
    %12 = mico.concat(%10, %11) {dim = 1 : i32} : (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>) -> tensor<1x8x4x4xf32>
    %13 = mico.transpose(%12) {permutation = [0, 2, 3, 1]} : (tensor<1x8x4x4xf32>) -> tensor<1x4x4x8xf32>
    %14 = mico.reshape(%13) {shape = [1, 16, 8]} : (tensor<1x4x4x8xf32>) -> tensor<1x16x8xf32>
    %15 = mico.flatten(%14) : (tensor<1x16x8xf32>) -> tensor<1x128xf32>
    func.return
  }
}
