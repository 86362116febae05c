// SPDX-License-Identifier: Apache-2.0
#include "runtime/plugin_kernel.h"

#include <algorithm>
#include <memory>

#include "ops/plugin.h"

namespace lathe {
namespace {

constexpr size_t kAlignment = 256;  // of workspace; contexts of CPUs align theirs to less

// In the network's order.
PluginTensor describe(const TensorArg& arg, const std::optional<MemoryFormat>& format) {
  Dims dims(arg.dims, arg.dims + arg.rank);
  if (format) dims = format->in_network(dims);
  PluginTensor tensor{arg.dtype, format ? format->layout().number : 0, static_cast<int>(dims.size()), {}};
  std::copy(dims.begin(), dims.end(), tensor.dims);
  return tensor;
}

}  // namespace

Result<std::unique_ptr<PluginKernel>> PluginKernel::make(const Engine& engine, size_t step) {
  const Engine::StepCode& code = engine.code()[step];
  const auto& attrs = static_cast<const PluginAttrs&>(*code.eval);
  std::unique_ptr<PluginKernel> kernel(new PluginKernel(engine, attrs));
  LATHE_ASSIGN(const PluginResults results, parse_plugin_results(attrs));
  for (const ValueType& type : results.types) {
    std::vector<bool>& found = kernel->found_.emplace_back();
    for (const Expr& dim : type.shape) {
      std::vector<SymbolId> used;
      dim.collect_symbols(used);
      found.push_back(!used.empty() && used.front() < results.sizes.size());
    }
  }
  LATHE_ASSIGN(kernel->formats_, parse_plugin_formats(attrs, results.types.size()));
  LATHE_ASSIGN(kernel->plugin_, code.plugin->attach());
  return kernel;
}

Result<size_t> PluginKernel::prepare(const Operands& operands, int) const {
  State now;
  const size_t count = operands.inputs.size();
  for (size_t i = 0; i < count; ++i) now.inputs.push_back(describe(operands.inputs[i], formats_[i]));
  for (size_t i = 0; i < operands.outputs.size(); ++i) {
    now.outputs.push_back(describe(operands.outputs[i], formats_[count + i]));
    for (size_t d = 0; d < found_[i].size(); ++d)
      if (found_[i][d]) now.outputs.back().dims[d] = -1;
  }
  const size_t workspace = attrs_.workspace > 0 ? static_cast<size_t>(attrs_.workspace) + kAlignment : 0;
  if (state_.told && now.inputs == state_.inputs && now.outputs == state_.outputs) return workspace;
  state_.told = false;
  LATHE_TRY(plugin_->change_shapes(now.inputs, now.outputs));
  now.in.resize(now.inputs.size());
  now.out.resize(now.outputs.size());
  now.told = true;
  state_ = std::move(now);
  return workspace;
}

Result<> PluginKernel::enqueue(const Operands& operands, std::byte* workspace, Queue& queue) const {
  for (size_t i = 0; i < state_.in.size(); ++i) state_.in[i] = operands.inputs[i].data;
  for (size_t i = 0; i < state_.out.size(); ++i) state_.out[i] = operands.outputs[i].data;
  void* aligned = nullptr;
  if (attrs_.workspace > 0) {
    size_t room = static_cast<size_t>(attrs_.workspace) + kAlignment;
    aligned = workspace;
    std::align(kAlignment, static_cast<size_t>(attrs_.workspace), aligned, room);
  }
  return plugin_->enqueue(state_.in.data(), state_.out.data(), aligned, device_.native_stream(queue));
}

}  // namespace lathe
