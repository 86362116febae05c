// SPDX-License-Identifier: Apache-2.0
// Graph text to outputs, through a plan or by the plain evaluation.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/run_engine.h"
#include "fixtures/test_tensor.h"
#include "ir/interpret.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/data_dependent_tactic.h"
#include "kernels/cpu/open_device.h"
#include "kernels/cpu/target.h"
#include "lowering/build.h"
#include "plan/writer.h"

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
  options.traits.fuses_movement = true;
  options.traits.arithmetic.f32_rows = true;
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

inline void expect_close(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_TRUE(got.defined());
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.dims(), want.dims());
  double scale = 1;
  for (int64_t i = 0; i < want.volume(); ++i) scale = std::max(scale, std::fabs(want.at_double(i)));
  for (int64_t i = 0; i < want.volume(); ++i)
    ASSERT_NEAR(got.at_double(i), want.at_double(i), tolerance * scale) << "element " << i;
}

// Every graph runs plain (op by op) and native (fused, placed, tuned kernels), twice in one context.
inline void check_build(const std::string& text, const std::vector<Dims>& dims, double tolerance = 2e-5) {
  Result<ir::Graph> graph = ir::parse_graph(text);
  ASSERT_TRUE(graph) << graph.error().to_string();
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < dims.size(); ++i)
    inputs.push_back(random_tensor(graph->inputs()[i]->dtype(), dims[i], static_cast<uint32_t>(i + 1)));
  Result<std::vector<Tensor>> expected = ir::interpret(*graph, inputs);
  ASSERT_TRUE(expected) << expected.error().to_string();
  for (const bool native : {false, true}) {
    SCOPED_TRACE(native ? "native" : "plain");
    const auto engine = build_engine(text, native ? native_options() : plain_options());
    ASSERT_TRUE(engine);
    Result<std::unique_ptr<Context>> context = Context::create(engine);
    ASSERT_TRUE(context);
    for (int run = 0; run < 2; ++run) {
      const std::vector<Tensor> outputs = run_engine(**context, inputs);
      ASSERT_EQ(outputs.size(), expected->size());
      for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], (*expected)[i], tolerance);
    }
  }
}

}  // namespace lathe
