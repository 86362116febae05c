// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/scatter/scatter.h"

#include <cstring>
#include <mutex>

#include "base/for_size.h"
#include "base/function_ref.h"
#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMinTaskElements = 16 << 10;
constexpr std::string_view kNames[] = {"scatter_elements", "scatter_nd"};

using Reduction = ScatterParams::Reduction;

template <Reduction R, class T>
T combine(T a, T b) {
  // Integers wrap, as unsigned numbers of at least 32 bits do.
  using Wide = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>,
                                  std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, T>;
  if constexpr (R == Reduction::add) return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  if constexpr (R == Reduction::mul) return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  if constexpr (R == Reduction::max) return b > a || b != b ? b : a;  // NaN wins
  if constexpr (R == Reduction::min) return b < a || b != b ? b : a;
  return b;
}

// U is the stored type, A the one that accumulates.
template <Reduction R, class U, class A>
struct Scatter {
  const IndexWalk& walk;
  const U* updates;
  A* table;

  std::optional<IndexWalk::Outside> run() const {
    const bool single = walk.run_volume() == 1, dense = walk.has_dense_runs();
    const size_t run_bytes = static_cast<size_t>(walk.run_volume()) * sizeof(A);
    const auto place = [](A& target, U update) { target = combine<R, A>(target, static_cast<A>(update)); };
    return walk.for_each_block(0, walk.tuples(), [&](int64_t at, int64_t step, const int64_t* offsets, int64_t count) {
      if (single) {
        for (int64_t i = 0; i < count; ++i) place(table[offsets[i]], updates[at + i * step]);
        return;
      }
      if (dense && R == Reduction::none) {
        for (int64_t i = 0; i < count; ++i) std::memcpy(table + offsets[i], updates + at + i * step, run_bytes);
        return;
      }
      for (int64_t i = 0; i < count; ++i) {
        if (dense && i + kAhead < count) prefetch_run(table + offsets[i + kAhead], run_bytes);
        walk.for_each_row(
            at + i * step, offsets[i],
            [&](int64_t update, int64_t update_step, int64_t target, int64_t target_step, int64_t length) {
              const U* from = updates + update;
              A* to = table + target;
              if (update_step == 1 && target_step == 1 && R == Reduction::none)
                std::memcpy(to, from, static_cast<size_t>(length) * sizeof(A));
              else if (update_step == 1 && target_step == 1)
                for (int64_t j = 0; j < length; ++j) place(to[j], from[j]);
              else
                for (int64_t j = 0; j < length; ++j) place(to[j * target_step], from[j * update_step]);
            });
      }
    });
  }
};

bool is_narrow_float(DType type) { return is_floating(type) && size_of(type) == 2; }

class ScatterKernel final : public Kernel {
 public:
  ScatterKernel(ScatterMode mode, int axis, Reduction reduction) : mode_(mode), axis_(axis), reduction_(reduction) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return sums_apart(outputs[0].dtype) ? static_cast<size_t>(outputs[0].volume()) * sizeof(float) : 0;
  }
  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override;

 private:
  std::string_view name() const { return kNames[static_cast<size_t>(mode_)]; }
  bool fits(const TensorArg& data, const TensorArg& indices, const TensorArg& updates) const;
  bool sums_apart(DType type) const { return reduction_ != Reduction::none && is_narrow_float(type); }
  IndexWalk walk(const Launch& launch, const TensorArg& table) const;
  // Not a template, or each type and reduction would have a copy of it.
  using ScatterPart = FunctionRef<std::optional<IndexWalk::Outside>(const IndexWalk& part)>;
  std::optional<IndexWalk::Outside> in_parts(const IndexWalk& walk, ThreadPool& pool, ScatterPart scatter) const;
  template <class U, class A>
  std::optional<IndexWalk::Outside> reduce(const Launch& launch, const TensorArg& table) const;
  template <class U>
  std::optional<IndexWalk::Outside> reduce_apart(const Launch& launch) const;
  std::optional<IndexWalk::Outside> reduce_any(const Launch& launch) const;
  std::optional<IndexWalk::Outside> move_any(const Launch& launch) const;

  const ScatterMode mode_;
  const int axis_;
  const Reduction reduction_;
};

