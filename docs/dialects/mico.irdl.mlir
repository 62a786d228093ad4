// Generated from the definition of the dialect: fewbit export-dialect mico
irdl.dialect @mico {

  // A signed integer of exactly N bits, N = 1..8; one bit holds -1 or +1.
  irdl.type @int {
    %width_0 = irdl.is 1 : i64
    %width_1 = irdl.is 2 : i64
    %width_2 = irdl.is 3 : i64
    %width_3 = irdl.is 4 : i64
    %width_4 = irdl.is 5 : i64
    %width_5 = irdl.is 6 : i64
    %width_6 = irdl.is 7 : i64
    %width_7 = irdl.is 8 : i64
    %width = irdl.any_of(%width_0, %width_1, %width_2, %width_3, %width_4, %width_5, %width_6, %width_7)
    irdl.parameters(width: %width)
  }

  // -1, 0 or +1; stored in 2 bits.
  irdl.type @ternary

  // Integers together with their scale and zero point, as one value.
  irdl.type @qtensor {
    %values = irdl.any
    %scale = irdl.any
    %zero_point = irdl.any
    irdl.parameters(values: %values, scale: %scale, zero_point: %zero_point)
  }

  // Keys or values of the tokens seen so far: batch x heads x capacity x head size.
  irdl.type @kv_cache {
    %values = irdl.any
    %scale = irdl.any
    irdl.parameters(values: %values, scale: %scale)
  }

  // Few-bit integers packed as `fewbit.numerics.packing` does, in hexadecimal.
  irdl.attribute @packed {
    %digits = irdl.base "#builtin.string"
    irdl.parameters(digits: %digits)
  }

  // A tensor of the weight store: its key, and the SHA-256 of its content.
  irdl.attribute @ref {
    %key_attr = irdl.base "#builtin.string"
    %sha256_attr = irdl.base "#builtin.string"
    irdl.parameters(key_attr: %key_attr, sha256_attr: %sha256_attr)
  }

  // A constant tensor with a name.
  irdl.operation @constant {
    %sym_name = irdl.base "#builtin.string"
    %type = irdl.base "!builtin.tensor"
    %value_0 = irdl.base @mico::@packed
    %value_1 = irdl.base @mico::@ref
    %value_2 = irdl.base "#builtin.dense_typed_elements"
    %value = irdl.any_of(%value_0, %value_1, %value_2)
    irdl.attributes {
      "sym_name" = %sym_name,
      "type" = %type,
      "value" = %value
    }
  }

  // The value of a constant.
  irdl.operation @get_constant {
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %symbol = irdl.base "#builtin.symbol_ref"
    irdl.attributes {
      "symbol" = %symbol
    }
  }

  // A float weight as integers, their scale and, if asymmetric, their zero point.
  irdl.operation @weight_quant {
    %weight = irdl.base "!builtin.tensor"
    irdl.operands(weight: %weight)
    %values = irdl.base "!builtin.tensor"
    %scale_0 = irdl.base "!builtin.f32"
    %scale_1 = irdl.base "!builtin.tensor"
    %scale = irdl.any_of(%scale_0, %scale_1)
    %zero_point_0 = irdl.base "!builtin.integer"
    %zero_point_1 = irdl.base "!builtin.tensor"
    %zero_point = irdl.any_of(%zero_point_0, %zero_point_1)
    irdl.results(values: %values, scale: %scale, zero_point: optional %zero_point)
    %bits_0 = irdl.base "#builtin.integer"
    %bits_1 = irdl.base @mico::@ternary
    %bits = irdl.any_of(%bits_0, %bits_1)
    %mode = irdl.base "#builtin.string"
    %granularity = irdl.base "#builtin.string"
    %symmetric = irdl.base "#builtin.integer"
    irdl.attributes {
      "bits" = %bits,
      "mode" = %mode,
      "granularity" = %granularity,
      "symmetric" = %symmetric
    }
  }

  // Activations quantized by scales that are found at run time.
  irdl.operation @activation_quant {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    %scale_0 = irdl.base "!builtin.f32"
    %scale_1 = irdl.base "!builtin.tensor"
    %scale = irdl.any_of(%scale_0, %scale_1)
    irdl.results(result: %result, scale: optional %scale)
    %bits_0 = irdl.base "#builtin.integer"
    %bits_1 = irdl.base @mico::@ternary
    %bits = irdl.any_of(%bits_0, %bits_1)
    %mode = irdl.base "#builtin.string"
    %granularity = irdl.base "#builtin.string"
    irdl.attributes {
      "bits" = %bits,
      "mode" = %mode,
      "granularity" = %granularity
    }
  }

  // Floats as integers, with a scale that is known: round(x / scale) + zero point, clamped.
  irdl.operation @quantize {
    %input = irdl.base "!builtin.tensor"
    %scale_0 = irdl.base "!builtin.f32"
    %scale_1 = irdl.base "!builtin.tensor"
    %scale = irdl.any_of(%scale_0, %scale_1)
    %zero_point_0 = irdl.base "!builtin.integer"
    %zero_point_1 = irdl.base "!builtin.tensor"
    %zero_point = irdl.any_of(%zero_point_0, %zero_point_1)
    irdl.operands(input: %input, scale: %scale, zero_point: optional %zero_point)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }

  // Integers as floats: (u - zero point) · scale, or (u - qmin) · scale + offset.
  irdl.operation @dequantize {
    %input = irdl.base "!builtin.tensor"
    %scale_0 = irdl.base "!builtin.f32"
    %scale_1 = irdl.base "!builtin.tensor"
    %scale = irdl.any_of(%scale_0, %scale_1)
    %zero_point_0 = irdl.base "!builtin.integer"
    %zero_point_1 = irdl.base "!builtin.tensor"
    %zero_point = irdl.any_of(%zero_point_0, %zero_point_1)
    %offset_0 = irdl.base "!builtin.f32"
    %offset_1 = irdl.base "!builtin.tensor"
    %offset = irdl.any_of(%offset_0, %offset_1)
    irdl.operands(input: %input, scale: %scale, zero_point: optional %zero_point, offset: optional %offset)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }

  // Accumulators as the next layer's integers: round(acc · multiplier) + zero point, clamped.
  irdl.operation @requantize {
    %input = irdl.base "!builtin.tensor"
    %multiplier_0 = irdl.base "!builtin.f32"
    %multiplier_1 = irdl.base "!builtin.tensor"
    %multiplier_2 = irdl.is i32
    %multiplier = irdl.any_of(%multiplier_0, %multiplier_1, %multiplier_2)
    %shift_0 = irdl.is i32
    %shift_1 = irdl.base "!builtin.tensor"
    %shift = irdl.any_of(%shift_0, %shift_1)
    %zero_point_0 = irdl.base "!builtin.integer"
    %zero_point_1 = irdl.base "!builtin.tensor"
    %zero_point = irdl.any_of(%zero_point_0, %zero_point_1)
    irdl.operands(input: %input, multiplier: %multiplier, shift: optional %shift, zero_point: optional %zero_point)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %axis = irdl.base "#builtin.integer"
    irdl.attributes {
      "axis" = %axis
    }
  }

  // Integers, their scale and perhaps zero point, as one value.
  irdl.operation @bundle {
    %values = irdl.base "!builtin.tensor"
    %scale_0 = irdl.base "!builtin.f32"
    %scale_1 = irdl.base "!builtin.tensor"
    %scale = irdl.any_of(%scale_0, %scale_1)
    %zero_point_0 = irdl.base "!builtin.integer"
    %zero_point_1 = irdl.base "!builtin.tensor"
    %zero_point = irdl.any_of(%zero_point_0, %zero_point_1)
    irdl.operands(values: %values, scale: %scale, zero_point: optional %zero_point)
    %result = irdl.base @mico::@qtensor
    irdl.results(result: %result)
  }

  // The parts of a quantized tensor.
  irdl.operation @unbundle {
    %input = irdl.base @mico::@qtensor
    irdl.operands(input: %input)
    %values = irdl.base "!builtin.tensor"
    %scale_0 = irdl.base "!builtin.f32"
    %scale_1 = irdl.base "!builtin.tensor"
    %scale = irdl.any_of(%scale_0, %scale_1)
    %zero_point_0 = irdl.base "!builtin.integer"
    %zero_point_1 = irdl.base "!builtin.tensor"
    %zero_point = irdl.any_of(%zero_point_0, %zero_point_1)
    irdl.results(values: %values, scale: %scale, zero_point: optional %zero_point)
  }

  // y[..., n] = x[..., k] · w[n, k] + b[n]; activations are scaled by the row.
  irdl.operation @bitlinear {
    %input = irdl.base "!builtin.tensor"
    %weight = irdl.base "!builtin.tensor"
    %bias = irdl.base "!builtin.tensor"
    %weight_scale_0 = irdl.base "!builtin.f32"
    %weight_scale_1 = irdl.base "!builtin.tensor"
    %weight_scale = irdl.any_of(%weight_scale_0, %weight_scale_1)
    %weight_zero_point_0 = irdl.base "!builtin.integer"
    %weight_zero_point_1 = irdl.base "!builtin.tensor"
    %weight_zero_point = irdl.any_of(%weight_zero_point_0, %weight_zero_point_1)
    %weight_offset_0 = irdl.base "!builtin.f32"
    %weight_offset_1 = irdl.base "!builtin.tensor"
    %weight_offset = irdl.any_of(%weight_offset_0, %weight_offset_1)
    %act_scale_0 = irdl.base "!builtin.f32"
    %act_scale_1 = irdl.base "!builtin.tensor"
    %act_scale = irdl.any_of(%act_scale_0, %act_scale_1)
    %act_zero_point_0 = irdl.base "!builtin.integer"
    %act_zero_point_1 = irdl.base "!builtin.tensor"
    %act_zero_point = irdl.any_of(%act_zero_point_0, %act_zero_point_1)
    irdl.operands(input: %input, weight: %weight, bias: optional %bias, weight_scale: optional %weight_scale, weight_zero_point: optional %weight_zero_point, weight_offset: optional %weight_offset, act_scale: optional %act_scale, act_zero_point: optional %act_zero_point)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }

  // Two-dimensional convolution, N x C x H x W by O x C/groups x kh x kw.
  irdl.operation @bitconv2d {
    %input = irdl.base "!builtin.tensor"
    %weight = irdl.base "!builtin.tensor"
    %bias = irdl.base "!builtin.tensor"
    %weight_scale_0 = irdl.base "!builtin.f32"
    %weight_scale_1 = irdl.base "!builtin.tensor"
    %weight_scale = irdl.any_of(%weight_scale_0, %weight_scale_1)
    %weight_zero_point_0 = irdl.base "!builtin.integer"
    %weight_zero_point_1 = irdl.base "!builtin.tensor"
    %weight_zero_point = irdl.any_of(%weight_zero_point_0, %weight_zero_point_1)
    %weight_offset_0 = irdl.base "!builtin.f32"
    %weight_offset_1 = irdl.base "!builtin.tensor"
    %weight_offset = irdl.any_of(%weight_offset_0, %weight_offset_1)
    %act_scale_0 = irdl.base "!builtin.f32"
    %act_scale_1 = irdl.base "!builtin.tensor"
    %act_scale = irdl.any_of(%act_scale_0, %act_scale_1)
    %act_zero_point_0 = irdl.base "!builtin.integer"
    %act_zero_point_1 = irdl.base "!builtin.tensor"
    %act_zero_point = irdl.any_of(%act_zero_point_0, %act_zero_point_1)
    irdl.operands(input: %input, weight: %weight, bias: optional %bias, weight_scale: optional %weight_scale, weight_zero_point: optional %weight_zero_point, weight_offset: optional %weight_offset, act_scale: optional %act_scale, act_zero_point: optional %act_zero_point)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %stride = irdl.base "#builtin.array"
    %padding = irdl.base "#builtin.array"
    %dilation = irdl.base "#builtin.array"
    %groups = irdl.base "#builtin.integer"
    irdl.attributes {
      "stride" = %stride,
      "padding" = %padding,
      "dilation" = %dilation,
      "groups" = %groups
    }
  }

  // One-dimensional convolution, N x C x L by O x C/groups x k.
  irdl.operation @bitconv1d {
    %input = irdl.base "!builtin.tensor"
    %weight = irdl.base "!builtin.tensor"
    %bias = irdl.base "!builtin.tensor"
    %weight_scale_0 = irdl.base "!builtin.f32"
    %weight_scale_1 = irdl.base "!builtin.tensor"
    %weight_scale = irdl.any_of(%weight_scale_0, %weight_scale_1)
    %weight_zero_point_0 = irdl.base "!builtin.integer"
    %weight_zero_point_1 = irdl.base "!builtin.tensor"
    %weight_zero_point = irdl.any_of(%weight_zero_point_0, %weight_zero_point_1)
    %weight_offset_0 = irdl.base "!builtin.f32"
    %weight_offset_1 = irdl.base "!builtin.tensor"
    %weight_offset = irdl.any_of(%weight_offset_0, %weight_offset_1)
    %act_scale_0 = irdl.base "!builtin.f32"
    %act_scale_1 = irdl.base "!builtin.tensor"
    %act_scale = irdl.any_of(%act_scale_0, %act_scale_1)
    %act_zero_point_0 = irdl.base "!builtin.integer"
    %act_zero_point_1 = irdl.base "!builtin.tensor"
    %act_zero_point = irdl.any_of(%act_zero_point_0, %act_zero_point_1)
    irdl.operands(input: %input, weight: %weight, bias: optional %bias, weight_scale: optional %weight_scale, weight_zero_point: optional %weight_zero_point, weight_offset: optional %weight_offset, act_scale: optional %act_scale, act_zero_point: optional %act_zero_point)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %stride = irdl.base "#builtin.array"
    %padding = irdl.base "#builtin.array"
    %dilation = irdl.base "#builtin.array"
    %groups = irdl.base "#builtin.integer"
    irdl.attributes {
      "stride" = %stride,
      "padding" = %padding,
      "dilation" = %dilation,
      "groups" = %groups
    }
  }

  // Rows of a table, one for each index; a few-bit table is scaled as a weight is.
  irdl.operation @embedding {
    %indices = irdl.base "!builtin.tensor"
    %weight = irdl.base "!builtin.tensor"
    %weight_scale_0 = irdl.base "!builtin.f32"
    %weight_scale_1 = irdl.base "!builtin.tensor"
    %weight_scale = irdl.any_of(%weight_scale_0, %weight_scale_1)
    %weight_zero_point_0 = irdl.base "!builtin.integer"
    %weight_zero_point_1 = irdl.base "!builtin.tensor"
    %weight_zero_point = irdl.any_of(%weight_zero_point_0, %weight_zero_point_1)
    %weight_offset_0 = irdl.base "!builtin.f32"
    %weight_offset_1 = irdl.base "!builtin.tensor"
    %weight_offset = irdl.any_of(%weight_offset_0, %weight_offset_1)
    irdl.operands(indices: %indices, weight: %weight, weight_scale: optional %weight_scale, weight_zero_point: optional %weight_zero_point, weight_offset: optional %weight_offset)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }

  // Attention over ... x tokens x head size; fewer key heads than query heads are repeated.
  irdl.operation @attention {
    %query = irdl.base "!builtin.tensor"
    %key = irdl.base "!builtin.tensor"
    %value = irdl.base "!builtin.tensor"
    %mask = irdl.base "!builtin.tensor"
    irdl.operands(query: %query, key: %key, value: %value, mask: optional %mask)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %causal = irdl.base "#builtin.integer"
    irdl.attributes {
      "causal" = %causal
    }
  }

  // max(x, 0); also of integers, which have the sign of what they stand for.
  irdl.operation @relu {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }

  // min(max(x, 0), 6).
  irdl.operation @relu6 {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }

  // x · Φ(x), exactly or by the tanh approximation.
  irdl.operation @gelu {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %approximate = irdl.base "#builtin.string"
    irdl.attributes {
      "approximate" = %approximate
    }
  }

  // x · sigmoid(x).
  irdl.operation @silu {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }

  // exp(x - max x) / Σ exp(x - max x) along one dimension.
  irdl.operation @softmax {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %dim = irdl.base "#builtin.integer"
    irdl.attributes {
      "dim" = %dim
    }
  }

  // x + y.
  irdl.operation @add {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }

  // x · y.
  irdl.operation @mul {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
  }

  // (x - mean) / sqrt(variance + eps) · weight + bias, for each channel (dimension 1).
  irdl.operation @batch_norm {
    %input = irdl.base "!builtin.tensor"
    %weight = irdl.base "!builtin.tensor"
    %bias = irdl.base "!builtin.tensor"
    %mean = irdl.base "!builtin.tensor"
    %variance = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, weight: %weight, bias: %bias, mean: %mean, variance: %variance)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %eps = irdl.base "#builtin.float"
    irdl.attributes {
      "eps" = %eps
    }
  }

  // (x - mean x) / sqrt(variance x + eps) · weight + bias.
  irdl.operation @layer_norm {
    %input = irdl.base "!builtin.tensor"
    %weight = irdl.base "!builtin.tensor"
    %bias = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, weight: %weight, bias: optional %bias)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %dims = irdl.base "#builtin.integer"
    %eps = irdl.base "#builtin.float"
    irdl.attributes {
      "dims" = %dims,
      "eps" = %eps
    }
  }

  // x / sqrt(mean x² + eps) · weight.
  irdl.operation @rms_norm {
    %input = irdl.base "!builtin.tensor"
    %weight = irdl.base "!builtin.tensor"
    irdl.operands(input: %input, weight: optional %weight)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %dims = irdl.base "#builtin.integer"
    %eps = irdl.base "#builtin.float"
    irdl.attributes {
      "dims" = %dims,
      "eps" = %eps
    }
  }

  // Blocks of the last dimension times an orthonormal Hadamard matrix, its own inverse.
  irdl.operation @hadamard {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %block = irdl.base "#builtin.integer"
    irdl.attributes {
      "block" = %block
    }
  }

  // The largest value of each window; padding never wins.
  irdl.operation @maxpool2d {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %dilation = irdl.base "#builtin.array"
    %kernel_size = irdl.base "#builtin.array"
    %stride = irdl.base "#builtin.array"
    %padding = irdl.base "#builtin.array"
    %ceil_mode = irdl.base "#builtin.integer"
    irdl.attributes {
      "dilation" = %dilation,
      "kernel_size" = %kernel_size,
      "stride" = %stride,
      "padding" = %padding,
      "ceil_mode" = %ceil_mode
    }
  }

  // The mean of each window; padding counts as zeros, or not at all.
  irdl.operation @avgpool2d {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %count_include_pad = irdl.base "#builtin.integer"
    %kernel_size = irdl.base "#builtin.array"
    %stride = irdl.base "#builtin.array"
    %padding = irdl.base "#builtin.array"
    %ceil_mode = irdl.base "#builtin.integer"
    irdl.attributes {
      "count_include_pad" = %count_include_pad,
      "kernel_size" = %kernel_size,
      "stride" = %stride,
      "padding" = %padding,
      "ceil_mode" = %ceil_mode
    }
  }

  // The dimensions from `start_dim` to `end_dim` as one.
  irdl.operation @flatten {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %start_dim = irdl.base "#builtin.integer"
    %end_dim = irdl.base "#builtin.integer"
    irdl.attributes {
      "start_dim" = %start_dim,
      "end_dim" = %end_dim
    }
  }

  // Another shape of the same elements: 0 keeps a dimension, one -1 takes what is left.
  irdl.operation @reshape {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %shape = irdl.base "#builtin.array"
    irdl.attributes {
      "shape" = %shape
    }
  }

  // Dimension i of the result is dimension permutation[i] of the input.
  irdl.operation @transpose {
    %input = irdl.base "!builtin.tensor"
    irdl.operands(input: %input)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %permutation = irdl.base "#builtin.array"
    irdl.attributes {
      "permutation" = %permutation
    }
  }

  // Tensors behind each other along one dimension.
  irdl.operation @concat {
    %inputs = irdl.base "!builtin.tensor"
    irdl.operands(inputs: variadic %inputs)
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %dim = irdl.base "#builtin.integer"
    irdl.attributes {
      "dim" = %dim
    }
  }
}
