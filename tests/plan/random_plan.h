// SPDX-License-Identifier: Apache-2.0
// Valid plans for tests: a chain of steps with views, residuals, constants, symbols, programs and launches, from a
// seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "plan/plan.h"

namespace lathe::plan {

struct OwnedPlan {
  Plan plan;  // plan.weights points into `weights`, plan.codes into `codes`
  std::vector<std::byte> weights;
  std::vector<std::vector<std::byte>> codes;
};

class PlanGenerator {
 public:
  explicit PlanGenerator(uint32_t seed) : random_(seed) {}

  // With `modules` of device code, which some steps launch.
  OwnedPlan make(size_t steps, size_t weight_bytes_each, size_t modules = 0) {
    Plan& plan = owned_.plan;
    plan.name = "net" + std::to_string(pick(1000));
    plan.target = "cpu-x86_64-avx512";
    plan.threads = 1 + pick(8);
    add_symbols();
    const TensorId input = add_binding("input", true, {batch(), 3, width()});
    TensorId current = input, skip = input;
    for (size_t i = 0; i < steps; ++i) {
      const TensorId next = i + 1 == steps ? add_binding("output", false, {batch(), 3, width()}) : add_buffer(i);
      add_step(i, current, pick(3) == 0 ? skip : kNoTensor, next, weight_bytes_each);
      if (pick(4) == 0) skip = next;
      current = next;
    }
    close_lifetimes();
    add_profiles();
    plan.constraints.push_back({Relation::at_most, 16, width(), "pooling 'p'"});
    if (pick(2) == 0) plan.constraints.push_back({Relation::equal, mod(batch() * width(), 2), 0, "reshape 'r'"});
    plan.metadata = {{"author", "test"}, {"labels", std::string(pick(40), 'x')}};
    plan.weights = owned_.weights;
    if (modules > 0) add_launches(modules);
    return std::move(owned_);
  }

 private:
  uint32_t pick(uint32_t bound) { return bound == 0 ? 0 : static_cast<uint32_t>(random_() % bound); }
  static Expr batch() { return Expr::symbol(0); }
  static Expr width() { return Expr::symbol(1); }

  void add_symbols() {
    Plan& plan = owned_.plan;
    plan.symbols.push_back({"batch", SymbolSource::input_dim, 0, 0, {0, Range::kUnbounded}});
    plan.symbols.push_back({"", SymbolSource::input_dim, 0, 2, {1, 4096}});
    plan.symbols.push_back({"kept", SymbolSource::computed, 0, 0, {0, 1000}});
  }

  TensorId add_tensor(Tensor t) {
    owned_.plan.tensors.push_back(std::move(t));
    return static_cast<TensorId>(owned_.plan.tensors.size() - 1);
  }

  TensorId add_binding(const std::string& name, bool is_input, Shape dims) {
    Plan& plan = owned_.plan;
    const auto index = static_cast<uint32_t>(plan.bindings.size());
    const TensorId id = add_tensor({name, DType::f32, std::move(dims), {}, StorageKind::binding, index, 0});
    plan.bindings.push_back({name, is_input, id, false, {"batch", "", "width"}});
    return id;
  }

  TensorId add_buffer(size_t step) {
    Plan& plan = owned_.plan;
    const auto index = static_cast<uint32_t>(plan.buffers.size());
    const Expr elements = batch() * 3 * width();
    const bool padded = pick(2) == 0;
    plan.buffers.push_back(
        {padded ? 64 * ceildiv(4 * elements, 64) + 64 : 4 * elements, static_cast<uint32_t>(step), 0});
    Tensor t{"t" + std::to_string(step), DType::f32, {batch(), 3, width()}, {}, StorageKind::arena, index, 0};
    if (padded) t.offset = 4;
    if (pick(2) == 0) t.strides = {3 * width(), 1, 3};  // NHWC-like
    return add_tensor(std::move(t));
  }

  TensorId add_constant(size_t bytes) {
    Plan& plan = owned_.plan;
    const size_t offset = (owned_.weights.size() + 63) / 64 * 64;
    owned_.weights.resize(offset + bytes);
    for (size_t i = 0; i < bytes; ++i) owned_.weights[offset + i] = static_cast<std::byte>(random_());
    plan.constants.push_back({offset, bytes});
    return add_tensor({"w",
                       DType::i8,
                       {static_cast<int64_t>(bytes)},
                       {},
                       StorageKind::constant,
                       static_cast<uint32_t>(plan.constants.size() - 1),
                       0});
  }

