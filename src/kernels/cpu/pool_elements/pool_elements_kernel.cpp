// SPDX-License-Identifier: Apache-2.0
// A row of the output runs along its innermost dimension; the taps of all its windows are visited one after the other,
// each for the whole row. Maxima are found by keys (order_keys.h), which say which tap it was, and copied from there.
#include "kernels/cpu/pool_elements/pool_elements.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/for_size.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/order_keys.h"

namespace lathe::cpu {
namespace {

using elementwise::Lane;

constexpr int64_t kBlock = 512;           // results of a row at once
constexpr int64_t kMinTaskLoads = 10000;  // about 5 us
constexpr int64_t kMaxParam = int64_t{1} << 31;

// A dimension of the output. One that is not pooled has the window 1.
struct Dim {
  int64_t input = 1, output = 1, kernel = 1, stride = 1, dilation = 1;
  Padding padding;
  int64_t x_step = 0, y_step = 0, where_step = 0;
  int64_t place = 0;     // of x's pixel in positions, from one to the next
  int64_t tap_step = 0;  // from one tap to the next in the number of a tap of the window
  bool pooled = false;

  int64_t start(int64_t o) const { return o * stride - padding.begin; }
  // The taps of output o that lie before pixel `limit`.
  int64_t taps_below(int64_t o, int64_t limit) const {
    const int64_t room = limit - start(o);
    return room <= 0 ? 0 : std::min(kernel, (room - 1) / dilation + 1);
  }
  int64_t first_tap(int64_t o) const { return taps_below(o, 0); }
  int64_t last_tap(int64_t o) const { return taps_below(o, input); }
  // The outputs whose tap t lies on a pixel: [first, last).
  int64_t first_output(int64_t t) const {
    const int64_t missing = padding.begin - t * dilation;
    return missing <= 0 ? 0 : (missing - 1) / stride + 1;
  }
  int64_t last_output(int64_t t) const {
    const int64_t room = input + padding.begin - t * dilation;
    return room <= 0 ? 0 : std::min(output, (room - 1) / stride + 1);
  }
  // This dimension's factor of an average's divisor.
  int64_t divisor(int64_t o, bool with_padding) const {
    return with_padding ? taps_below(o, input + padding.end) : last_tap(o) - first_tap(o);
  }
};

// A part of one row: results [begin, begin + count).
struct Part {
  int64_t at[kMaxRank];  // in the other dimensions; in the row's, `begin`
  int64_t begin, count;
};

struct Work {
  Dim dims[kMaxRank];
  int rank, lead, along;           // `lead` dimensions are not pooled; rows run along `along`
  const TensorArg *x, *y, *where;  // where: null = not wanted
  // Of each tap of the window: how far its pixel lies from that of the first, in x and in positions.
  const int64_t *tap_offsets, *tap_places;

  const Dim& row() const { return dims[along]; }
};

class PoolElementsKernel final : public Kernel {
 public:
  explicit PoolElementsKernel(PoolElementsParams params) : params_(std::move(params)) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int) const override {
    return params_.kind == PoolKind::maximum ? static_cast<size_t>(2 * taps()) * sizeof(int64_t) : 0;
  }
  void run(const Launch& launch) const override;

 private:
  int64_t taps() const {
    int64_t product = 1;
    for (const PoolElementsParams::Axis& axis : params_.axes) product *= axis.kernel;
    return product;
  }
  Work work_of(const Launch& launch) const;
  void fill_taps(Work& work, std::byte* workspace) const;
  template <class Key>
  void find_maxima(const Work& work, const Part& part) const;
  template <class Key>
  void write_maxima(const Work& work, const Part& part, const Key* taps) const;
  void sum(const Work& work, const Part& part) const;

