// SPDX-License-Identifier: Apache-2.0
// A stand-in for cuBLASLt: column-major products by plain loops, done when the stream comes to them. It has three
// algorithms: 0 takes everything, 1 wants operands at multiples of 16 bytes, 2 wants K of 64 and workspace.
#include <cmath>
#include <cstring>

#include "device/cuda/cublaslt_types.h"
#include "device/cuda/cuda_types.h"
#include "fake_cuda/libraries/library_state.h"

// The functions, with the types that the library under test calls them by.
namespace lathe::cuda {
#define LATHE_CUBLASLT_FUNCTION(result, name, parameters) \
  extern "C" __attribute__((visibility("default"))) result name parameters;
#include "device/cuda/cublaslt.def"
#undef LATHE_CUBLASLT_FUNCTION
}  // namespace lathe::cuda

namespace fake_library {
const size_t kFirstVersion = 130100, kMostOffered = 3;
}

namespace lathe::cuda {
namespace {

using fake_library::state;

constexpr uint64_t kMagic = 0x5afe;  // marks what was initialised
constexpr uint64_t kSplitWorkspace = 4096;

// How the opaque structures are filled here.
struct Layout {
  uint64_t magic;
  int64_t type, rows, columns, ld, batch, distance;
  uint64_t unused;
};
struct Operation {
  uint64_t magic;
  int64_t compute, transpose_a, transpose_b, epilogue;
  const void* bias;
  uint64_t unused[26];
};
struct Preference {
  uint64_t magic, workspace, alignment[4], unused[2];
};
struct Algorithm {
  uint64_t magic, version, id, unused[5];
};
static_assert(sizeof(Layout) == sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Operation) == sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Preference) == sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));

template <class T, class Opaque>
T& as(Opaque* opaque) {
  return *reinterpret_cast<T*>(opaque);
}

DType dtype_of(int64_t type) {
  return type == CUDA_R_16F ? DType::f16 : type == CUDA_R_16BF ? DType::bf16 : DType::f32;
}

struct Product {
  Operation operation;
  Layout a, b, d;
};

bool is_valid(const Product& p) {
  if (p.operation.magic != kMagic) return false;
  for (const Layout* layout : {&p.a, &p.b, &p.d})
    if (layout->magic != kMagic || layout->ld < layout->rows || layout->rows <= 0 || layout->columns <= 0) return false;
  const bool ta = p.operation.transpose_a, tb = p.operation.transpose_b;
  const int64_t m = ta ? p.a.columns : p.a.rows, k = ta ? p.a.rows : p.a.columns;
  return m == p.d.rows && (tb ? p.b.columns : p.b.rows) == k && (tb ? p.b.rows : p.b.columns) == p.d.columns &&
         p.a.batch == p.d.batch && p.b.batch == p.d.batch;
}

int64_t depth(const Product& p) { return p.operation.transpose_a ? p.a.rows : p.a.columns; }

uint64_t workspace_of(uint64_t id) { return id == 2 ? kSplitWorkspace : 0; }

bool accepts(const Product& p, uint64_t id, uint64_t alignment) {
  return id == 0 || (id == 1 && alignment >= 16) || (id == 2 && depth(p) >= 64);
}

float activate(int64_t epilogue, float x) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU) return x > 0 || std::isnan(x) ? x : 0;
  if (epilogue & CUBLASLT_EPILOGUE_GELU)
    return 0.5f * x * (1 + std::tanh(std::sqrt(2 / static_cast<float>(M_PI)) * (x + 0.044715f * x * x * x)));
  return x;
}

// What TF32 keeps of a float.
float rounded(float value, int64_t compute) {
  if (compute != CUBLAS_COMPUTE_32F_FAST_TF32) return value;
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x1000) & 0xffffe000;
  std::memcpy(&value, &bits, 4);
  return value;
}

void multiply(const Product& p, float alpha, const void* a, const void* b, void* d) {
  const DType in = dtype_of(p.a.type), out = dtype_of(p.d.type);
  const bool ta = p.operation.transpose_a, tb = p.operation.transpose_b;
  for (int64_t batch = 0; batch < p.d.batch; ++batch)
    for (int64_t column = 0; column < p.d.columns; ++column)
      for (int64_t row = 0; row < p.d.rows; ++row) {
        float sum = 0;
        for (int64_t k = 0; alpha != 0 && k < depth(p); ++k) {
          const int64_t at_a = ta ? k + row * p.a.ld : row + k * p.a.ld;
          const int64_t at_b = tb ? column + k * p.b.ld : k + column * p.b.ld;
          sum += rounded(fake_library::load(in, a, at_a + batch * p.a.distance), p.operation.compute) *
                 rounded(fake_library::load(in, b, at_b + batch * p.b.distance), p.operation.compute);
        }
        sum *= alpha;
        if (p.operation.epilogue & CUBLASLT_EPILOGUE_BIAS) sum += fake_library::load(out, p.operation.bias, row);
        fake_library::store(out, d, row + column * p.d.ld + batch * p.d.distance, activate(p.operation.epilogue, sum));
      }
}

Product product(cublasLtMatmulDescOpaque_t* description, cublasLtMatrixLayoutOpaque_t* a,
                cublasLtMatrixLayoutOpaque_t* b, cublasLtMatrixLayoutOpaque_t* d) {
  return {as<Operation>(description), as<Layout>(a), as<Layout>(b), as<Layout>(d)};
}

}  // namespace

// Returns the failure that was asked for.
#define FAKE_ENTER() \
  if (const int s = fake_library::enter(__func__)) return static_cast<cublasStatus_t>(s)

