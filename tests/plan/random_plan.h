// SPDX-License-Identifier: Apache-2.0
// Valid plans for tests: a chain of steps with views, residuals, constants, symbols and programs, from a seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "plan/plan.h"

namespace lathe::plan {

struct OwnedPlan {
  Plan plan;  // plan.weights points into `weights`
  std::vector<std::byte> weights;
};

class PlanGenerator {
 public:
  explicit PlanGenerator(uint32_t seed) : random_(seed) {}

  OwnedPlan make(size_t steps, size_t weight_bytes_each) {
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
    plan.metadata = {{"author", "test"}, {"labels", std::string(pick(40), 'x')}};
    plan.weights = owned_.weights;
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

  std::mt19937 random_;
  OwnedPlan owned_;
};

}  // namespace lathe::plan
