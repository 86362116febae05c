// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lookup/lookup.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

class LookupKernel final : public Kernel {
 public:
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() != 2 || outputs.size() != 1)
      return fail(ErrorCode::invalid_argument, "lookup: {} inputs and {} outputs given, 2 and 1 expected",
                  inputs.size(), outputs.size());
    const TensorArg &table = inputs[0], &x = inputs[1], &y = outputs[0];
    if (!is_byte_integer(x.dtype) || !is_byte_integer(table.dtype) || y.dtype != table.dtype)
      return fail(ErrorCode::type_mismatch, "lookup: {} of {} by {}", name_of(y.dtype), name_of(table.dtype),
                  name_of(x.dtype));
    if (!same_dims(x, y) || table.rank != 1 || table.dims[0] != 256 || table.strides[0] != 1)
      return fail(ErrorCode::shape_mismatch, "lookup: x, table and result do not fit");
    return {};
  }

  void run(const Launch& launch) const override {
    static const auto look = LATHE_ISA_SELECT(look_up);
    const TensorArg &x = launch.inputs[1], &y = launch.outputs[0];
    if (y.volume() == 0) return;
    const LoopNest nest = make_loop_nest({&y, 1}, {&x, 1});
    const int inner = nest.rank - 1;
    const int64_t to_step = nest.strides[0][inner], from_step = nest.strides[1][inner];
    const auto* table = launch.inputs[0].as<uint8_t>();
    constexpr int64_t kMinTaskElements = 64 << 10;
    launch.pool.parallel_for(y.volume(), kMinTaskElements, [&](int64_t begin, int64_t end, int) {
      while (begin < end) {
        int64_t offsets[2];
        nest.offsets(nest.rank, begin, offsets);
        const int64_t count = std::min(end - begin, nest.dims[inner] - begin % nest.dims[inner]);
        const uint8_t* from = x.as<uint8_t>() + offsets[1];
        uint8_t* to = y.as<uint8_t>() + offsets[0];
        if (to_step == 1 && from_step == 1)
          look(table, from, to, count, permutes_bytes());
        else
          for (int64_t i = 0; i < count; ++i) to[i * to_step] = table[from[i * from_step]];
        begin += count;
      }
    });
  }
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_lookup(const Record& record) {
  if (record.program || !record.params.empty()) return refuse_params("lookup");
  return std::make_unique<LookupKernel>();
}

}  // namespace lathe::cpu
