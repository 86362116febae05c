// SPDX-License-Identifier: Apache-2.0
// A row of the output runs along its innermost dimension. It is the rows of x that its position in the other dimensions
// sees, blended into one, and then resized along itself.
#include "kernels/cpu/resize_elements/resize_elements.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

using elementwise::Lane;

enum Input : size_t { kX, kRoi, kScales, kSizes, kInputs };

size_t round_up(int64_t bytes) { return static_cast<size_t>((bytes + 63) / 64 * 64); }

double real_at(const TensorArg& list, int64_t i) {
  double value = 0;
  LATHE_ISA_SELECT(load_elements)
  (list.dtype, list.as<std::byte>() + i * static_cast<int64_t>(size_of(list.dtype)), 0, 1, Lane::f64, &value);
  return value;
}

// What each element of one dimension of the output sees: weights[o * room...] of elements[o * room...], counts[o] of
// them. Of a dimension that is not resized there is no table: each sees its own.
struct Table {
  int64_t room = 1;                                // taps of an element, at most
  int64_t *elements = nullptr, *counts = nullptr;  // a count of -1: the element takes the extrapolation value
  double* weights = nullptr;
  bool is_selection = false;  // each sees one element, as it is
  bool is_pairs = false;      // each sees one or two

  static size_t bytes(int64_t output, int64_t room) { return round_up((output * (2 * room + 1) + room) * 8); }
  void place(std::byte* memory, int64_t output) {
    elements = reinterpret_cast<int64_t*>(memory);
    counts = elements + output * room;
    weights = reinterpret_cast<double*>(counts + output);
  }
  // Keeps taps with a weight, so that an infinity that does not count makes no NaN. The weights have `room` to spare.
  void fill(const SampleRule& rule, const SampledAxis& axis) {
    for (int64_t o = 0; o < axis.output; ++o) {
      double* const found = weights + o * room;
      const Taps taps = find_taps(rule, axis, o, found);
      int64_t count = 0;
      for (int64_t t = 0; t < taps.count; ++t) {
        elements[o * room + t] = 0;  // what does not count can be read all the same
        if (found[t] == 0) continue;
        elements[o * room + count] = std::clamp<int64_t>(taps.start + t, 0, axis.input - 1);
        found[count++] = found[t];
      }
      counts[o] = taps.outside ? -1 : count;
    }
    is_pairs = room == 2 && std::all_of(counts, counts + axis.output, [](int64_t count) { return count > 0; });
    is_selection = room == 1 && std::all_of(counts, counts + axis.output, [](int64_t count) { return count == 1; });
  }
};

// One run.
struct Work {
  const TensorArg &x, &y;
  Table tables[kMaxRank] = {};
  int row = 0;  // the dimension along which rows run
  int others[kMaxRank] = {};
  int count = 0;  // of others
  bool copies = false;
  std::byte* scratch = nullptr;  // of all threads
  size_t scratch_bytes = 0;      // of one
};

class ResizeElementsKernel final : public Kernel {
 public:
  explicit ResizeElementsKernel(ResizeElementsParams params) : params_(std::move(params)) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override;
  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override;

 private:
  bool crops() const { return params_.rule.coordinates == SampleRule::Coordinates::tf_crop_and_resize; }
  int64_t room_of(int64_t input, int64_t output) const;
  static size_t scratch_bytes(const TensorArg& x, const TensorArg& y, int row) {
    return round_up((2 * x.dims[row] + y.dims[row]) * static_cast<int64_t>(sizeof(double)));
  }
  Result<double> common_scale(const Launch& launch) const;
  Result<> fill_tables(const Launch& launch, Work& work) const;
  const double* blend(const Work& work, const int64_t* at, int64_t n, double* sums, double* converted) const;
  void interpolate(const Work& work, int64_t target, const int64_t* at, std::byte* scratch) const;
  template <class T>
  void copy(const Work& work, int64_t target, const int64_t* at, uint64_t outside) const;

  const ResizeElementsParams params_;
};

// Rows run along the innermost dimension of the output.
int row_of(const TensorArg& y) {
  int row = 0;
  for (int d = 1; d < y.rank; ++d)
    if (y.dims[d] > 1 && (y.dims[row] <= 1 || std::abs(y.strides[d]) <= std::abs(y.strides[row]))) row = d;
  return row;
}

