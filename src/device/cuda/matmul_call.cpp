// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/matmul_call.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace lathe::cuda {
namespace matmul {
namespace {

struct Matrix {
  int64_t rows, columns, ld, distance;  // column-major
};

Result<cudaDataType_t> data_type(int64_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      return fail(ErrorCode::launch_refused, "cublaslt.matmul does not know the element type {}", dtype);
  }
}

bool has_bias(int64_t epilogue) { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }

Result<> check(const Values& v) {
  constexpr MatmulArg kSizes[] = {kM, kN, kK, kBatch};
  for (const MatmulArg size : kSizes)
    if (v[size] < 0 || v[size] > INT32_MAX)
      return fail(ErrorCode::launch_refused, "cublaslt.matmul: a size is {}; 0 to {} are possible", v[size], INT32_MAX);
  constexpr int64_t kEpilogues[] = {CUBLASLT_EPILOGUE_DEFAULT,   CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS,
                                    CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS};
  if (std::find(std::begin(kEpilogues), std::end(kEpilogues), v[MatmulArg::kEpilogue]) == std::end(kEpilogues))
    return fail(ErrorCode::launch_refused, "cublaslt.matmul: epilogue {} is not known", v[MatmulArg::kEpilogue]);
  return {};
}

// The library is column-major, so that it computes the transposed product: its A is our B, N by K, its B our A.
// Everything lies on the stack.
class Description {
 public:
  Description(const CublasLtHandle& handle, const Values& values)
      : handle_(handle), library_(handle.library()), v_(values) {}

  Result<> make() {
    LATHE_TRY(check(v_));
    LATHE_ASSIGN(const cudaDataType_t in, data_type(v_[kDtype]));
    LATHE_ASSIGN(const cudaDataType_t out, data_type(v_[kOutputDtype]));
    const bool tf32 = in == CUDA_R_32F && v_[kTf32] != 0;
    LATHE_TRY(handle_.check(
        library_.cublasLtMatmulDescInit_internal(&operation_, sizeof(operation_),
                                                 tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescInit_internal"));
    LATHE_TRY(set(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(v_[kMnMajorB] ? CUBLAS_OP_N : CUBLAS_OP_T)));
    LATHE_TRY(set(CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(v_[kMnMajorA] ? CUBLAS_OP_T : CUBLAS_OP_N)));
    LATHE_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(v_[kEpilogue])));
    if (has_bias(v_[kEpilogue])) LATHE_TRY(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, v_[kBias]));
    LATHE_TRY(set_layout(first_, in, operand(v_[kMnMajorB], v_[kN], v_[kPitchB], v_[kDistanceB])));
    LATHE_TRY(set_layout(second_, in, operand(v_[kMnMajorA], v_[kM], v_[kPitchA], v_[kDistanceA])));
    return set_layout(result_, out, {v_[kN], v_[kM], std::max(v_[kPitchC], v_[kN]), v_[kDistanceC]});
  }