extern "C" {

size_t cublasLtGetVersion() { return state().version; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_SOMETHING";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  FAKE_ENTER();
  ++state().live;
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(42));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  --state().live;
  delete reinterpret_cast<int*>(handle);
  return static_cast<cublasStatus_t>(fake_library::enter(__func__));
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayoutOpaque_t* layout, size_t size, cudaDataType_t type,
                                                 uint64_t rows, uint64_t columns, int64_t ld) {
  FAKE_ENTER();
  if (size != sizeof(*layout)) return CUBLAS_STATUS_INVALID_VALUE;
  as<Layout>(layout) = {kMagic, type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), ld, 1, 0, 0};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayoutOpaque_t* layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t size) {
  FAKE_ENTER();
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == 4)
    as<Layout>(layout).batch = *static_cast<const int32_t*>(value);
  else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == 8)
    as<Layout>(layout).distance = *static_cast<const int64_t*>(value);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDescOpaque_t* description, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  FAKE_ENTER();
  if (size != sizeof(*description) || scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  as<Operation>(description) = {kMagic, compute, 0, 0, CUBLASLT_EPILOGUE_DEFAULT, nullptr, {}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDescOpaque_t* description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t size) {
  FAKE_ENTER();
  auto& operation = as<Operation>(description);
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER && size == 8)
    operation.bias = *static_cast<const void* const*>(value);
  else if (size != 4)
    return CUBLAS_STATUS_INVALID_VALUE;
  else
    (attribute == CUBLASLT_MATMUL_DESC_TRANSA   ? operation.transpose_a
     : attribute == CUBLASLT_MATMUL_DESC_TRANSB ? operation.transpose_b
                                                : operation.epilogue) = *static_cast<const int32_t*>(value);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreferenceOpaque_t* preference, size_t size) {
  FAKE_ENTER();
  if (size != sizeof(*preference)) return CUBLAS_STATUS_INVALID_VALUE;
  as<Preference>(preference) = {kMagic, 0, {256, 256, 256, 256}, {}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreferenceOpaque_t* preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t size) {
  FAKE_ENTER();
  auto& wanted = as<Preference>(preference);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == 8)
    wanted.workspace = *static_cast<const uint64_t*>(value);
  else if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES && size == 4)
    wanted.alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = *static_cast<const uint32_t*>(value);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDescOpaque_t* description,
                                              cublasLtMatrixLayoutOpaque_t* a, cublasLtMatrixLayoutOpaque_t* b,
                                              cublasLtMatrixLayoutOpaque_t*, cublasLtMatrixLayoutOpaque_t* d,
                                              cublasLtMatmulPreferenceOpaque_t* preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  FAKE_ENTER();
  const Product asked = product(description, a, b, d);
  const auto& limits = as<Preference>(preference);
  if (!is_valid(asked) || limits.magic != kMagic) return CUBLAS_STATUS_INVALID_VALUE;
  *count = 0;
  const uint64_t alignment = std::min(limits.alignment[0], limits.alignment[1]);
  for (uint64_t id = state().offered; id-- > 0 && *count < wanted;) {
    if (!accepts(asked, id, alignment) || workspace_of(id) > limits.workspace) continue;
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    result = {};
    as<Algorithm>(&result.algo) = {kMagic, state().version, id, {}};
    result.workspaceSize = workspace_of(id);
  }
  return *count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDescOpaque_t* description,
                                       cublasLtMatrixLayoutOpaque_t* a, cublasLtMatrixLayoutOpaque_t* b,
                                       cublasLtMatrixLayoutOpaque_t*, cublasLtMatrixLayoutOpaque_t* d,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  FAKE_ENTER();
  const auto& known = as<const Algorithm>(algorithm);
  const Product asked = product(description, a, b, d);
  if (known.magic != kMagic || known.version != state().version || !is_valid(asked)) return CUBLAS_STATUS_INVALID_VALUE;
  if (known.id >= state().offered || !accepts(asked, known.id, 16)) return CUBLAS_STATUS_NOT_SUPPORTED;
  result->algo = *algorithm;
  result->workspaceSize = workspace_of(known.id);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    size_t size, size_t* written) {
  FAKE_ENTER();
  if (size != 4) return CUBLAS_STATUS_INVALID_VALUE;
  *static_cast<uint32_t*>(value) =
      attribute == CUBLASLT_ALGO_CONFIG_ID ? static_cast<uint32_t>(as<const Algorithm>(algorithm).id) : 0;
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDescOpaque_t* description, const void* alpha,
                              const void* a, cublasLtMatrixLayoutOpaque_t* a_layout, const void* b,
                              cublasLtMatrixLayoutOpaque_t* b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayoutOpaque_t*, void* d, cublasLtMatrixLayoutOpaque_t* d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                              CUstream stream) {
  FAKE_ENTER();
  const Product asked = product(description, a_layout, b_layout, d_layout);
  const auto& chosen = as<const Algorithm>(algorithm);
  if (!is_valid(asked) || chosen.magic != kMagic || c != d || *static_cast<const float*>(beta) != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const uint64_t needed = workspace_of(chosen.id);
  if (workspace_bytes < needed || (needed > 0 && !fake_library::holds(workspace, needed)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (needed > 0) std::memset(workspace, 0xff, needed);
  const auto work = [asked, factor = *static_cast<const float*>(alpha), a, b, d] { multiply(asked, factor, a, b, d); };
  static const int kind = 0;
  return fake_library::submit(stream, &kind, work) == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
}  // namespace lathe::cuda
