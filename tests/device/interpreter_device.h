// SPDX-License-Identifier: Apache-2.0
// A whole device in one file, as the smallest example of one: host memory that the runtime takes for a device's, one
// kernel that interprets pointwise programs over f32 element by element, and the backend that says so. All other ops
// run by their plain evaluation.
#pragma once

#include <array>
#include <cstring>

#include "device/null/null_device.h"
#include "tuning/backend.h"

namespace lathe::interpreter {

class InterpretingKernel final : public Kernel {
 public:
  explicit InterpretingKernel(const Program& program) : program_(program) {}
  Result<size_t> prepare(const Operands&, int) const override { return 0; }
  Result<> enqueue(const Operands& operands, std::byte*, Queue&) const override {
    const TensorArg& out = operands.outputs[0];
    std::vector<float> values(operands.inputs.size());
    std::array<int64_t, kMaxRank> at{};
    for (int64_t n = 0; n < out.volume(); ++n) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = *element(operands.inputs[i], at);
      evaluate(program_, values, {element(out, at), 1});
      for (int d = out.rank - 1; d >= 0 && ++at[static_cast<size_t>(d)] == out.dims[d]; --d)
        at[static_cast<size_t>(d)] = 0;
    }
    return {};
  }

 private:
  static float* element(const TensorArg& tensor, const std::array<int64_t, kMaxRank>& at) {
    int64_t offset = 0;
    for (int d = 0; d < tensor.rank; ++d) offset += at[static_cast<size_t>(d)] * tensor.strides[d];
    return tensor.as<float>() + offset;
  }
  const Program& program_;
};

// The null device's memory and queues, with a kernel that computes.
class InterpretingDevice final : public Device {
 public:
  std::string_view name() const override { return "interpreter"; }
  std::string target() const override { return "interpreter"; }
  Target describe() const override {
    Target target;
    target.name = this->target();
    return target;
  }
  std::string timing_key() const override { return "interpreter"; }
  Result<> check_target(std::string_view target) const override {
    if (target == this->target()) return {};
    return fail(ErrorCode::plan_target, "the plan is for '{}'", target);
  }
  bool is_host() const override { return false; }
  Result<DeviceMemory> allocate(size_t bytes) override { return memory_.allocate(bytes); }
  Result<std::unique_ptr<Queue>> make_queue() override { return memory_.make_queue(); }
  Result<std::unique_ptr<Queue>> make_stream_queue(void*) override { return make_queue(); }
  Result<> upload(void* to, const void* from, size_t bytes, Queue& queue) override {
    return memory_.upload(to, from, bytes, queue);
  }
  Result<> download(void* to, const void* from, size_t bytes, Queue& queue) override {
    return memory_.download(to, from, bytes, queue);
  }
  Result<> copy(const RowsCopy& rows, Queue& queue) override { return memory_.copy(rows, queue); }
  Result<> wait(Queue&) override { return {}; }
  bool is_accessible(const void*) const override { return false; }  // the application's memory is copied
  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord& record) override {
    if (record.kernel != "interpret" || !record.program)
      return fail(ErrorCode::plan_target, "there is no kernel '{}'", record.kernel);
    return std::make_unique<InterpretingKernel>(*record.program);
  }
  Result<std::shared_ptr<const std::byte>> make_resident(std::span<const std::byte> bytes,
                                                         std::shared_ptr<const void> owner) override {
    return memory_.make_resident(bytes, std::move(owner));
  }
  Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>&) override { return nullptr; }
  Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) override {
    return memory_.time(queue, work, repeats);
  }

 private:
  null::NullDevice memory_;
};

inline Matched match_interpret(const Problem& problem) {
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  if (problem.attributes) return refuse("not a pointwise expression");
  for (const auto* list : {&problem.operands, &problem.outputs})
    for (const Operand& operand : *list)
      if (operand.dtype != DType::f32) return refuse(fmt::format("an operand is {}", name_of(operand.dtype)));
  Emission emission;
  emission.kernel = "interpret";
  for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
  double elements = 1;
  for (const int64_t dim : problem.outputs[0].opt_dims) elements *= static_cast<double>(dim);
  return match_one(std::move(emission), problem.target.launch_us + elements / problem.target.clock_mhz);
}

class InterpretingBackend final : public Backend {
 public:
  std::string_view name() const override { return "interpreter"; }
  Result<BackendBuild> prepare(std::string_view, const BackendSettings&) const override {
    static const FunctionTactic tactic("interpret", match_interpret);
    BackendBuild build;
    build.device = std::make_shared<InterpretingDevice>();
    build.target = build.device->describe();
    build.traits.arithmetic.narrow_floats = false;
    build.tactics = {&tactic};
    build.timing_key = build.device->timing_key();
    return build;
  }
};

}  // namespace lathe::interpreter
