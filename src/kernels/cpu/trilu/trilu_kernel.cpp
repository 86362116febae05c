// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trilu/trilu.h"

#include <cstring>

#include "base/for_size.h"
#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

// One row: copies the columns [first, last), the others become 0.
template <class T>
void keep(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t columns, int64_t first, int64_t last) {
  if (from_step == 1 && to_step == 1) {
    std::memset(to, 0, static_cast<size_t>(first) * sizeof(T));
    std::memcpy(to + first, from + first, static_cast<size_t>(last - first) * sizeof(T));
    std::memset(to + last, 0, static_cast<size_t>(columns - last) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < columns; ++i) to[i * to_step] = i >= first && i < last ? from[i * from_step] : T{0};
}

class TriluKernel final : public Kernel {
 public:
  explicit TriluKernel(bool upper) : upper_(upper) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.empty() || inputs.size() > 2 || outputs.size() != 1)
      return fail(ErrorCode::invalid_argument, "trilu: {} inputs and {} outputs given, 1 or 2 and 1 expected",
                  inputs.size(), outputs.size());
    if (inputs[0].dtype != outputs[0].dtype || (inputs.size() > 1 && !is_integer(inputs[1].dtype)))
      return fail(ErrorCode::type_mismatch, "trilu: {} of {}, or a diagonal that is no integer",
                  name_of(outputs[0].dtype), name_of(inputs[0].dtype));
    if (inputs[0].rank < 2 || !same_dims(inputs[0], outputs[0]) || (inputs.size() > 1 && inputs[1].volume() != 1))
      return fail(ErrorCode::shape_mismatch, "trilu: input, diagonal and result do not fit");
    return {};
  }

  void run(const Launch& launch) const override {
    for_size(size_of(launch.outputs[0].dtype), [&](auto zero) { keep_all<decltype(zero)>(launch); });
  }

 private:
  template <class T>
  void keep_all(const Launch& launch) const {
    const TensorArg &x = launch.inputs[0], &y = launch.outputs[0];
    if (y.volume() == 0) return;
    const int r = x.rank - 2, c = x.rank - 1;
    const int64_t rows = x.dims[r], columns = x.dims[c];
    const int64_t k = launch.inputs.size() > 1 ? std::clamp(integer_at(launch.inputs[1], 0), -rows, columns) : 0;
    const TensorArg to = without_axis(without_axis(y, c), r), from = without_axis(without_axis(x, c), r);
    const LoopNest nest = make_loop_nest({&to, 1}, {&from, 1});
    constexpr int64_t kMinTaskElements = 32 << 10;
    launch.pool.parallel_for(y.volume() / columns, kMinTaskElements / columns + 1,
                             [&](int64_t begin, int64_t end, int) {
                               for (int64_t i = begin; i < end; ++i) {
                                 int64_t offsets[2];
                                 nest.offsets(nest.rank, i / rows, offsets);
                                 const int64_t row = i % rows, diagonal = row + k;
                                 const int64_t first = upper_ ? std::clamp<int64_t>(diagonal, 0, columns) : 0;
                                 const int64_t last = upper_ ? columns : std::clamp<int64_t>(diagonal + 1, 0, columns);
                                 keep(x.as<T>() + offsets[1] + row * x.strides[r], x.strides[c],
                                      y.as<T>() + offsets[0] + row * y.strides[r], y.strides[c], columns, first, last);
                               }
                             });
  }

  const bool upper_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_trilu(const Record& record) {
  const auto params = decode_params<TriluParams>(record.params);
  if (record.program || !params) return refuse_params("trilu");
  return std::make_unique<TriluKernel>(params->upper);
}

}  // namespace lathe::cpu
