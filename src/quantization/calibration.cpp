// SPDX-License-Identifier: Apache-2.0
#include "quantization/calibration.h"

#include <algorithm>

#include "ops/rules.h"
#include "plan/writer.h"
#include "tuning/backend.h"

namespace lathe {
namespace {

constexpr std::string_view kHost = "cpu";

const ProfileShapes::Input* given_for(const ir::Value& input, const ProfileShapes* sizes) {
  if (!sizes) return nullptr;
  const auto given = sizes->inputs.find(input.name());
  return given == sizes->inputs.end() ? nullptr : &given->second;
}

Result<Dims> dims_of(const ir::Value& input, const ProfileShapes* sizes) {
  if (const ProfileShapes::Input* given = given_for(input, sizes); given && !given->is_values) return given->opt;
  Dims dims;
  for (const Expr& dim : input.shape()) {
    const std::optional<int64_t> size = sizes ? dim.as_constant() : dim.as_constant().value_or(-1);
    if (!size)
      return fail(ErrorCode::profile_invalid, "no profile gives sizes for input '{}', whose dimensions are open",
                  input.name());
    dims.push_back(*size);
  }
  return dims;
}

Result<Tensor> values_of(const ir::Value& input, const Dims& values) {
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(input.dtype(), {static_cast<int64_t>(values.size())}));
  from_ints(values, tensor);
  return input.rank() == 0 ? tensor.reshaped({}) : tensor;
}

// The opt sizes alone.
ProfileShapes at_optimum(const ProfileShapes& sizes) {
  ProfileShapes fixed = sizes;
  for (auto& [name, input] : fixed.inputs) input.min = input.max = input.opt;
  return fixed;
}

}  // namespace

Result<std::unique_ptr<Calibration>> Calibration::create(const ir::Graph& network, const ProfileShapes* sizes,
                                                         std::span<const std::string> tensors, int threads) {
  std::unique_ptr<Calibration> calibration(new Calibration);
  LATHE_TRY(calibration->set_inputs(network, sizes));
  ir::Graph graph = network.clone();
  while (!graph.outputs().empty()) graph.remove_output(0);
  for (const std::string& name : tensors) {
    calibration->histograms_.try_emplace(name);
    ir::Value* value = graph.find_value(name);
    if (!value) return fail(ErrorCode::invalid_argument, "the network has no tensor '{}'", name);
    if (value->producer()) graph.add_output(value);
  }
  graph.erase_dead_nodes();
  for (const auto& node : graph.nodes())
    if (node->is(OpKind::plugin))
      return fail(ErrorCode::config_invalid,
                  "layer '{}' is a plugin's, which calibration does not run: give the ranges of tensors, or a cache of "
                  "an earlier calibration",
                  node->name());
  if (!graph.outputs().empty()) LATHE_TRY(calibration->load(std::move(graph), sizes, threads));
  return calibration;
}

Result<> Calibration::set_inputs(const ir::Graph& network, const ProfileShapes* sizes) {
  for (const ir::Value* input : network.inputs()) {
    const ProfileShapes::Input* given = given_for(*input, sizes);
    if (given && given->is_values) {
      LATHE_ASSIGN(Tensor values, values_of(*input, given->opt));
      values_.emplace(input->name(), std::move(values));
    } else {
      LATHE_ASSIGN(Dims dims, dims_of(*input, sizes));
      inputs_.push_back({input->name(), input->dtype(), std::move(dims)});
    }
  }
  return {};
}

Result<> Calibration::load(ir::Graph network, const ProfileShapes* sizes, int threads) {
  LATHE_ASSIGN(const BackendBuild backend, prepare_build(kHost, BackendSettings{threads, {}, {}}));
  BuildOptions options;
  use_backend(backend, options);
  options.tuner.budget_seconds = 0;
  if (sizes && !sizes->inputs.empty()) options.profiles.push_back(at_optimum(*sizes));
  LATHE_ASSIGN(std::unique_ptr<BuiltPlan> built, build_plan(std::move(network), options));
  LATHE_ASSIGN(std::vector<std::byte> bytes, plan::write_plan(std::move(built->plan)));
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  LATHE_ASSIGN(std::shared_ptr<const Engine> engine, Engine::load(*owner, owner, EngineOptions{backend.device, {}}));
  LATHE_ASSIGN(context_, Context::create(std::move(engine)));
  return take_outputs();
}

// Memory of outputs is kept from batch to batch.
Result<> Calibration::take_outputs() {
  const plan::Plan& plan = context_->engine().plan();
  for (size_t i = 0; i < plan.bindings.size(); ++i) {
    if (plan.bindings[i].is_input) continue;
    Tensor& output = outputs_[plan.bindings[i].name];
    const DType dtype = plan.tensors[plan.bindings[i].tensor].dtype;
    LATHE_TRY(context_->set_output_allocator(i, [&output, dtype](size_t, const Dims& dims) -> void* {
      if (!output.defined() || output.dims() != dims) {
        Result<Tensor> fresh = Tensor::allocate(dtype, dims);
        if (!fresh) return nullptr;
        output = *std::move(fresh);
      }
      return output.mutable_data();
    }));
  }
  return {};
}

Result<> Calibration::add(std::span<const Tensor> batch) {
  std::map<std::string, Tensor> tensors = values_;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (const auto own = histograms_.find(inputs_[i].name); own != histograms_.end())
      LATHE_TRY(own->second.add(batch[i]));
    tensors.emplace(inputs_[i].name, batch[i]);
  }
  if (!context_) return {};
  const plan::Plan& plan = context_->engine().plan();
  for (size_t i = 0; i < plan.bindings.size(); ++i) {
    if (!plan.bindings[i].is_input) continue;
    const Tensor& input = tensors.at(plan.bindings[i].name);
    LATHE_TRY(context_->set_input_dims(i, input.dims()));
    LATHE_TRY(context_->set_address(i, const_cast<void*>(input.data())));
  }
  LATHE_TRY(context_->run());
  for (const auto& [name, output] : outputs_) LATHE_TRY(histograms_.at(name).add(output));
  return {};
}

}  // namespace lathe
