// SPDX-License-Identifier: Apache-2.0
// The generic kernels against every op case (tests/ops/*.case), as they are and with all contents of inputs unknown.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "ops/case_file.h"
#include "tuning/all_cores.h"

namespace lathe::cuda {

const Tactic& generic_tactic();

namespace {

Problem problem_of(const Case& test, bool constants) {
  std::vector<Operand> inputs, outputs;
  for (const Tensor& tensor : test.inputs) {
    if (!tensor.defined()) {
      inputs.emplace_back().omitted = true;
      continue;
    }
    inputs.push_back(operand(tensor.dtype(), tensor.dims()));
    if (constants) inputs.back().constant = inputs.back().weights = &tensor;
  }
  for (const Tensor& tensor : test.outputs) outputs.push_back(operand(tensor.dtype(), tensor.dims()));
  return op_problem(*test.attributes, std::move(inputs), std::move(outputs));
}

// Refusals that are right, by the words that they hold.
bool may_refuse(const Case& test, const std::string& reason, bool constants) {
  const OpKind kind = test.attributes->kind();
  if (op_info(kind).traits & kDataDependent) return true;
  const std::string_view name = op_info(kind).name;
  if (kind == OpKind::constant || name == "attention" || name == "recurrence")
    return true;                                                          // have kernels of their own
  if (kind == OpKind::numpy_random) return true;                          // one number after the other, on the host
  if (kind == OpKind::to_text || kind == OpKind::from_text) return true;  // on the host, too
  const auto is_stored = [](const Tensor& tensor) { return tensor.defined() && is_storage_only(tensor.dtype()); };
  if (std::any_of(test.inputs.begin(), test.inputs.end(), is_stored) ||
      std::any_of(test.outputs.begin(), test.outputs.end(), is_stored))
    return reason.find("which no kernel computes with") != std::string::npos;
  if (reason == "its scale is by blocks") return true;  // becomes dimensions that broadcast, or is evaluated
  return !constants && reason.find("known while") != std::string::npos;
}

class GenericCases : public testing::TestWithParam<std::string> {
 protected:
  struct Run {
    const Case* test;
    bool constants;
    Problem problem;
  };

  void collect(const Case& test, bool constants) {
    Problem problem = problem_of(test, constants);
    if (const std::optional<std::string> reason = refusal_of(generic_tactic(), problem)) {
      EXPECT_TRUE(may_refuse(test, *reason, constants)) << *reason;
      return;
    }
    const Result<Emission> emission = emit(generic_tactic(), problem, Config{});
    ASSERT_TRUE(emission) << emission.error().message;
    for (const SourceLaunch& launch : emission->launches) sources_.push_back(launch.source);
    runs_.push_back({&test, constants, std::move(problem)});
  }

  void execute(const Run& run) {
    const Result<std::vector<Tensor>> got =
        run_kernel({*device_, *compiler_}, generic_tactic(), run.problem, Config{}, run.test->inputs, {}, {});
    ASSERT_TRUE(got) << got.error().message;
    for (size_t i = 0; i < got->size(); ++i) expect_tensor((*got)[i], run.test->outputs[i], run.test->tolerance, i);
  }

  std::vector<std::string> sources_;
  std::vector<Run> runs_;
  // On all cores, into the cache on disk; kernels of the emulator have been compiled already.
  Result<> compile() {
    if (device_->target() == kEmulator) return {};
    constexpr double kSeconds = 600;
    const auto compile = [&](size_t i) { (void)compiler_->compile(sources_[i]); };
    return on_all_cores(sources_.size(), compile, kSeconds, [](double) { return Result<>(); });
  }

  std::shared_ptr<Device> device_ = test_device();
  std::unique_ptr<Compiler> compiler_ = test_compiler();
};

TEST_P(GenericCases, Hold) {
  const Result<std::vector<Case>> cases = read_cases(GetParam());
  ASSERT_TRUE(cases) << cases.error().message;
  const auto trace = [&](const Case& test, bool constants) {
    return fmt::format("{}:{}: {} {}, contents {}", GetParam(), test.line, op_info(test.attributes->kind()).name,
                       to_text(*test.attributes), constants ? "known" : "unknown");
  };
  for (const Case& test : *cases)
    for (const bool constants : {true, false}) {
      if (!test.error.empty()) continue;
      SCOPED_TRACE(trace(test, constants));
      collect(test, constants);
    }
  const Result<> compiled = compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const Run& run : runs_) {
    SCOPED_TRACE(trace(*run.test, run.constants));
    execute(run);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GenericCases, testing::ValuesIn(case_files()),
                         [](const auto& info) { return std::filesystem::path(info.param).stem().string(); });

}  // namespace
}  // namespace lathe::cuda
