// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt: C = A * B, row-major, for a stack of matrices at one distance, with a bias and an
// activation on the sums where the library has them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "device/cuda/cublaslt.h"
#include "device/cuda/latest_shapes.h"
#include "device/cuda/library_call.h"

namespace lathe::cuda {

inline constexpr const char* kMatmulEntry = "matmul";

namespace matmul {

// The launch's arguments. A runs M by K, B N by K: one of the two dimensions is contiguous, and `pitch` lies between
// the rows of it. Distances are in elements, alignments in bytes.
enum MatmulArg : size_t {
  kA,
  kB,
  kC,
  kBias,       // N elements of C's type; 0 where the epilogue has none
  kWorkspace,  // for the library
  kNumAddresses,
  kDtype = kNumAddresses,  // of A and B
  kOutputDtype,
  kTf32,
  kEpilogue,  // cublasLtEpilogue_t
  kM,
  kN,
  kK,
  kBatch,
  kMnMajorA,  // M, not K, is contiguous
  kPitchA,
  kDistanceA,  // between the matrices of the stack
  kAlignmentA,
  kMnMajorB,
  kPitchB,
  kDistanceB,
  kAlignmentB,
  kPitchC,
  kDistanceC,
  kAlignmentC,
  kVersion,    // of the library that has chosen the algorithm; 0: none is chosen
  kAlgorithm,  // 8 words
  kNumArgs = kAlgorithm + 8,
};

using Values = std::array<int64_t, kNumArgs>;

struct CublasLtAlgorithm {
  cublasLtMatmulAlgo_t data{};
  size_t workspace_bytes = 0;
  std::string text;  // "algo=66 tile=20 stages=36 splits=1 #1f0c8a52": printable and unique
};

inline constexpr size_t kMaxWorkspace = size_t{32} << 20;

// The library's favourites, best first; at most `count`. Empty where it has none.
Result<std::vector<CublasLtAlgorithm>> find_algorithms(const CublasLtHandle& handle, const Values& values, int count);

}  // namespace matmul

class MatmulCall final : public LibraryCall {
 public:
  explicit MatmulCall(std::shared_ptr<const CublasLtHandle> handle) : handle_(std::move(handle)) {}

  Result<size_t> prepare(std::span<const int64_t> values) const override;
  Result<> enqueue(std::span<const int64_t> values, Stream& stream) const override;

 private:
  Result<std::shared_ptr<const matmul::CublasLtAlgorithm>> choice(const matmul::Values& values) const;
  Result<matmul::CublasLtAlgorithm> choose(const matmul::Values& values) const;

  std::shared_ptr<const CublasLtHandle> handle_;
  mutable LatestShapes<matmul::Values, matmul::CublasLtAlgorithm, matmul::kNumAddresses> chosen_{64};
};

}  // namespace lathe::cuda