  Result<std::vector<cublasLtMatmulHeuristicResult_t>> ask(int count) {
    cublasLtMatmulPreferenceOpaque_t preference;
    LATHE_TRY(handle_.check(library_.cublasLtMatmulPreferenceInit_internal(&preference, sizeof(preference)),
                            "cublasLtMatmulPreferenceInit_internal"));
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      return handle_.check(library_.cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)),
                           "cublasLtMatmulPreferenceSetAttribute");
    };
    LATHE_TRY(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMaxWorkspace}));
    LATHE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(v_[kAlignmentB])));
    LATHE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(v_[kAlignmentA])));
    LATHE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(v_[kAlignmentC])));
    LATHE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(v_[kAlignmentC])));
    std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(count));
    int found = 0;
    const cublasStatus_t status = library_.cublasLtMatmulAlgoGetHeuristic(
        handle_.get(), &operation_, &first_, &second_, &result_, &result_, &preference, count, results.data(), &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) found = 0;
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) LATHE_TRY(handle_.check(status, "cublasLtMatmulAlgoGetHeuristic"));
    results.resize(static_cast<size_t>(std::clamp(found, 0, count)));
    std::erase_if(results, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    return results;
  }

  // The workspace's bytes; nullopt where the algorithm does not do this product.
  std::optional<size_t> accepts(const cublasLtMatmulAlgo_t& algorithm) {
    cublasLtMatmulHeuristicResult_t result{};
    const cublasStatus_t status = library_.cublasLtMatmulAlgoCheck(handle_.get(), &operation_, &first_, &second_,
                                                                   &result_, &result_, &algorithm, &result);
    if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kMaxWorkspace) return std::nullopt;
    return result.workspaceSize;
  }

  Result<> run(const CublasLtAlgorithm& algorithm, CUstream stream) {
    // Sums over nothing: the operands are not read.
    const float alpha = v_[kK] == 0 ? 0.0f : 1.0f, beta = 0.0f;
    const auto at = [&](MatmulArg arg) { return reinterpret_cast<void*>(v_[arg]); };
    void* const c = at(kC);
    void* const a = v_[kK] == 0 ? c : at(kA);
    void* const b = v_[kK] == 0 ? c : at(kB);
    return handle_.check(
        library_.cublasLtMatmul(handle_.get(), &operation_, &alpha, b, &first_, a, &second_, &beta, c, &result_, c,
                                &result_, &algorithm.data, at(kWorkspace), algorithm.workspace_bytes, stream),
        "cublasLtMatmul");
  }

 private:
  template <class T>
  Result<> set(cublasLtMatmulDescAttributes_t attribute, T value) {
    return handle_.check(library_.cublasLtMatmulDescSetAttribute(&operation_, attribute, &value, sizeof(value)),
                         "cublasLtMatmulDescSetAttribute");
  }

  // A row-major operand, or a transposed one, as the column-major library sees it.
  Matrix operand(int64_t mn_major, int64_t outer, int64_t pitch, int64_t distance) const {
    const int64_t k = std::max<int64_t>(v_[kK], 1);
    const Matrix matrix = mn_major ? Matrix{outer, k, pitch, distance} : Matrix{k, outer, pitch, distance};
    const bool one_row = matrix.columns == 1 || v_[kK] == 0;  // then the pitch means nothing
    return {matrix.rows, matrix.columns, one_row ? std::max(pitch, matrix.rows) : pitch, distance};
  }

  Result<> set_layout(cublasLtMatrixLayoutOpaque_t& layout, cudaDataType_t type, const Matrix& matrix) {
    if (matrix.ld < matrix.rows)
      return fail(ErrorCode::launch_refused, "cublaslt.matmul: rows of {} elements lie {} apart", matrix.rows,
                  matrix.ld);
    LATHE_TRY(handle_.check(
        library_.cublasLtMatrixLayoutInit_internal(&layout, sizeof(layout), type, static_cast<uint64_t>(matrix.rows),
                                                   static_cast<uint64_t>(matrix.columns), matrix.ld),
        "cublasLtMatrixLayoutInit_internal"));
    if (v_[kBatch] == 1) return {};
    const auto count = static_cast<int32_t>(v_[kBatch]);
    LATHE_TRY(handle_.check(
        library_.cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
        "cublasLtMatrixLayoutSetAttribute"));
    return handle_.check(library_.cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                                   &matrix.distance, sizeof(matrix.distance)),
                         "cublasLtMatrixLayoutSetAttribute");
  }

  const CublasLtHandle& handle_;
  const CublasLt& library_;
  const Values& v_;
  cublasLtMatmulDescOpaque_t operation_;
  cublasLtMatrixLayoutOpaque_t first_, second_, result_;
};

