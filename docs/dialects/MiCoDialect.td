// Generated from the definition of the dialect: fewbit export-dialect mico

#ifndef MICO_DIALECT_TD
#define MICO_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def MiCo_Dialect : Dialect {
  let name = "mico";
  let cppNamespace = "::mlir::mico";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class MiCo_Type<string name, string word> : TypeDef<MiCo_Dialect, name> {
  let mnemonic = word;
}

class MiCo_Attr<string name, string word> : AttrDef<MiCo_Dialect, name> {
  let mnemonic = word;
}

class MiCo_Op<string word, list<Trait> traits> : Op<MiCo_Dialect, word, traits>;

def MiCo_IntType : MiCo_Type<"Int", "int"> {
  let summary = "A signed integer of exactly N bits, N = 1..8; one bit holds -1 or +1.";
  let parameters = (ins "::mlir::IntegerAttr":$width);
  let assemblyFormat = "`<` $width `>`";
  let genVerifyDecl = 1;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify(
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError,
        ::mlir::IntegerAttr width) {
      if (width.getInt() < 1 || width.getInt() > 8)
        return emitError() << "mico.int takes 1 to 8";
      return ::llvm::success();
    }
  }];
}

def MiCo_TernaryType : MiCo_Type<"Ternary", "ternary"> {
  let summary = "-1, 0 or +1; stored in 2 bits.";
}

def MiCo_QTensorType : MiCo_Type<"QTensor", "qtensor"> {
  let summary = "Integers together with their scale and zero point, as one value.";
  let description = [{
    The scale's shape is the granularity: `f32` or rank 0 for the tensor, rank 1 for output
    channels, rank 2 for groups along the reduction dimension.
  }];
  let parameters = (ins "::mlir::Attribute":$values, "::mlir::Attribute":$scale, "::mlir::Attribute":$zero_point);
  let assemblyFormat = "`<` $values `,` $scale `,` $zero_point `>`";
}

def MiCo_KVCacheType : MiCo_Type<"KVCache", "kv_cache"> {
  let summary = "Keys or values of the tokens seen so far: batch x heads x capacity x head size.";
  let description = [{
    The elements may be few-bit; then `scale` is the type of the scales, else `none`.
  }];
  let parameters = (ins "::mlir::Attribute":$values, "::mlir::Attribute":$scale);
  let assemblyFormat = "`<` $values `,` $scale `>`";
}

def MiCo_PackedAttr : MiCo_Attr<"Packed", "packed"> {
  let summary = "Few-bit integers packed as `fewbit.numerics.packing` does, in hexadecimal.";
  let parameters = (ins "::mlir::StringAttr":$digits);
  let assemblyFormat = "`<` $digits `>`";
}

def MiCo_RefAttr : MiCo_Attr<"Ref", "ref"> {
  let summary = "A tensor of the weight store: its key, and the SHA-256 of its content.";
  let parameters = (ins "::mlir::StringAttr":$key_attr, "::mlir::StringAttr":$sha256_attr);
  let assemblyFormat = "`<` $key_attr `,` $sha256_attr `>`";
}

def MiCo_ConstantOp : MiCo_Op<"constant", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, ParentOneOf<["ModuleOp"]>, Symbol]> {
  let summary = "A constant tensor with a name.";
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<AnyRankedTensor>:$type,
    AnyAttrOf<[MiCo_PackedAttr, MiCo_RefAttr, ElementsAttr]>:$value,
    OptionalAttr<FlatSymbolRefAttr>:$scale,
    OptionalAttr<FlatSymbolRefAttr>:$zero_point,
    OptionalAttr<FlatSymbolRefAttr>:$offset
  );
  let hasVerifier = 1;
}

def MiCo_GetConstantOp : MiCo_Op<"get_constant", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, Pure]> {
  let summary = "The value of a constant.";
  let arguments = (ins
    FlatSymbolRefAttr:$symbol
  );
  let results = (outs
    AnyRankedTensor:$result
  );
}

def MiCo_WeightQuantOp : MiCo_Op<"weight_quant", [Pure]> {
  let summary = "A float weight as integers, their scale and, if asymmetric, their zero point.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$weight,
    AnyAttrOf<[I32Attr, TypeAttrOf<MiCo_TernaryType>]>:$bits,
    StrAttr:$mode,
    StrAttr:$granularity,
    OptionalAttr<I32Attr>:$group,
    BoolAttr:$symmetric
  );
  let results = (outs
    RankedTensorOf<[MiCo_IntType, MiCo_TernaryType]>:$values,
    AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$zero_point
  );
  let hasVerifier = 1;
}

