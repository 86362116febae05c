// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/convolution_call.h"

#include <algorithm>

#include "device/cuda/convolution_graph.h"

namespace lathe::cuda {
namespace convolution {
namespace {

constexpr size_t kMaxCandidates = 16;  // engines that are tried for shapes without a stored choice
constexpr size_t kMaxWorkspace = size_t{256} << 20;

// False where the engine does not do it after all, or needs too much workspace.
Result<bool> make_plan(const CudnnHandle& handle, Assembly config, ExecutionPlan& plan) {
  LATHE_ASSIGN(plan.descriptor, CudnnDescriptor::create(handle, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  plan.config = std::move(config);
  LATHE_TRY(plan.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle.get()));
  LATHE_TRY(plan.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, plan.config.whole()));
  LATHE_ASSIGN(const bool accepted, plan.descriptor.try_finalize());
  if (!accepted) return false;
  int64_t bytes = 0;
  LATHE_TRY(plan.descriptor.read(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, std::span(&bytes, 1)));
  plan.workspace_bytes = static_cast<size_t>(bytes);
  return bytes >= 0 && plan.workspace_bytes <= kMaxWorkspace;
}

Error no_engine(const CudnnHandle& handle, const Values& v) {
  return {ErrorCode::library_call_failed,
          fmt::format("cuDNN {} has no engine for this convolution of {} x {} x {} x {} x {}",
                      handle.library().version_text(), v[kXDims], v[kXDims + 1], v[kXDims + 2], v[kXDims + 3],
                      v[kXDims + 4]),
          {}};
}

// The stored engine where the same version of the library has chosen it and it does these shapes, or else the first of
// the library's favourites that does.
Result<ExecutionPlan> choose(const CudnnHandle& handle, const Values& values) {
  const std::lock_guard lock(handle.mutex());
  ExecutionPlan plan;
  LATHE_ASSIGN(std::unique_ptr<Assembly> graph, make_graph(handle, values));
  if (!graph) return fail(no_engine(handle, values));
  plan.graph = std::move(*graph);
  if (values[kVersion] == static_cast<int64_t>(handle.library().version)) {
    LATHE_ASSIGN(std::unique_ptr<Assembly> config, stored(handle, plan.graph.whole(), values));
    bool made = false;
    if (config) {
      LATHE_ASSIGN(made, make_plan(handle, std::move(*config), plan));
    }
    if (made) return plan;
  }
  LATHE_ASSIGN(std::vector<Assembly> candidates, ask(handle, plan.graph.whole(), values, kMaxCandidates));
  for (Assembly& config : candidates) {
    LATHE_ASSIGN(const bool made, make_plan(handle, std::move(config), plan));
    if (made) return plan;
  }
  return fail(no_engine(handle, values));
}

Values to_values(std::span<const int64_t> from) {
  Values values;
  std::copy_n(from.begin(), values.size(), values.begin());
  return values;
}

// The addresses of one run, by the names of the graph's tensors.
Result<CudnnDescriptor> pack_addresses(const CudnnHandle& handle, const Values& v) {
  std::vector<int64_t> names = {kXName, kWeightsName, kYName};
  std::vector<void*> addresses;
  const auto at = [&](size_t arg) { return reinterpret_cast<void*>(v[arg]); };
  for (const ConvolutionArg arg : {kX, kWeights, kY}) addresses.push_back(at(arg));
  for (size_t i = 0; i < static_cast<size_t>(v[kNumStages]); ++i) {
    if (v[kStages + i * kStageFields + kHasOperand] == 0) continue;
    names.push_back(kFirstOperandName + static_cast<int64_t>(i));
    addresses.push_back(at(kOperands + i));
  }
  LATHE_ASSIGN(CudnnDescriptor pack, CudnnDescriptor::create(handle, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  LATHE_TRY(pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::span<const int64_t>(names)));
  LATHE_TRY(pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(addresses)));
  LATHE_TRY(pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, at(kWorkspace)));
  LATHE_TRY(pack.finalize());
  return pack;
}

}  // namespace

Result<std::vector<CudnnEngine>> find_engines(const CudnnHandle& handle, const Values& values, size_t count) {
  LATHE_TRY(check(values));
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(handle.context()));
  const std::lock_guard lock(handle.mutex());
  LATHE_ASSIGN(const std::unique_ptr<Assembly> graph, make_graph(handle, values));
  std::vector<CudnnEngine> engines;
  if (!graph) return engines;
  LATHE_ASSIGN(const std::vector<Assembly> configs, ask(handle, graph->whole(), values, count));
  for (const Assembly& config : configs) {
    LATHE_ASSIGN(CudnnEngine engine, describe(handle, config.whole()));
    engines.push_back(std::move(engine));
  }
  return engines;
}

}  // namespace convolution

Result<std::shared_ptr<const convolution::ExecutionPlan>> ConvolutionCall::choice(
    const convolution::Values& values) const {
  return chosen_.get(values, [&](const convolution::Values& numbers) -> Result<convolution::ExecutionPlan> {
    LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(handle_->context()));
    return convolution::choose(*handle_, numbers);
  });
}

Result<size_t> ConvolutionCall::prepare(std::span<const int64_t> from) const {
  const convolution::Values values = convolution::to_values(from);
  LATHE_TRY(convolution::check(values));
  if (convolution::is_empty(values)) return 0;
  LATHE_ASSIGN(const std::shared_ptr<const convolution::ExecutionPlan> chosen, choice(values));
  return chosen->workspace_bytes;
}

Result<> ConvolutionCall::enqueue(std::span<const int64_t> from, Stream& stream) const {
  const convolution::Values values = convolution::to_values(from);
  if (convolution::is_empty(values)) return {};
  LATHE_ASSIGN(const std::shared_ptr<const convolution::ExecutionPlan> chosen, choice(values));
  const Cudnn& library = handle_->library();
  const std::lock_guard lock(handle_->mutex());
  LATHE_ASSIGN(const CudnnDescriptor pack, convolution::pack_addresses(*handle_, values));
  LATHE_TRY(handle_->check(library.cudnnSetStream(handle_->get(), stream.handle()), "cudnnSetStream"));
  return handle_->check(library.cudnnBackendExecute(handle_->get(), chosen->descriptor.get(), pack.get()),
                        "cudnnBackendExecute");
}

}  // namespace lathe::cuda