std::string text_of(const CublasLt& library, const cublasLtMatmulAlgo_t& algorithm) {
  constexpr std::pair<cublasLtMatmulAlgoConfigAttributes_t, const char*> kShown[] = {
      {CUBLASLT_ALGO_CONFIG_ID, "algo"},
      {CUBLASLT_ALGO_CONFIG_TILE_ID, "tile"},
      {CUBLASLT_ALGO_CONFIG_STAGES_ID, "stages"},
      {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, "splits"}};
  std::string text;
  for (const auto& [attribute, name] : kShown) {
    uint32_t value = 0;
    size_t written = 0;
    if (library.cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written) ==
        CUBLAS_STATUS_SUCCESS)
      text += fmt::format("{}={} ", name, value);
  }
  return text + fmt::format("#{:08x}", Hasher().add(std::as_bytes(std::span(algorithm.data))).value() >> 32);
}

}  // namespace

Result<std::vector<CublasLtAlgorithm>> find_algorithms(const CublasLtHandle& handle, const Values& values, int count) {
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(handle.context()));
  Description description(handle, values);
  LATHE_TRY(description.make());
  LATHE_ASSIGN(const std::vector<cublasLtMatmulHeuristicResult_t> results, description.ask(count));
  std::vector<CublasLtAlgorithm> algorithms;
  for (const auto& result : results)
    algorithms.push_back({result.algo, result.workspaceSize, text_of(handle.library(), result.algo)});
  return algorithms;
}

}  // namespace matmul

namespace {

bool is_empty(const matmul::Values& v) { return v[matmul::kM] == 0 || v[matmul::kN] == 0 || v[matmul::kBatch] == 0; }

matmul::Values to_values(std::span<const int64_t> from) {
  matmul::Values values;
  std::copy_n(from.begin(), values.size(), values.begin());
  return values;
}

}  // namespace

// The algorithm of the plan where the same version of the library has chosen it and it does these shapes, or else what
// the library thinks best.
Result<matmul::CublasLtAlgorithm> MatmulCall::choose(const matmul::Values& values) const {
  matmul::Description description(*handle_, values);
  LATHE_TRY(description.make());
  if (values[matmul::kVersion] == static_cast<int64_t>(handle_->library().version)) {
    matmul::CublasLtAlgorithm stored;
    std::memcpy(&stored.data, &values[matmul::kAlgorithm], sizeof(stored.data));
    if (const std::optional<size_t> bytes = description.accepts(stored.data)) {
      stored.workspace_bytes = *bytes;
      return stored;
    }
  }
  LATHE_ASSIGN(const std::vector<cublasLtMatmulHeuristicResult_t> results, description.ask(1));
  if (results.empty())
    return fail(ErrorCode::library_call_failed, "cuBLASLt {} has no algorithm for a product of {} x {} x {}",
                handle_->library().version_text(), values[matmul::kM], values[matmul::kN], values[matmul::kK]);
  return matmul::CublasLtAlgorithm{results[0].algo, results[0].workspaceSize, ""};
}

Result<std::shared_ptr<const matmul::CublasLtAlgorithm>> MatmulCall::choice(const matmul::Values& values) const {
  return chosen_.get(values, [&](const matmul::Values& numbers) -> Result<matmul::CublasLtAlgorithm> {
    LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(handle_->context()));
    return choose(numbers);
  });
}

Result<size_t> MatmulCall::prepare(std::span<const int64_t> from) const {
  const matmul::Values values = to_values(from);
  LATHE_TRY(matmul::check(values));
  if (is_empty(values)) return 0;
  LATHE_ASSIGN(const std::shared_ptr<const matmul::CublasLtAlgorithm> chosen, choice(values));
  return chosen->workspace_bytes;
}

Result<> MatmulCall::enqueue(std::span<const int64_t> from, Stream& stream) const {
  const matmul::Values values = to_values(from);
  if (is_empty(values)) return {};
  LATHE_ASSIGN(const std::shared_ptr<const matmul::CublasLtAlgorithm> chosen, choice(values));
  matmul::Description description(*handle_, values);
  LATHE_TRY(description.make());
  return description.run(*chosen, stream.handle());
}

}  // namespace lathe::cuda