  const PoolElementsParams params_;
};

Result<> PoolElementsKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const bool maximum = params_.kind == PoolKind::maximum;
  if (inputs.size() != 1 || outputs.empty() || outputs.size() > (maximum ? 2u : 1u))
    return fail(ErrorCode::invalid_argument, "pool_elements: {} inputs and {} outputs given", inputs.size(),
                outputs.size());
  const TensorArg &x = inputs[0], &y = outputs[0];
  if (x.dtype != y.dtype || !(is_floating(x.dtype) || (maximum && is_integer(x.dtype))) ||
      (outputs.size() > 1 && outputs[1].dtype != DType::i64))
    return fail(ErrorCode::dtype_unsupported, "pool_elements: {} to {}", name_of(x.dtype), name_of(y.dtype));
  const int lead = x.rank - static_cast<int>(params_.axes.size());
  bool fits = lead >= 0 && y.rank == x.rank && std::equal(x.dims, x.dims + std::max(lead, 0), y.dims);
  if (outputs.size() > 1)
    fits = fits && outputs[1].rank == y.rank && std::equal(y.dims, y.dims + y.rank, outputs[1].dims);
  if (!fits) return fail(ErrorCode::shape_mismatch, "pool_elements: the tensors' dims do not fit together");
  return {};
}

Work PoolElementsKernel::work_of(const Launch& launch) const {
  const TensorArg &x = launch.inputs[0], &y = launch.outputs[0];
  Work work{};
  work.rank = x.rank;
  work.lead = x.rank - static_cast<int>(params_.axes.size());
  work.x = &x;
  work.y = &y;
  work.where = launch.outputs.size() > 1 ? &launch.outputs[1] : nullptr;
  int64_t row_major = 1, tap_step = 1;
  for (int d = x.rank; d-- > 0; row_major *= x.dims[d]) {
    Dim& dim = work.dims[d];
    dim.input = x.dims[d];
    dim.output = y.dims[d];
    dim.x_step = x.strides[d];
    dim.y_step = y.strides[d];
    dim.where_step = work.where ? work.where->strides[d] : 0;
    dim.place = row_major;
    if (d < work.lead) continue;
    const PoolElementsParams::Axis& axis = params_.axes[static_cast<size_t>(d - work.lead)];
    dim.kernel = axis.kernel;
    dim.stride = axis.stride;
    dim.dilation = axis.dilation;
    const SlidingWindow window{dim.input, dim.output, axis.kernel, axis.stride, axis.dilation};
    dim.padding = window.padding(axis.rule, {axis.begin, axis.end});
    dim.tap_step = tap_step;
    dim.pooled = true;
    tap_step *= axis.kernel;
  }
  int64_t column_major = 1;
  for (int d = work.lead; params_.column_major && d < x.rank; column_major *= x.dims[d++])
    work.dims[d].place = column_major;
  for (int d = 1; d < y.rank; ++d) {
    const int row = work.along;
    if (y.dims[d] > 1 && (y.dims[row] <= 1 || std::abs(y.strides[d]) <= std::abs(y.strides[row]))) work.along = d;
  }
  return work;
}

void PoolElementsKernel::fill_taps(Work& work, std::byte* workspace) const {
  const int64_t count = taps();
  auto* offsets = reinterpret_cast<int64_t*>(workspace);
  int64_t* places = offsets + count;
  for (int64_t tap = 0; tap < count; ++tap) {
    offsets[tap] = places[tap] = 0;
    for (int d = work.lead; d < work.rank; ++d) {
      const Dim& dim = work.dims[d];
      const int64_t pixel = tap / dim.tap_step % dim.kernel * dim.dilation;
      offsets[tap] += pixel * dim.x_step;
      places[tap] += pixel * dim.place;
    }
  }
  work.tap_offsets = offsets;
  work.tap_places = places;
}