bool ScatterKernel::fits(const TensorArg& data, const TensorArg& indices, const TensorArg& updates) const {
  if (mode_ == ScatterMode::elements) {
    bool same = axis_ < data.rank && data.rank == indices.rank && data.rank == updates.rank;
    for (int d = 0; same && d < data.rank; ++d)
      same = indices.dims[d] == updates.dims[d] && (d == axis_ || indices.dims[d] <= data.dims[d]);
    return same;
  }
  if (indices.rank < 1) return false;
  const int loops = indices.rank - 1;
  const int64_t depth = indices.dims[loops];
  if (depth > data.rank || updates.rank != loops + data.rank - depth) return false;
  for (int d = 0; d < updates.rank; ++d)
    if (updates.dims[d] != (d < loops ? indices.dims[d] : data.dims[depth + d - loops])) return false;
  return true;
}

Result<> ScatterKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 3 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "{}: {} inputs and {} outputs given, 3 and 1 expected", name(),
                inputs.size(), outputs.size());
  const TensorArg &data = inputs[0], &output = outputs[0];
  if (!is_integer(inputs[1].dtype) || data.dtype != output.dtype || data.dtype != inputs[2].dtype)
    return fail(ErrorCode::type_mismatch, "{}: {} into {} by {}", name(), name_of(inputs[2].dtype), name_of(data.dtype),
                name_of(inputs[1].dtype));
  if (data.rank != output.rank || !std::equal(data.dims, data.dims + data.rank, output.dims) ||
      !fits(data, inputs[1], inputs[2]))
    return fail(ErrorCode::shape_mismatch, "{}: data, indices and updates do not fit", name());
  return {};
}

IndexWalk ScatterKernel::walk(const Launch& launch, const TensorArg& table) const {
  if (mode_ == ScatterMode::elements) return IndexWalk::of_elements(table, launch.inputs[1], launch.inputs[2], axis_);
  return IndexWalk::of_tuples(table, launch.inputs[1], launch.inputs[2], 0);
}

// Threads have a part of the table each, so that updates of one place stay in order.
std::optional<IndexWalk::Outside> ScatterKernel::in_parts(const IndexWalk& walk, ThreadPool& pool,
                                                          ScatterPart scatter) const {
  const bool elements = mode_ == ScatterMode::elements;
  const int loop = elements ? walk.loop_of_tuples() : walk.loop_of_run();
  const int64_t turns = loop < 0 ? 1 : elements ? walk.tuples_along(loop) : walk.run_along(loop);
  if (turns == 1) return scatter(walk);
  const int64_t of_one = std::max<int64_t>(walk.tuples() * walk.run_volume() / turns, 1);
  std::mutex mutex;
  std::optional<IndexWalk::Outside> outside;
  pool.parallel_for(turns, kMinTaskElements / of_one + 1, [&](int64_t begin, int64_t end, int) {
    const auto found = scatter(elements ? walk.part_of_tuples(loop, begin, end) : walk.part_of_run(loop, begin, end));
    if (!found) return;
    const std::lock_guard lock(mutex);
    outside = found;
  });
  return outside;
}

template <class U, class A>
std::optional<IndexWalk::Outside> ScatterKernel::reduce(const Launch& launch, const TensorArg& table) const {
  const auto* updates = launch.inputs[2].as<U>();
  const auto with = [&](auto reduction) {
    return in_parts(walk(launch, table), launch.pool, [&](const IndexWalk& part) {
      return Scatter<decltype(reduction)::value, U, A>{part, updates, table.as<A>()}.run();
    });
  };
  switch (reduction_) {
    case Reduction::add:
      return with(std::integral_constant<Reduction, Reduction::add>{});
    case Reduction::mul:
      return with(std::integral_constant<Reduction, Reduction::mul>{});
    case Reduction::max:
      return with(std::integral_constant<Reduction, Reduction::max>{});
    default:
      break;
  }
  return with(std::integral_constant<Reduction, Reduction::min>{});
}

