// CUTLASS's implicit GEMM, instantiated for one convolution. Its parameters are usually made on the
// host; here every thread makes them, of constants, so that the compiler folds them and the kernel
// takes three addresses like every other.
#include "cutlass/conv/kernel/default_conv2d_fprop.h"
#include "cutlass/conv/kernel/implicit_gemm_convolution.h"
#include "cutlass/epilogue/thread/linear_combination.h"

using Layout = cutlass::layout::TensorNHWC;
using Output = cutlass::epilogue::thread::LinearCombination<RESULT, PER_STORE, SUM, SUM>;
using Kernel = typename cutlass::conv::kernel::DefaultConv2dFprop<
    INPUT, Layout, INPUT, Layout, RESULT, Layout, SUM, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<BM, BN, BK>, cutlass::gemm::GemmShape<WM, WN, BK>, INSTRUCTION, Output,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<1>, STAGES, OPERATOR,
    cutlass::conv::IteratorAlgorithm::kOptimized, cutlass::conv::StrideSupport::kStrided, ALIGNMENT, ALIGNMENT>::Kernel;

extern "C" __global__ void __launch_bounds__(Kernel::kThreadCount)
    conv2d_cutlass(INPUT* x, INPUT* w, RESULT* y) {
  extern __shared__ __align__(128) char memory[];
  cutlass::conv::Conv2dProblemSize size(
      {BATCH, HEIGHT, WIDTH, CHANNELS}, {FILTERS, KH, KW, CHANNELS}, {PAD_H, PAD_H, PAD_W, PAD_W},
      {STRIDE_H, STRIDE_W}, {DILATION_H, DILATION_W}, {BATCH, OH, OW, FILTERS},
      cutlass::conv::Mode::kCrossCorrelation, 1);
  Layout in({CHANNELS, CHANNELS * WIDTH, CHANNELS * WIDTH * HEIGHT});
  Layout filter({CHANNELS, CHANNELS * KW, CHANNELS * KW * KH});
  Layout out({FILTERS, FILTERS * OW, FILTERS * OW * OH});
  typename Kernel::Arguments arguments(size, {x, in}, {w, filter}, {y, out}, {y, out}, {SUM(1), SUM(0)});
  typename Kernel::Params params(arguments);
  Kernel kernel;
  kernel(params, *reinterpret_cast<typename Kernel::SharedStorage*>(memory));
}
static_assert(sizeof(typename Kernel::SharedStorage) <= SHARED, "more shared memory than is asked for");