// Calls f(offset in x of the first pixel, its step, number of the tap, first result, number of results) for each tap,
// from the last of the window to the first, and the results of the part that it lies on a pixel for.
template <class F>
void for_each_tap(const Work& work, const Part& part, F&& f) {
  const Dim& row = work.row();
  int64_t first[kMaxRank], counts[kMaxRank], total = 1, origin = 0;
  for (int d = 0; d < work.rank; ++d) {
    const Dim& dim = work.dims[d];
    if (d != work.along) origin += dim.start(part.at[d]) * dim.x_step;
    first[d] = d == work.along ? 0 : dim.first_tap(part.at[d]);
    counts[d] = d == work.along ? dim.kernel : std::max<int64_t>(dim.last_tap(part.at[d]) - first[d], 0);
    total *= counts[d];
  }
  for (int64_t number = total; number-- > 0;) {
    int64_t rest = number, offset = origin, tap = 0, own = 0;  // `own`: the tap along the row
    for (int d = work.rank; d-- > work.lead; rest /= counts[d]) {
      const Dim& dim = work.dims[d];
      const int64_t t = first[d] + rest % counts[d];
      offset += t * dim.dilation * dim.x_step;
      tap += t * dim.tap_step;
      if (d == work.along) own = t;
    }
    const int64_t begin = std::max(row.first_output(own), part.begin);
    const int64_t end = std::min(row.last_output(own), part.begin + part.count);
    if (begin < end) f(offset + row.start(begin) * row.x_step, row.stride * row.x_step, tap, begin, end - begin);
  }
}

// taps[i]: the tap of the maximum of result i, or -1 where no tap lies on a pixel.
template <class Key>
void PoolElementsKernel::write_maxima(const Work& work, const Part& part, const Key* taps) const {
  const Dim& row = work.row();
  const DType type = work.x->dtype;
  int64_t x = 0, y = 0, where = 0;
  int64_t plane = 0, pixel = 0;  // a position: where its plane begins, and where it is in the plane
  for (int d = 0; d < work.rank; ++d) {
    const Dim& dim = work.dims[d];
    x += dim.start(part.at[d]) * dim.x_step;
    y += part.at[d] * dim.y_step;
    where += part.at[d] * dim.where_step;
    (dim.pooled ? pixel : plane) += dim.start(part.at[d]) * dim.place;
  }
  const int64_t plane_step = row.pooled ? 0 : row.place, pixel_step = row.pooled ? row.stride * row.place : 0;
  const auto copy = [&](auto element) {
    using T = decltype(element);
    // The least float; of integers 0 but for those of 64 bits.
    T empty{};
    if (type == DType::i64) empty = static_cast<T>(INT64_MIN);
    const double least = -HUGE_VAL;
    if (is_floating(type)) LATHE_ISA_SELECT(store_elements)(Lane::f64, &least, 1, type, &empty, 1);
    for (int64_t i = 0; i < part.count; ++i) {
      const int64_t tap = taps[i];
      T* to = work.y->as<T>() + y + i * row.y_step;
      *to = tap < 0 ? empty : work.x->as<T>()[x + i * row.stride * row.x_step + work.tap_offsets[tap]];
      if (!work.where) continue;
      work.where->as<int64_t>()[where + i * row.where_step] =
          plane + i * plane_step + (tap < 0 ? 0 : pixel + i * pixel_step + work.tap_places[tap]);
    }
  };
  for_size(size_of(type), copy);
}

// Of equal elements the tap that is visited last wins, which is the first of the window.
template <class Key>
void PoolElementsKernel::find_maxima(const Work& work, const Part& part) const {
  static const auto order_keys = LATHE_ISA_SELECT(order_keys);
  static const auto keep_greater = LATHE_ISA_SELECT(keep_greater);
  alignas(64) Key keys[kBlock], best[kBlock], taps[kBlock];
  std::fill_n(best, part.count, std::numeric_limits<Key>::min());
  std::fill_n(taps, part.count, Key{-1});
  const auto size = static_cast<int64_t>(size_of(work.x->dtype));
  for_each_tap(work, part, [&](int64_t offset, int64_t step, int64_t tap, int64_t begin, int64_t count) {
    order_keys(work.x->dtype, work.x->as<std::byte>() + offset * size, step, count, {.largest = true, .nan_wins = true},
               keys);
    keep_greater(sizeof(Key) == 8, keys, count, tap, true, best + (begin - part.begin), taps + (begin - part.begin));
  });
  write_maxima(work, part, taps);
}