// Calls body(a, b, steps, count) for the rows of two tensors of one shape.
template <class A, class B, class F>
void for_each_row(const TensorArg& a, const TensorArg& b, ThreadPool& pool, F&& body) {
  const LoopNest nest = make_loop_nest({&a, 1}, {&b, 1});
  const int inner = nest.rank - 1;
  int64_t rows = 1;
  for (int d = 0; d < inner; ++d) rows *= nest.dims[d];
  pool.parallel_for(rows, kMinTaskElements / std::max<int64_t>(nest.dims[inner], 1) + 1,
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t row = begin; row < end; ++row) {
                        int64_t offsets[2];
                        nest.offsets(inner, row, offsets);
                        body(a.as<A>() + offsets[0], nest.strides[0][inner], b.as<B>() + offsets[1],
                             nest.strides[1][inner], nest.dims[inner]);
                      }
                    });
}

// In f32, from and to 16-bit floats.
template <class U>
std::optional<IndexWalk::Outside> ScatterKernel::reduce_apart(const Launch& launch) const {
  const TensorArg &data = launch.inputs[0], &output = launch.outputs[0];
  TensorArg sums = data;
  sums.data = launch.workspace;
  sums.dtype = DType::f32;
  int64_t stride = 1;
  for (int d = sums.rank; d-- > 0; stride *= sums.dims[d]) sums.strides[d] = stride;
  for_each_row<float, U>(sums, data, launch.pool,
                         [](float* to, int64_t to_step, const U* from, int64_t from_step, int64_t count) {
                           for (int64_t i = 0; i < count; ++i)
                             to[i * to_step] = static_cast<float>(from[i * from_step]);
                         });
  const auto outside = reduce<U, float>(launch, sums);
  for_each_row<U, float>(output, sums, launch.pool,
                         [](U* to, int64_t to_step, const float* from, int64_t from_step, int64_t count) {
                           for (int64_t i = 0; i < count; ++i) to[i * to_step] = U(from[i * from_step]);
                         });
  return outside;
}

std::optional<IndexWalk::Outside> ScatterKernel::reduce_any(const Launch& launch) const {
  return dispatch(launch.outputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_class_v<T>)
      return reduce_apart<T>(launch);
    else
      return reduce<T, T>(launch, launch.outputs[0]);
  });
}

std::optional<IndexWalk::Outside> ScatterKernel::move_any(const Launch& launch) const {
  const TensorArg& output = launch.outputs[0];
  const auto move = [&](auto zero) {
    using T = decltype(zero);
    return in_parts(walk(launch, output), launch.pool, [&](const IndexWalk& part) {
      return Scatter<Reduction::none, T, T>{part, launch.inputs[2].as<T>(), output.as<T>()}.run();
    });
  };
  return for_size(size_of(output.dtype), move);
}

Result<> ScatterKernel::try_run(const Launch& launch) const {
  const TensorArg &output = launch.outputs[0], &data = launch.inputs[0];
  if (!sums_apart(output.dtype) && output.data != data.data) copy_tensor(output, data, launch.pool);
  if (launch.inputs[2].volume() == 0 && !sums_apart(output.dtype)) return {};
  if (output.volume() == 0 && launch.inputs[2].volume() == 0) return {};
  const auto outside = reduction_ == Reduction::none ? move_any(launch) : reduce_any(launch);
  return outside ? Result<>(fail_outside(name(), *outside)) : Result<>();
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_scatter(const Record& record) {
  const auto params = decode_params<ScatterParams>(record.params);
  if (record.program || !params || !is_one_of(params->mode, ScatterMode::tuples) || !is_axis(params->axis) ||
      !is_one_of(params->reduction, Reduction::min))
    return refuse_params("scatter");
  return std::make_unique<ScatterKernel>(params->mode, params->axis, params->reduction);
}

}  // namespace lathe::cpu
