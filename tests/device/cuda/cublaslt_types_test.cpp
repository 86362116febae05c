// SPDX-License-Identifier: Apache-2.0
// Our declarations of cuBLASLt's types against NVIDIA's, where its header is installed.
#include <gtest/gtest.h>

#include "device/cuda/cublaslt_types.h"
#include "device/cuda/cuda_types.h"
#include "device/cuda/same_sizes.h"

#ifndef LATHE_HAS_CUBLASLT_HEADER
TEST(CublasLtTypes, AreThoseOfTheHeader) { GTEST_SKIP() << "cublasLt.h is not installed"; }
#else
#include <cublasLt.h>

namespace ours = lathe::cuda;

#define SAME_VALUE(name) static_assert(static_cast<int>(ours::name) == static_cast<int>(::name))
SAME_VALUE(CUBLAS_STATUS_SUCCESS);
SAME_VALUE(CUBLAS_STATUS_NOT_INITIALIZED);
SAME_VALUE(CUBLAS_STATUS_ALLOC_FAILED);
SAME_VALUE(CUBLAS_STATUS_INVALID_VALUE);
SAME_VALUE(CUBLAS_STATUS_ARCH_MISMATCH);
SAME_VALUE(CUBLAS_STATUS_EXECUTION_FAILED);
SAME_VALUE(CUBLAS_STATUS_INTERNAL_ERROR);
SAME_VALUE(CUBLAS_STATUS_NOT_SUPPORTED);
SAME_VALUE(CUBLAS_OP_N);
SAME_VALUE(CUBLAS_OP_T);
SAME_VALUE(CUBLAS_COMPUTE_32F);
SAME_VALUE(CUBLAS_COMPUTE_32F_FAST_TF32);
SAME_VALUE(CUDA_R_32F);
SAME_VALUE(CUDA_R_16F);
SAME_VALUE(CUDA_R_16BF);
SAME_VALUE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME_VALUE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME_VALUE(CUBLASLT_MATMUL_DESC_TRANSA);
SAME_VALUE(CUBLASLT_MATMUL_DESC_TRANSB);
SAME_VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME_VALUE(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME_VALUE(CUBLASLT_EPILOGUE_DEFAULT);
SAME_VALUE(CUBLASLT_EPILOGUE_RELU);
SAME_VALUE(CUBLASLT_EPILOGUE_BIAS);
SAME_VALUE(CUBLASLT_EPILOGUE_RELU_BIAS);
SAME_VALUE(CUBLASLT_EPILOGUE_GELU);
SAME_VALUE(CUBLASLT_EPILOGUE_GELU_BIAS);
SAME_VALUE(CUBLASLT_ALGO_CONFIG_ID);
SAME_VALUE(CUBLASLT_ALGO_CONFIG_TILE_ID);
SAME_VALUE(CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
SAME_VALUE(CUBLASLT_ALGO_CONFIG_STAGES_ID);

#define SAME_SIZE(type) static_assert(sizeof(ours::type) == sizeof(::type) && alignof(ours::type) == alignof(::type))
SAME_SIZE(cublasLtMatrixLayoutOpaque_t);
SAME_SIZE(cublasLtMatmulDescOpaque_t);
SAME_SIZE(cublasLtMatmulPreferenceOpaque_t);
SAME_SIZE(cublasLtMatmulAlgo_t);
SAME_SIZE(cublasLtMatmulHeuristicResult_t);
#define SAME_PLACE(type, member) static_assert(offsetof(ours::type, member) == offsetof(::type, member))
SAME_PLACE(cublasLtMatmulHeuristicResult_t, algo);
SAME_PLACE(cublasLtMatmulHeuristicResult_t, workspaceSize);
SAME_PLACE(cublasLtMatmulHeuristicResult_t, state);
SAME_PLACE(cublasLtMatmulHeuristicResult_t, wavesCount);

namespace lathe::cuda {
struct Declared {
#define LATHE_CUBLASLT_FUNCTION(result, name, parameters) result(*name) parameters;
#include "device/cuda/cublaslt.def"
#undef LATHE_CUBLASLT_FUNCTION
};
}  // namespace lathe::cuda
#define LATHE_CUBLASLT_FUNCTION(result, name, parameters) \
  static_assert(same_sizes<decltype(ours::Declared::name), decltype(&::name)>(), #name);
#include "device/cuda/cublaslt.def"
#undef LATHE_CUBLASLT_FUNCTION

TEST(CublasLtTypes, AreThoseOfTheHeader) { SUCCEED() << "checked while compiling"; }
#endif
