// SPDX-License-Identifier: Apache-2.0
// Kernel `choose`: a copy of one of two tensors.
//   program  none
//   params   none
//   inputs   0: the condition, one bool; 1: what is chosen where it holds; 2: what else; of one type and rank, any
//            strides
//   outputs  0: of that type, and of the dims of what is chosen; any strides
#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

class ChooseKernel final : public Kernel {
 public:
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() != 3 || outputs.size() != 1)
      return fail(ErrorCode::invalid_argument, "choose: {} inputs and {} outputs given, 3 and 1 expected",
                  inputs.size(), outputs.size());
    if (inputs[0].dtype != DType::boolean || inputs[1].dtype != outputs[0].dtype || inputs[2].dtype != outputs[0].dtype)
      return fail(ErrorCode::type_mismatch, "choose: {} by {} of {} and {}", name_of(outputs[0].dtype),
                  name_of(inputs[0].dtype), name_of(inputs[1].dtype), name_of(inputs[2].dtype));
    if (inputs[0].volume() != 1)
      return fail(ErrorCode::shape_mismatch, "choose: a condition of {} elements", inputs[0].volume());
    if (!same_dims(inputs[1], outputs[0]) && !same_dims(inputs[2], outputs[0]))
      return fail(ErrorCode::shape_mismatch, "choose: its output has the dims of neither input");
    return {};
  }

  Result<> try_run(const Launch& launch) const override {
    const TensorArg& chosen = launch.inputs[*launch.inputs[0].as<bool>() ? 1 : 2];
    if (!same_dims(chosen, launch.outputs[0]))
      return fail(ErrorCode::execution_failed, "choose: what is chosen has other dims than its output");
    copy_tensor(launch.outputs[0], chosen, launch.pool);
    return {};
  }
  void run(const Launch& launch) const override { (void)try_run(launch); }
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_choose(const Record& record) {
  if (record.program || !record.params.empty())
    return fail(ErrorCode::plan_malformed, "choose: it has neither parameters nor a program");
  return std::make_unique<ChooseKernel>();
}

}  // namespace lathe::cpu
