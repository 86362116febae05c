// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN, with pointwise stages on the sums: each takes the value before it and, maybe, one constant per
// channel.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "device/cuda/cudnn.h"
#include "device/cuda/latest_shapes.h"
#include "device/cuda/library_call.h"

namespace lathe::cuda {

inline constexpr const char* kConvolutionEntry = "convolution";

namespace convolution {

inline constexpr size_t kMaxStages = 3, kMaxKnobs = 20;
inline constexpr size_t kStageFields = 5;

// The launch's arguments. Dimensions stand in the order N C D H W, as if there always were three spatial ones; strides
// are in elements. Weights are dense: filters, taps, and, innermost, channels.
enum ConvolutionArg : size_t {
  kX,
  kWeights,
  kY,
  kOperands,  // of the stages, one each; 0 where a stage has none
  kWorkspace = kOperands + kMaxStages,
  kNumAddresses,
  kDtype = kNumAddresses,  // of x and the weights
  kOutputDtype,
  kTf32,
  kSpatial,  // 2 or 3: dimensions that the library is told
  kXDims,
  kXStrides = kXDims + 5,
  kXAlignment = kXStrides + 5,  // bytes
  kFilters,
  kChannels,  // of a group
  kTaps,
  kYExtents = kTaps + 3,
  kYStrides = kYExtents + 3,
  kYAlignment = kYStrides + 5,
  kStrides,
  kDilations = kStrides + 3,
  kPadBegin = kDilations + 3,
  kPadEnd = kPadBegin + 3,
  kNumStages = kPadEnd + 3,
  kStages,  // each: mode (cudnnPointwiseMode_t), whether it has an operand, its type, and the bits of two floats
  kVersion = kStages + kMaxStages * kStageFields,  // of the library that has chosen the engine; 0: none is chosen
  kEngine,
  kNumKnobs,
  kKnobs,  // type in the upper half, value in the lower
  kNumArgs = kKnobs + kMaxKnobs,
};
enum StageField : size_t { kMode, kHasOperand, kOperandDtype, kFirstFloat, kSecondFloat };

using Values = std::array<int64_t, kNumArgs>;

struct CudnnEngine {
  int64_t index = 0;
  std::vector<int64_t> knobs;
  std::string text;  // "engine=38 k1=2 k5=0": printable and unique
};

// The engines that the library thinks best, best first; at most `count`. Empty where it has none for this graph.
Result<std::vector<CudnnEngine>> find_engines(const CudnnHandle& handle, const Values& values, size_t count);

// A descriptor with those that it was made from, which must live as long.
struct Assembly {
  std::vector<CudnnDescriptor> descriptors;  // the last is made of the others
  const CudnnDescriptor& whole() const { return descriptors.back(); }
};

struct ExecutionPlan {
  Assembly graph, config;
  CudnnDescriptor descriptor;
  size_t workspace_bytes = 0;
};

}  // namespace convolution

class ConvolutionCall final : public LibraryCall {
 public:
  explicit ConvolutionCall(std::shared_ptr<const CudnnHandle> handle) : handle_(std::move(handle)) {}

  Result<size_t> prepare(std::span<const int64_t> values) const override;
  Result<> enqueue(std::span<const int64_t> values, Stream& stream) const override;

 private:
  Result<std::shared_ptr<const convolution::ExecutionPlan>> choice(const convolution::Values& values) const;

  std::shared_ptr<const CudnnHandle> handle_;
  mutable LatestShapes<convolution::Values, convolution::ExecutionPlan, convolution::kNumAddresses> chosen_{32};
};

}  // namespace lathe::cuda