// Averages and norms.
void PoolElementsKernel::sum(const Work& work, const Part& part) const {
  static const auto load = LATHE_ISA_SELECT(load_elements);
  static const auto store = LATHE_ISA_SELECT(store_elements);
  alignas(64) double sums[kBlock] = {}, block[kBlock];
  const DType type = work.x->dtype;
  const auto size = static_cast<int64_t>(size_of(type));
  const bool norm = params_.kind == PoolKind::norm;
  const auto power = static_cast<double>(params_.exponent);
  for_each_tap(work, part, [&](int64_t offset, int64_t step, int64_t, int64_t begin, int64_t count) {
    const auto* x =
        static_cast<const double*>(load(type, work.x->as<std::byte>() + offset * size, step, count, Lane::f64, block));
    double* to = sums + (begin - part.begin);
    if (!norm)
      for (int64_t i = 0; i < count; ++i) to[i] += x[i];
    else if (params_.exponent == 2)
      for (int64_t i = 0; i < count; ++i) to[i] += x[i] * x[i];
    else
      for (int64_t i = 0; i < count; ++i) to[i] += std::pow(std::fabs(x[i]), power);
  });
  int64_t y = 0;
  double divisor = 1;
  for (int d = 0; d < work.rank; ++d) {
    y += part.at[d] * work.dims[d].y_step;
    if (d != work.along) divisor *= static_cast<double>(work.dims[d].divisor(part.at[d], params_.count_include_pad));
  }
  for (int64_t i = 0; i < part.count; ++i) {
    const auto own = static_cast<double>(work.row().divisor(part.begin + i, params_.count_include_pad));
    sums[i] = !norm                   ? sums[i] / (divisor * own)
              : params_.exponent == 2 ? std::sqrt(sums[i])
                                      : std::pow(sums[i], 1 / power);
  }
  store(Lane::f64, sums, part.count, type, work.y->as<std::byte>() + y * size, work.row().y_step);
}

void PoolElementsKernel::run(const Launch& launch) const {
  if (launch.outputs[0].volume() == 0) return;
  Work work = work_of(launch);
  if (params_.kind == PoolKind::maximum) fill_taps(work, launch.workspace);
  const int64_t length = work.row().output, pieces = (length + kBlock - 1) / kBlock;
  const int64_t loads = std::min(length, kBlock) * taps();
  launch.pool.parallel_for(launch.outputs[0].volume() / length * pieces, std::max<int64_t>(1, kMinTaskLoads / loads),
                           [&](int64_t begin, int64_t end, int) {
                             for (int64_t unit = begin; unit < end; ++unit) {
                               Part part{};
                               part.begin = unit % pieces * kBlock;
                               part.count = std::min(kBlock, length - part.begin);
                               int64_t rest = unit / pieces;
                               part.at[work.along] = part.begin;
                               for (int d = work.rank; d-- > 0;) {
                                 if (d == work.along) continue;
                                 part.at[d] = rest % work.dims[d].output;
                                 rest /= work.dims[d].output;
                               }
                               if (params_.kind != PoolKind::maximum)
                                 sum(work, part);
                               else if (has_wide_keys(work.x->dtype))
                                 find_maxima<int64_t>(work, part);
                               else
                                 find_maxima<int32_t>(work, part);
                             }
                           });
}

bool is_valid(const PoolElementsParams& params) {
  constexpr int64_t kMostTaps = 1 << 28;
  double taps = 1;
  const auto within = [](int64_t value, int64_t low) { return value >= low && value <= kMaxParam; };
  for (const PoolElementsParams::Axis& axis : params.axes) {
    if (!within(axis.kernel, 1) || !within(axis.stride, 1) || !within(axis.dilation, 1) ||
        !within(axis.begin, -kMaxParam) || !within(axis.end, -kMaxParam) ||
        !is_one_of(axis.rule, PaddingRule::upper_half))
      return false;
    taps *= static_cast<double>(axis.kernel);
  }
  return is_one_of(params.kind, PoolKind::norm) && params.exponent >= 1 && !params.axes.empty() &&
         params.axes.size() <= kMaxRank && taps <= kMostTaps;
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_pool_elements(const Record& record) {
  std::optional<PoolElementsParams> params = decode_params<PoolElementsParams>(record.params);
  if (record.program || !params || !is_valid(*params)) return refuse_params("pool_elements");
  return std::make_unique<PoolElementsKernel>(*std::move(params));
}

}  // namespace lathe::cpu
