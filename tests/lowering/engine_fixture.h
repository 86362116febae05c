// SPDX-License-Identifier: Apache-2.0
// Graph text to outputs, through a plan or by the plain evaluation.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/interpret.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/data_dependent_tactic.h"
#include "kernels/cpu/open_device.h"
#include "kernels/cpu/target.h"
#include "lowering/build.h"
#include "plan/writer.h"
#include "runtime/context.h"

namespace lathe {

inline std::shared_ptr<Device> test_device(int threads = 2) {
  return *cpu::open_device({.threads = threads, .pin = false, .spin_us = 10});
}

inline std::shared_ptr<const Engine> load_engine(std::vector<std::byte> bytes, std::shared_ptr<Device> device) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  Result<std::shared_ptr<const Engine>> engine = Engine::load(*owner, owner, {std::move(device), {}});
  EXPECT_TRUE(engine) << engine.error().to_string();
  return engine ? *engine : nullptr;
}

inline BuildOptions plain_options() {
  BuildOptions options;
  options.target = cpu::target_name();
  return options;
}

inline BuildOptions native_options(int threads = 2) {
  BuildOptions options = plain_options();
  options.tactics = cpu::cpu_tactics();
  options.data_dependent = cpu::data_dependent_tactics();
  options.fuse_movement = true;
  options.tuner.target.cores = options.tuner.target.least_cores = threads;
  options.tuner.budget_seconds = 0;
  return options;
}

inline std::shared_ptr<const Engine> build_engine(const std::string& text, const BuildOptions& options, int threads = 2,
                                                  BuildReport* report = nullptr) {
  Result<ir::Graph> graph = ir::parse_graph(text);
  EXPECT_TRUE(graph) << graph.error().to_string();
  if (!graph) return nullptr;
  Result<std::unique_ptr<BuiltPlan>> built = build_plan(std::move(*graph), options);
  EXPECT_TRUE(built) << built.error().to_string();
  if (!built) return nullptr;
  if (report) *report = (*built)->report;
  Result<std::vector<std::byte>> bytes = plan::write_plan((*built)->plan);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  if (!bytes) return nullptr;
  return load_engine(*std::move(bytes), test_device(threads));
}

inline Tensor random_tensor(DType dtype, const Dims& dims, uint32_t seed) {
  Tensor tensor = *Tensor::allocate(dtype, dims);
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < tensor.volume(); ++i) tensor.mutable_as<T>()[i] = T(normal(generator));
  });
  return tensor;
}

inline std::vector<Tensor> run_engine(Context& context, std::span<const Tensor> inputs) {
  const plan::Plan& plan = context.engine().plan();
  std::vector<Tensor> outputs;
  outputs.reserve(plan.bindings.size());  // the allocators hold references
  size_t input = 0;
  for (size_t i = 0; i < plan.bindings.size(); ++i) {
    if (!plan.bindings[i].is_input) {
      outputs.emplace_back();
      Tensor& output = outputs.back();
      const DType dtype = plan.tensors[plan.bindings[i].tensor].dtype;
      EXPECT_TRUE(context.set_output_allocator(i, [&output, dtype](size_t, const Dims& dims) {
        output = *Tensor::allocate(dtype, dims);
        return output.mutable_data();
      }));
      continue;
    }
    const Tensor& tensor = inputs[input++];
    const Result<> set = context.set_input_dims(i, tensor.dims());
    EXPECT_TRUE(set) << set.error().to_string();
    EXPECT_TRUE(context.set_address(i, const_cast<void*>(tensor.data())));
  }
  const Result<> ran = context.run();
  EXPECT_TRUE(ran) << ran.error().to_string();
  return outputs;
}

inline void expect_close(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_TRUE(got.defined());
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.dims(), want.dims());
  double scale = 1;
  for (int64_t i = 0; i < want.volume(); ++i) scale = std::max(scale, std::fabs(want.at_double(i)));
  for (int64_t i = 0; i < want.volume(); ++i)
    ASSERT_NEAR(got.at_double(i), want.at_double(i), tolerance * scale) << "element " << i;
}

}  // namespace lathe