def MiCo_ActivationQuantOp : MiCo_Op<"activation_quant", [Pure]> {
  let summary = "Activations quantized by scales that are found at run time.";
  let description = [{
    With one float result: rounded to what the integers can hold, and float again. With two: the
    integers and their scales, one for each row, sample, or the tensor.
  }];
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input,
    AnyAttrOf<[I32Attr, TypeAttrOf<MiCo_TernaryType>]>:$bits,
    StrAttr:$mode,
    StrAttr:$granularity
  );
  let results = (outs
    RankedTensorOf<[AnyFloat, MiCo_IntType, MiCo_TernaryType]>:$result,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$scale
  );
  let hasVerifier = 1;
}

def MiCo_QuantizeOp : MiCo_Op<"quantize", [Pure]> {
  let summary = "Floats as integers, with a scale that is known: round(x / scale) + zero point, clamped.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input,
    AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$zero_point
  );
  let results = (outs
    RankedTensorOf<[MiCo_IntType, MiCo_TernaryType]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_DequantizeOp : MiCo_Op<"dequantize", [AttrSizedOperandSegments, Pure]> {
  let summary = "Integers as floats: (u - zero point) · scale, or (u - qmin) · scale + offset.";
  let arguments = (ins
    RankedTensorOf<[MiCo_IntType, MiCo_TernaryType]>:$input,
    AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$zero_point,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$offset
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_RequantizeOp : MiCo_Op<"requantize", [AttrSizedOperandSegments, Pure]> {
  let summary = "Accumulators as the next layer's integers: round(acc · multiplier) + zero point, clamped.";
  let description = [{
    The multiplier is f32, or with `shift` a fixed-point number, multiplier / 2^shift; one for all,
    or one for each entry of the dimension `axis`.
  }];
  let arguments = (ins
    RankedTensorOf<[I32]>:$input,
    AnyTypeOf<[F32, RankedTensorOf<[F32, I32]>, I32]>:$multiplier,
    Optional<AnyTypeOf<[I32, RankedTensorOf<[I32]>]>>:$shift,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$zero_point,
    I32Attr:$axis
  );
  let results = (outs
    RankedTensorOf<[MiCo_IntType, MiCo_TernaryType]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_BundleOp : MiCo_Op<"bundle", [Pure]> {
  let summary = "Integers, their scale and perhaps zero point, as one value.";
  let arguments = (ins
    RankedTensorOf<[MiCo_IntType, MiCo_TernaryType]>:$values,
    AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$zero_point
  );
  let results = (outs
    MiCo_QTensorType:$result
  );
  let hasVerifier = 1;
}

def MiCo_UnbundleOp : MiCo_Op<"unbundle", [Pure]> {
  let summary = "The parts of a quantized tensor.";
  let arguments = (ins
    MiCo_QTensorType:$input
  );
  let results = (outs
    RankedTensorOf<[MiCo_IntType, MiCo_TernaryType]>:$values,
    AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$zero_point
  );
  let hasVerifier = 1;
}

def MiCo_BitLinearOp : MiCo_Op<"bitlinear", [AttrSizedOperandSegments, Pure]> {
  let summary = "y[..., n] = x[..., k] · w[n, k] + b[n]; activations are scaled by the row.";
  let description = [{
    With `act_group`, the size of the weight's groups, each group of a row has a scale of its own;
    where activations arrive as integers, their scales are then ... x groups.
  }];
  let arguments = (ins
    RankedTensorOf<[AnyFloat, MiCo_IntType, MiCo_TernaryType]>:$input,
    RankedTensorOf<[AnyFloat, MiCo_IntType, MiCo_TernaryType]>:$weight,
    Optional<RankedTensorOf<[AnyFloat, I32]>>:$bias,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$weight_scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$weight_zero_point,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$weight_offset,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$act_scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$act_zero_point,
    OptionalAttr<I32Attr>:$act_group,
    OptionalAttr<I32Attr>:$weight_bits,
    OptionalAttr<AnyAttrOf<[I32Attr, TypeAttrOf<MiCo_TernaryType>]>>:$act_bits,
    OptionalAttr<StrAttr>:$act_mode
  );
  let results = (outs
    RankedTensorOf<[AnyFloat, I32]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_BitConv2dOp : MiCo_Op<"bitconv2d", [AttrSizedOperandSegments, Pure]> {
  let summary = "Two-dimensional convolution, N x C x H x W by O x C/groups x kh x kw.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat, MiCo_IntType, MiCo_TernaryType]>:$input,
    RankedTensorOf<[AnyFloat, MiCo_IntType, MiCo_TernaryType]>:$weight,
    Optional<RankedTensorOf<[AnyFloat, I32]>>:$bias,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$weight_scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$weight_zero_point,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$weight_offset,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$act_scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$act_zero_point,
    TypedArrayAttrBase<I64Attr, "array attribute">:$stride,
    TypedArrayAttrBase<I64Attr, "array attribute">:$padding,
    TypedArrayAttrBase<I64Attr, "array attribute">:$dilation,
    I32Attr:$groups,
    OptionalAttr<I32Attr>:$weight_bits,
    OptionalAttr<AnyAttrOf<[I32Attr, TypeAttrOf<MiCo_TernaryType>]>>:$act_bits,
    OptionalAttr<StrAttr>:$act_mode
  );
  let results = (outs
    RankedTensorOf<[AnyFloat, I32]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_BitConv1dOp : MiCo_Op<"bitconv1d", [AttrSizedOperandSegments, Pure]> {
  let summary = "One-dimensional convolution, N x C x L by O x C/groups x k.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat, MiCo_IntType, MiCo_TernaryType]>:$input,
    RankedTensorOf<[AnyFloat, MiCo_IntType, MiCo_TernaryType]>:$weight,
    Optional<RankedTensorOf<[AnyFloat, I32]>>:$bias,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$weight_scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$weight_zero_point,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$weight_offset,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$act_scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$act_zero_point,
    TypedArrayAttrBase<I64Attr, "array attribute">:$stride,
    TypedArrayAttrBase<I64Attr, "array attribute">:$padding,
    TypedArrayAttrBase<I64Attr, "array attribute">:$dilation,
    I32Attr:$groups,
    OptionalAttr<I32Attr>:$weight_bits,
    OptionalAttr<AnyAttrOf<[I32Attr, TypeAttrOf<MiCo_TernaryType>]>>:$act_bits,
    OptionalAttr<StrAttr>:$act_mode
  );
  let results = (outs
    RankedTensorOf<[AnyFloat, I32]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_EmbeddingOp : MiCo_Op<"embedding", [AttrSizedOperandSegments, Pure]> {
  let summary = "Rows of a table, one for each index; a few-bit table is scaled as a weight is.";
  let arguments = (ins
    RankedTensorOf<[AnyInteger, Index]>:$indices,
    RankedTensorOf<[AnyFloat, MiCo_IntType, MiCo_TernaryType]>:$weight,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$weight_scale,
    Optional<AnyTypeOf<[AnyInteger, RankedTensorOf<[AnyInteger]>]>>:$weight_zero_point,
    Optional<AnyTypeOf<[F32, RankedTensorOf<[F32]>]>>:$weight_offset
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_AttentionOp : MiCo_Op<"attention", [Pure]> {
  let summary = "Attention over ... x tokens x head size; fewer key heads than query heads are repeated.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$query,
    RankedTensorOf<[AnyFloat]>:$key,
    RankedTensorOf<[AnyFloat]>:$value,
    Optional<AnyRankedTensor>:$mask,
    BoolAttr:$causal,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<AnyAttrOf<[I32Attr, TypeAttrOf<MiCo_TernaryType>]>>:$query_bits,
    OptionalAttr<AnyAttrOf<[I32Attr, TypeAttrOf<MiCo_TernaryType>]>>:$key_bits,
    OptionalAttr<AnyAttrOf<[I32Attr, TypeAttrOf<MiCo_TernaryType>]>>:$value_bits,
    OptionalAttr<AnyAttrOf<[I32Attr, TypeAttrOf<MiCo_TernaryType>]>>:$score_bits
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_ReluOp : MiCo_Op<"relu", [Pure]> {
  let summary = "max(x, 0); also of integers, which have the sign of what they stand for.";
  let arguments = (ins
    AnyRankedTensor:$input
  );
  let results = (outs
    AnyRankedTensor:$result
  );
  let hasVerifier = 1;
}

def MiCo_Relu6Op : MiCo_Op<"relu6", [Pure]> {
  let summary = "min(max(x, 0), 6).";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_GeluOp : MiCo_Op<"gelu", [Pure]> {
  let summary = "x · Φ(x), exactly or by the tanh approximation.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input,
    StrAttr:$approximate
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_SiluOp : MiCo_Op<"silu", [Pure]> {
  let summary = "x · sigmoid(x).";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_SoftmaxOp : MiCo_Op<"softmax", [Pure]> {
  let summary = "exp(x - max x) / Σ exp(x - max x) along one dimension.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input,
    I32Attr:$dim
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_AddOp : MiCo_Op<"add", [Commutative, Pure]> {
  let summary = "x + y.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$lhs,
    RankedTensorOf<[AnyFloat]>:$rhs
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_MulOp : MiCo_Op<"mul", [Commutative, Pure]> {
  let summary = "x · y.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$lhs,
    RankedTensorOf<[AnyFloat]>:$rhs
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_BatchNormOp : MiCo_Op<"batch_norm", [Pure]> {
  let summary = "(x - mean) / sqrt(variance + eps) · weight + bias, for each channel (dimension 1).";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input,
    RankedTensorOf<[AnyFloat]>:$weight,
    RankedTensorOf<[AnyFloat]>:$bias,
    RankedTensorOf<[AnyFloat]>:$mean,
    RankedTensorOf<[AnyFloat]>:$variance,
    F64Attr:$eps
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_LayerNormOp : MiCo_Op<"layer_norm", [Pure]> {
  let summary = "(x - mean x) / sqrt(variance x + eps) · weight + bias.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input,
    RankedTensorOf<[AnyFloat]>:$weight,
    Optional<RankedTensorOf<[AnyFloat]>>:$bias,
    I32Attr:$dims,
    F64Attr:$eps
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_RmsNormOp : MiCo_Op<"rms_norm", [Pure]> {
  let summary = "x / sqrt(mean x² + eps) · weight.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input,
    Optional<RankedTensorOf<[AnyFloat]>>:$weight,
    I32Attr:$dims,
    F64Attr:$eps
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_HadamardOp : MiCo_Op<"hadamard", [Pure]> {
  let summary = "Blocks of the last dimension times an orthonormal Hadamard matrix, its own inverse.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input,
    I32Attr:$block
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_MaxPool2dOp : MiCo_Op<"maxpool2d", [Pure]> {
  let summary = "The largest value of each window; padding never wins.";
  let arguments = (ins
    AnyRankedTensor:$input,
    TypedArrayAttrBase<I64Attr, "array attribute">:$dilation,
    TypedArrayAttrBase<I64Attr, "array attribute">:$kernel_size,
    TypedArrayAttrBase<I64Attr, "array attribute">:$stride,
    TypedArrayAttrBase<I64Attr, "array attribute">:$padding,
    BoolAttr:$ceil_mode
  );
  let results = (outs
    AnyRankedTensor:$result
  );
  let hasVerifier = 1;
}

def MiCo_AvgPool2dOp : MiCo_Op<"avgpool2d", [Pure]> {
  let summary = "The mean of each window; padding counts as zeros, or not at all.";
  let arguments = (ins
    RankedTensorOf<[AnyFloat]>:$input,
    BoolAttr:$count_include_pad,
    TypedArrayAttrBase<I64Attr, "array attribute">:$kernel_size,
    TypedArrayAttrBase<I64Attr, "array attribute">:$stride,
    TypedArrayAttrBase<I64Attr, "array attribute">:$padding,
    BoolAttr:$ceil_mode
  );
  let results = (outs
    RankedTensorOf<[AnyFloat]>:$result
  );
  let hasVerifier = 1;
}

def MiCo_FlattenOp : MiCo_Op<"flatten", [Pure]> {
  let summary = "The dimensions from `start_dim` to `end_dim` as one.";
  let arguments = (ins
    AnyRankedTensor:$input,
    I32Attr:$start_dim,
    I32Attr:$end_dim
  );
  let results = (outs
    AnyRankedTensor:$result
  );
  let hasVerifier = 1;
}

def MiCo_ReshapeOp : MiCo_Op<"reshape", [Pure]> {
  let summary = "Another shape of the same elements: 0 keeps a dimension, one -1 takes what is left.";
  let arguments = (ins
    AnyRankedTensor:$input,
    TypedArrayAttrBase<I64Attr, "array attribute">:$shape
  );
  let results = (outs
    AnyRankedTensor:$result
  );
  let hasVerifier = 1;
}

def MiCo_TransposeOp : MiCo_Op<"transpose", [Pure]> {
  let summary = "Dimension i of the result is dimension permutation[i] of the input.";
  let arguments = (ins
    AnyRankedTensor:$input,
    TypedArrayAttrBase<I64Attr, "array attribute">:$permutation
  );
  let results = (outs
    AnyRankedTensor:$result
  );
  let hasVerifier = 1;
}

def MiCo_ConcatOp : MiCo_Op<"concat", [Pure]> {
  let summary = "Tensors behind each other along one dimension.";
  let arguments = (ins
    Variadic<AnyRankedTensor>:$inputs,
    I32Attr:$dim
  );
  let results = (outs
    AnyRankedTensor:$result
  );
  let hasVerifier = 1;
}

#endif // MICO_DIALECT_TD