Result<> ResizeElementsKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.empty() || inputs.size() > kInputs || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "resize_elements: {} inputs and {} outputs given, 1 to {} and 1 expected",
                inputs.size(), outputs.size(), static_cast<size_t>(kInputs));
  const TensorArg &x = inputs[kX], &y = outputs[0];
  if (x.dtype != y.dtype || (x.dtype == DType::boolean && params_.rule.mode != SampleRule::Mode::nearest))
    return fail(ErrorCode::dtype_unsupported, "resize_elements: {} to {}", name_of(x.dtype), name_of(y.dtype));
  if (x.rank != y.rank || x.rank == 0)
    return fail(ErrorCode::shape_mismatch, "resize_elements: ranks {} and {}", x.rank, y.rank);
  uint32_t resized = 0;
  for (const int axis : params_.axes) {
    if (axis >= x.rank) return fail(ErrorCode::shape_mismatch, "resize_elements: there is no axis {}", axis);
    resized |= 1u << axis;
  }
  for (int d = 0; d < x.rank; ++d)
    if (!(resized >> d & 1) ? x.dims[d] != y.dims[d] : x.dims[d] == 0 && y.dims[d] != 0)
      return fail(ErrorCode::shape_mismatch, "resize_elements: dimension {} of {} elements to {}", d, x.dims[d],
                  y.dims[d]);
  const auto is_list = [&](size_t i, bool reals, size_t values) {
    return i < inputs.size() && (reals ? is_floating(inputs[i].dtype) : is_integer(inputs[i].dtype)) &&
           inputs[i].rank == 1 && inputs[i].dims[0] == static_cast<int64_t>(values) && is_dense(inputs[i]);
  };
  if (!is_list(params_.by_sizes ? kSizes : kScales, !params_.by_sizes, params_.axes.size()) ||
      (crops() && !is_list(kRoi, true, 2 * params_.axes.size())))
    return fail(ErrorCode::shape_mismatch, "resize_elements: its lists do not fit {} axes", params_.axes.size());
  return {};
}

// Taps of one output element: without antialiasing a few. With it as many as the filter reaches, whose width follows
// from the scale, which is not known yet; but the shape rule has rounded input * scale to the output.
int64_t ResizeElementsKernel::room_of(int64_t input, int64_t output) const {
  if (!params_.rule.antialias || output == 0) return taps_of(params_.rule, 1);
  return taps_of(params_.rule, (static_cast<double>(output) - 0.5) / static_cast<double>(std::max<int64_t>(input, 1)));
}

size_t ResizeElementsKernel::workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                                             int threads) const {
  const TensorArg &x = inputs[kX], &y = outputs[0];
  size_t bytes = scratch_bytes(x, y, row_of(y)) * static_cast<size_t>(threads);
  for (const int d : params_.axes) bytes += Table::bytes(y.dims[d], room_of(x.dims[d], y.dims[d]));
  return bytes;
}

// The scale that a policy other than stretching gives all axes.
Result<double> ResizeElementsKernel::common_scale(const Launch& launch) const {
  const bool smallest = params_.policy == SizePolicy::not_larger;
  double scale = smallest ? HUGE_VAL : 0;
  for (size_t i = 0; i < params_.axes.size(); ++i) {
    const int64_t size = integer_at(launch.inputs[kSizes], static_cast<int64_t>(i));
    const double own = static_cast<double>(size) / static_cast<double>(launch.inputs[kX].dims[params_.axes[i]]);
    scale = smallest ? std::min(scale, own) : std::max(scale, own);
  }
  return scale;
}

Result<> ResizeElementsKernel::fill_tables(const Launch& launch, Work& work) const {
  std::byte* memory = launch.workspace;
  const bool is_common = params_.by_sizes && params_.policy != SizePolicy::stretch;
  LATHE_ASSIGN(const double common, is_common ? common_scale(launch) : Result<double>(0));
  for (size_t i = 0; i < params_.axes.size(); ++i) {
    const int d = params_.axes[i];
    SampledAxis axis{work.x.dims[d], work.y.dims[d], common};
    if (!params_.by_sizes)
      axis.scale = real_at(launch.inputs[kScales], static_cast<int64_t>(i));
    else if (!is_common)
      axis.scale = static_cast<double>(axis.output) / static_cast<double>(axis.input);
    if (crops()) {
      axis.roi_begin = real_at(launch.inputs[kRoi], static_cast<int64_t>(i));
      axis.roi_end = real_at(launch.inputs[kRoi], static_cast<int64_t>(i + params_.axes.size()));
    }
    if (axis.is_still()) continue;
    const int64_t room = room_of(axis.input, axis.output);
    if (!(axis.scale > 0) || std::isinf(axis.scale) || taps_of(params_.rule, axis.scale) > room)
      return fail(ErrorCode::execution_failed, "resize: a scale of {} does not make {} elements of {} on axis {}",
                  axis.scale, axis.output, axis.input, d);
    Table& table = work.tables[d];
    table.room = room;
    table.place(memory, axis.output);
    table.fill(params_.rule, axis);
    memory += Table::bytes(axis.output, room);
  }
  work.scratch = memory;
  return {};
}