  void add_step(size_t i, TensorId from, TensorId skip, TensorId to, size_t weight_bytes) {
    Step s;
    s.kernel = pick(4) == 0 ? "eval" : "conv";
    if (s.kernel == "eval") {
      s.op = "relu";
      s.attributes = "alpha=0.5";
    }
    s.inputs = {from, skip};
    if (weight_bytes > 0) s.inputs.push_back(add_constant(weight_bytes));
    s.outputs = {to};
    for (uint32_t p = pick(5); p > 0; --p) s.params.push_back(static_cast<int64_t>(random_()) - 1000);
    if (pick(2) == 0) s.program = "in=2; r2=add r0 r1; out r2";
    s.name = "step" + std::to_string(i);
    s.origin = {s.name, "Conv_" + std::to_string(pick(9))};
    s.tactic = "mb=4 nb=16";
    s.milliseconds = static_cast<float>(pick(100)) / 8;
    owned_.plan.steps.push_back(std::move(s));
  }

  void close_lifetimes() {
    Plan& plan = owned_.plan;
    for (uint32_t i = 0; i < plan.steps.size(); ++i)
      for (const std::vector<TensorId>* ids : {&plan.steps[i].inputs, &plan.steps[i].outputs})
        for (const TensorId id : *ids)
          if (id != kNoTensor && plan.tensors[id].storage == StorageKind::arena)
            plan.buffers[plan.tensors[id].index].last = i;
  }

  void add_profiles() {
    for (int64_t i = 0; i <= pick(2); ++i) {
      const int64_t low = 1 + pick(4);
      owned_.plan.profiles.push_back({{{low, low + 1, low + 1 + pick(8)}, {16, 224, 1024 + i}, {0, 1000, 1000}}});
    }
  }

  // Sizes are multiples of 8, as those of object files are.
  void add_modules(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      std::vector<std::byte>& code = owned_.codes.emplace_back(8 * (1 + pick(20)));
      for (std::byte& b : code) b = static_cast<std::byte>(random_());
    }
    owned_.plan.codes.assign(owned_.codes.begin(), owned_.codes.end());
  }

  // The first step that may launch does.
  void add_launches(size_t modules) {
    add_modules(modules);
    bool is_first = true;
    for (Step& step : owned_.plan.steps) {
      if (step.kernel == "eval" || (!is_first && pick(2) == 0)) continue;
      is_first = false;
      step.workspace = pick(2) == 0 ? Expr(0) : 4 * batch() * width() + 256;
      for (uint32_t i = 0; i <= pick(3); ++i) step.launches.push_back(make_launch(step));
      if (step.inputs.size() > 2) add_count(step);
    }
  }

  // The first bytes of the step's weights, as a size that the device has computed.
  void add_count(Step& step) {
    Tensor list = owned_.plan.tensors[step.inputs[2]];
    if (owned_.plan.constants[list.index].bytes < sizeof(int64_t)) return;
    list.dtype = DType::i64;
    list.dims = {1};
    step.counts = {{2, static_cast<uint32_t>(step.inputs.size()), Expr(0)}};
    step.inputs.push_back(add_tensor(std::move(list)));
  }

  Launch make_launch(const Step& step) {
    Launch launch;
    launch.code = pick(static_cast<uint32_t>(owned_.codes.size()));
    launch.entry = "kernel" + std::to_string(pick(5));
    launch.grid = {ceildiv(batch() * width(), 128), Expr(3), Expr(1 + pick(2))};
    launch.block = 32 * (1 + pick(8));
    launch.shared_bytes = 1024 * pick(100);
    launch.cluster = 1 + pick(2);
    launch.overlaps = pick(2) == 0;
    if (launch.entry == "kernel4") launch.library = "cublaslt", launch.code = 0;
    launch.args = {{LaunchArg::output, pick(static_cast<uint32_t>(step.outputs.size())), 0},
                   {LaunchArg::workspace, 0, 4 * width()},
                   {LaunchArg::number, 0, batch() * width()},
                   {LaunchArg::number, 0, static_cast<int64_t>(random_()) - 1000}};
    for (uint32_t i = 0; i < step.inputs.size(); ++i) launch.args.push_back({LaunchArg::input, i, 0});
    return launch;
  }

  std::mt19937 random_;
  OwnedPlan owned_;
};

}  // namespace lathe::plan
