// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/range/range.h"

#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

class RangeKernel final : public Kernel {
 public:
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() < 2 || inputs.size() > 3 || outputs.size() != 1)
      return fail(ErrorCode::invalid_argument, "range: {} inputs and {} outputs given, 2 or 3 and 1 expected",
                  inputs.size(), outputs.size());
    const DType type = outputs[0].dtype;
    if (type == DType::boolean || inputs[0].dtype != type || inputs.back().dtype != type)
      return fail(ErrorCode::type_mismatch, "range: {} from {} by {}", name_of(type), name_of(inputs[0].dtype),
                  name_of(inputs.back().dtype));
    if (outputs[0].rank != 1 || inputs[0].volume() != 1 || inputs.back().volume() != 1)
      return fail(ErrorCode::shape_mismatch, "range: start and delta must be one number each, the result a list");
    return {};
  }

  void run(const Launch& launch) const override {
    static const auto count_up = LATHE_ISA_SELECT(count_up);
    const TensorArg& y = launch.outputs[0];
    constexpr int64_t kMinTaskElements = 16 << 10;
    launch.pool.parallel_for(y.dims[0], kMinTaskElements, [&](int64_t begin, int64_t end, int) {
      count_up(y.dtype, launch.inputs[0].data, launch.inputs.back().data, begin, end, y.data, y.strides[0]);
    });
  }
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_range(const Record& record) {
  if (record.program || !record.params.empty())
    return fail(ErrorCode::plan_malformed, "range: the parameters of the record are not valid");
  return std::make_unique<RangeKernel>();
}

}  // namespace lathe::cpu