// Calls f(offset in x of the row, weight) for each row of x that the position `at` in the other dimensions sees, those
// of the first dimension outermost; false when it takes the extrapolation value.
template <class F>
bool for_each_row(const Work& work, const int64_t* at, F&& f) {
  int64_t counts[kMaxRank], total = 1;
  for (int i = 0; i < work.count; ++i) {
    const Table& table = work.tables[work.others[i]];
    counts[i] = table.counts ? table.counts[at[i]] : 1;
    if (counts[i] < 0) return false;
    total *= counts[i];
  }
  for (int64_t number = 0; number < total; ++number) {
    int64_t rest = number, offset = 0;
    double weight = 1;
    for (int i = work.count; i-- > 0; rest /= counts[i]) {
      const int d = work.others[i];
      const Table& table = work.tables[d];
      const int64_t tap = at[i] * table.room + rest % counts[i];
      offset += (table.counts ? table.elements[tap] : at[i]) * work.x.strides[d];
      if (table.counts) weight *= table.weights[tap];
    }
    f(offset, weight);
  }
  return true;
}

// Whether the row at `at` is the one before it, along the last of the other dimensions.
bool repeats(const Work& work, const int64_t* at) {
  if (work.count == 0) return false;
  const int64_t i = at[work.count - 1];
  const Table& table = work.tables[work.others[work.count - 1]];
  return i > 0 && table.is_selection && table.elements[i] == table.elements[i - 1];
}

// Of one row the elements that are the nearest.
template <class T>
void ResizeElementsKernel::copy(const Work& work, int64_t target, const int64_t* at, uint64_t outside) const {
  const Table& table = work.tables[work.row];
  const int64_t n = work.y.dims[work.row], step = work.y.strides[work.row], stride = work.x.strides[work.row];
  T* to = work.y.as<T>() + target;
  const T* from = nullptr;
  const T zero{}, extrapolation = static_cast<T>(outside);
  const bool inside = for_each_row(work, at, [&](int64_t offset, double) { from = work.x.as<T>() + offset; });
  if (!inside || !from) {
    for (int64_t o = 0; o < n; ++o) to[o * step] = inside ? zero : extrapolation;
  } else if (!table.counts) {
    for (int64_t o = 0; o < n; ++o) to[o * step] = from[o * stride];
  } else if (table.is_selection && step == 1) {
    for (int64_t o = 0; o < n; ++o) to[o] = from[table.elements[o] * stride];
  } else {
    for (int64_t o = 0; o < n; ++o)
      to[o * step] = table.counts[o] > 0    ? from[table.elements[o] * stride]
                     : table.counts[o] == 0 ? zero
                                            : extrapolation;
  }
}

// Rounds to the nearest integer that the type has.
void round_to_integers(DType type, double* values, int64_t count) {
  constexpr double kShift = 0x1.8p52;  // sums with it have no fraction
  const bool has_sign = class_of(type) == DTypeClass::signed_int;
  const int bits = static_cast<int>(size_of(type)) * 8;
  const double high = std::ldexp(1.0, has_sign ? bits - 1 : bits), low = has_sign ? -high : 0;
  const double most = bits == 64 ? std::nextafter(high, 0.0) : high - 1;
  for (int64_t i = 0; i < count; ++i) {
    const double x = values[i];
    const double rounded = std::fabs(x) < 0x1p51 ? x + kShift - kShift : x;
    values[i] = std::clamp(rounded, low, most);
  }
}

// The rows of x that one row of the output sees, as one; null when it takes the extrapolation value.
const double* ResizeElementsKernel::blend(const Work& work, const int64_t* at, int64_t n, double* sums,
                                          double* converted) const {
  static const auto load = LATHE_ISA_SELECT(load_elements);
  const auto size = static_cast<int64_t>(size_of(work.x.dtype));
  const double* result = sums;
  bool is_first = true;
  const bool inside = for_each_row(work, at, [&](int64_t offset, double weight) {
    const auto* row = static_cast<const double*>(
        load(work.x.dtype, work.x.as<std::byte>() + offset * size, work.x.strides[work.row], n, Lane::f64, converted));
    if (is_first && weight == 1) {
      std::copy_n(row, n, sums);
    } else if (is_first) {
      for (int64_t i = 0; i < n; ++i) sums[i] = weight * row[i];
    } else {
      for (int64_t i = 0; i < n; ++i) sums[i] += weight * row[i];
    }
    is_first = false;
  });
  if (inside && is_first) std::fill_n(sums, n, 0.0);
  return inside ? result : nullptr;
}

void ResizeElementsKernel::interpolate(const Work& work, int64_t target, const int64_t* at, std::byte* scratch) const {
  static const auto store = LATHE_ISA_SELECT(store_elements);
  const TensorArg& y = work.y;
  const Table& table = work.tables[work.row];
  const int64_t width = work.x.dims[work.row], n = y.dims[work.row];
  auto* const sums = reinterpret_cast<double*>(scratch);
  double* const results = sums + 2 * width;
  const double* row = blend(work, at, width, sums, sums + width);
  const bool is_pairs = row && table.is_pairs;
  for (int64_t o = 0; is_pairs && o < n; ++o) {
    const int64_t* elements = table.elements + 2 * o;
    const double first = table.weights[2 * o] * row[elements[0]];
    const double both = first + table.weights[2 * o + 1] * row[elements[1]];
    results[o] = table.counts[o] == 2 ? both : first;
  }
  for (int64_t o = 0; !is_pairs && o < n; ++o) {
    const int64_t count = !row ? -1 : table.counts ? table.counts[o] : 1;
    if (count < 0) {
      results[o] = params_.extrapolation;
      continue;
    }
    if (!table.counts) {
      results[o] = row[o];
      continue;
    }
    const int64_t* elements = table.elements + o * table.room;
    const double* weights = table.weights + o * table.room;
    double sum = count > 0 ? weights[0] * row[elements[0]] : 0;
    for (int64_t t = 1; t < count; ++t) sum += weights[t] * row[elements[t]];
    results[o] = sum;
  }
  if (is_integer(y.dtype)) round_to_integers(y.dtype, results, n);
  store(Lane::f64, results, n, y.dtype, y.as<std::byte>() + target * static_cast<int64_t>(size_of(y.dtype)),
        y.strides[work.row]);
}

Result<> ResizeElementsKernel::try_run(const Launch& launch) const {
  const TensorArg &x = launch.inputs[kX], &y = launch.outputs[0];
  if (y.volume() == 0) return {};
  Work work{x, y};
  LATHE_TRY(fill_tables(launch, work));
  work.row = row_of(y);
  work.scratch_bytes = scratch_bytes(x, y, work.row);
  for (int d = 0; d < y.rank; ++d)
    if (d != work.row) work.others[work.count++] = d;
  // The extrapolation value as the type has it.
  double number = params_.extrapolation;
  if (is_integer(y.dtype)) round_to_integers(y.dtype, &number, 1);
  uint64_t outside = 0;
  LATHE_ISA_SELECT(store_elements)(Lane::f64, &number, 1, y.dtype, &outside, 1);
  const int64_t n = y.dims[work.row];
  constexpr int64_t kMinTaskElements = 5000;  // of the output, about 5 us
  launch.pool.parallel_for(
      y.volume() / n, std::max<int64_t>(1, kMinTaskElements / n), [&](int64_t begin, int64_t end, int worker) {
        for (int64_t unit = begin; unit < end; ++unit) {
          int64_t at[kMaxRank], rest = unit, target = 0;
          for (int i = work.count; i-- > 0; rest /= y.dims[work.others[i]]) {
            at[i] = rest % y.dims[work.others[i]];
            target += at[i] * y.strides[work.others[i]];
          }
          const auto size = static_cast<int64_t>(size_of(y.dtype));
          if (unit > begin && y.strides[work.row] == 1 && repeats(work, at)) {
            std::byte* row = y.as<std::byte>() + target * size;
            std::memcpy(row, row - y.strides[work.others[work.count - 1]] * size, static_cast<size_t>(n * size));
          } else if (params_.rule.mode != SampleRule::Mode::nearest)
            interpolate(work, target, at, work.scratch + work.scratch_bytes * static_cast<size_t>(worker));
          else if (size_of(y.dtype) == 1)
            copy<uint8_t>(work, target, at, outside);
          else if (size_of(y.dtype) == 2)
            copy<uint16_t>(work, target, at, outside);
          else if (size_of(y.dtype) == 4)
            copy<uint32_t>(work, target, at, outside);
          else
            copy<uint64_t>(work, target, at, outside);
        }
      });
  return {};
}

bool is_valid(const ResizeElementsParams& params) {
  uint32_t seen = 0;
  for (const int axis : params.axes) {
    if (axis < 0 || axis >= kMaxRank || (seen >> axis & 1)) return false;
    seen |= 1u << axis;
  }
  const SampleRule& rule = params.rule;
  return is_one_of(rule.mode, SampleRule::Mode::cubic) &&
         is_one_of(rule.coordinates, SampleRule::Coordinates::tf_crop_and_resize) &&
         is_one_of(rule.nearest, SampleRule::Nearest::ceil) &&
         !(rule.antialias && rule.mode == SampleRule::Mode::nearest) && std::isfinite(rule.cubic_a) &&
         is_one_of(params.policy, SizePolicy::not_smaller);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_resize_elements(const Record& record) {
  std::optional<ResizeElementsParams> params = decode_params<ResizeElementsParams>(record.params);
  if (record.program || !params || !is_valid(*params)) return refuse_params("resize_elements");
  return std::make_unique<ResizeElementsKernel>(*std::move(params));
}

}  // namespace lathe::cpu
