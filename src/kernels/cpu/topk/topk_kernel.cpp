// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/topk/topk.h"

#include <array>
#include <optional>

#include "base/for_size.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/order_keys.h"
#include "kernels/cpu/topk/few_best.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kBlock = 256;

// A key and a position in one number: greater is better.
struct Narrow {
  using Key = int32_t;
  uint64_t bits;
  Narrow(Key key, int64_t position)
      : bits(static_cast<uint64_t>(static_cast<uint32_t>(key) ^ 0x80000000u) << 32 |
             (UINT32_MAX - static_cast<uint32_t>(position))) {}
  Key key() const { return static_cast<Key>(static_cast<uint32_t>(bits >> 32) ^ 0x80000000u); }
  int64_t position() const { return UINT32_MAX - static_cast<uint32_t>(bits); }
  bool operator<(const Narrow& other) const { return bits > other.bits; }  // the better one is first
};

struct Wide {
  using Key = int64_t;
  int64_t value, place;
  Wide(Key key, int64_t position) : value(key), place(position) {}
  Key key() const { return value; }
  int64_t position() const { return place; }
  bool operator<(const Wide& other) const { return value != other.value ? value > other.value : place < other.place; }
};

// Candidates are collected until there is no more room; then all but the k best go, and later elements must beat the
// worst of these.
int64_t room_for(int64_t k, int64_t extent) {
  constexpr int64_t kSlack = 32;
  return 4 * k >= extent ? extent : std::min(extent, 2 * k + kSlack);
}

// A row's elements.
struct Row {
  DType type;
  const std::byte* first;
  int64_t stride, extent;
  bool largest;

  const void* at(int64_t i) const { return first + i * stride * static_cast<int64_t>(size_of(type)); }
};

template <class Entry>
class Selection {
 public:
  using Key = typename Entry::Key;

  Selection(Entry* entries, int64_t k, int64_t room) : entries_(entries), k_(k), room_(room) {}

  // The keys of the positions from `begin`.
  void add(const Key* keys, int64_t begin, int64_t count) {
    static const auto greatest_key = LATHE_ISA_SELECT(greatest_key);
    constexpr int64_t kPiece = 32;
    for (int64_t first = 0; first < count; first += kPiece) {
      const int64_t last = std::min(count, first + kPiece);
      if (bounded_ && greatest_key(sizeof(Key) == 8, keys + first, last - first) <= bound_) continue;
      for (int64_t i = first; i < last; ++i) {
        if (bounded_ && keys[i] <= bound_) continue;
        if (count_ == room_) drop_worse();
        if (!bounded_ || keys[i] > bound_) new (entries_ + count_++) Entry(keys[i], begin + i);
      }
    }
  }
  // The k best ones, best first.
  const Entry* finish() {
    if (k_ < count_) std::nth_element(entries_, entries_ + k_, entries_ + count_);
    std::sort(entries_, entries_ + k_);
    return entries_;
  }

 private:
  void drop_worse() {
    std::nth_element(entries_, entries_ + k_ - 1, entries_ + count_);
    count_ = k_;
    bound_ = entries_[k_ - 1].key();  // an equal one further on is worse
    bounded_ = true;
  }

  Entry* entries_;
  int64_t k_, room_;
  int64_t count_ = 0, bound_ = INT64_MIN;
  bool bounded_ = false;
};

constexpr int64_t kSide = 16;      // rows that are read together
constexpr int64_t kFewSide = 128;  // of which the few best are sought

// Keys of a block of positions of rows that lie side by side, one row after the other.
template <class Key>
void load_side_by_side(const Row& first, int64_t rows, int64_t begin, int64_t count, Key* keys) {
  static const auto order_keys = LATHE_ISA_SELECT(order_keys);
  alignas(64) Key column[kSide];
  for (int64_t i = 0; i < count; ++i) {
    order_keys(first.type, first.at(begin + i), 1, rows, {first.largest, false}, column);
    for (int64_t r = 0; r < rows; ++r) keys[r * kBlock + i] = column[r];
  }
}

// The few best of a row.
template <class Entry>
void select_few(const Row& row, FewBest<Entry>& best) {
  using Key = typename Entry::Key;
  static const auto order_keys = LATHE_ISA_SELECT(order_keys);
  static const auto keys_above = LATHE_ISA_SELECT(keys_above);
  constexpr int64_t kPiece = 16;
  alignas(64) Key keys[kBlock];
  uint16_t numbers[kBlock + 1];
  for (int64_t begin = 0; begin < row.extent; begin += kBlock) {
    const int64_t count = std::min(kBlock, row.extent - begin);
    order_keys(row.type, row.at(begin), row.stride, count, {row.largest, false}, keys);
    int64_t first = 0;
    for (; first < count && !best.is_full(); ++first) best.add(keys[first], begin + first);
    // Longer pieces once the bound hardly changes.
    for (int64_t size = 0; first < count; first += size) {
      size = std::min(count - first, std::max(kPiece, begin + first));
      const Key bound = best.bound();
      const int64_t found = keys_above(sizeof(Key) == 8, keys + first, size, &bound, false, numbers);
      for (int64_t i = 0; i < found; ++i) best.add(keys[first + numbers[i]], begin + first + numbers[i]);
    }
  }
}

// Those of rows that lie side by side.
template <class Entry>
void select_few(const Row& row, FewBest<Entry>* best, int64_t rows) {
  using Key = typename Entry::Key;
  static const auto order_keys = LATHE_ISA_SELECT(order_keys);
  static const auto keys_above = LATHE_ISA_SELECT(keys_above);
  alignas(64) Key keys[kFewSide], bounds[kFewSide];
  uint16_t numbers[kFewSide + 1];
  for (int64_t i = 0; i < row.extent; ++i) {
    order_keys(row.type, row.at(i), 1, rows, {row.largest, false}, keys);
    if (!best[0].is_full()) {
      for (int64_t r = 0; r < rows; ++r) best[r].add(keys[r], i);
      for (int64_t r = 0; best[0].is_full() && r < rows; ++r) bounds[r] = best[r].bound();
      continue;
    }
    const int64_t found = keys_above(sizeof(Key) == 8, keys, rows, bounds, true, numbers);
    for (int64_t n = 0; n < found; ++n) {
      const int64_t r = numbers[n];
      best[r].add(keys[r], i);
      bounds[r] = best[r].bound();
    }
  }
}

class TopkKernel final : public Kernel {
 public:
  TopkKernel(int axis, bool largest) : axis_(axis), largest_(largest) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return worker_bytes(inputs[0], outputs[0]) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override {
    if (launch.outputs[0].volume() == 0) return;
    has_wide_keys(launch.inputs[0].dtype) ? select_rows<Wide>(launch) : select_rows<Narrow>(launch);
  }

 private:
  size_t worker_bytes(const TensorArg& x, const TensorArg& values) const {
    const size_t entry = has_wide_keys(x.dtype) ? sizeof(Wide) : sizeof(Narrow);
    const int64_t k = values.dims[axis_], entries = k <= kFew ? k * kFewSide : room_for(k, x.dims[axis_]) * kSide;
    return round_up(static_cast<size_t>(entries) * entry, 64);
  }
  // How many rows are read together: those that lie side by side.
  int64_t sides(const TensorArg& x, int64_t k, const LoopNest& nest) const {
    const int inner = nest.rank - 1;
    const int64_t most = k <= kFew ? kFewSide : kSide;
    return nest.strides[2][inner] == 1 && x.strides[axis_] != 1 ? std::min(most, nest.dims[inner]) : 1;
  }
  template <class Entry>
  void select_rows(const Launch& launch) const;
  template <class Entry>
  void select(const Launch& launch, const Row& first, int64_t rows, Entry* entries, const int64_t (*results)[2]) const;
  template <class Entry>
  void select_few_of(const Launch& launch, const Row& first, int64_t rows, Entry* entries,
                     const int64_t (*results)[2]) const;
  template <class Entry>
  void write(const Launch& launch, const Row& row, const Entry* best, int64_t values, int64_t positions) const;

  const int axis_;
  const bool largest_;
};

Result<> TopkKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.empty() || inputs.size() > 2 || outputs.size() != 2)
    return fail(ErrorCode::invalid_argument, "topk: {} inputs and {} outputs given, 1 or 2 and 2 expected",
                inputs.size(), outputs.size());
  const TensorArg &x = inputs[0], &values = outputs[0], &positions = outputs[1];
  if (x.dtype == DType::boolean || values.dtype != x.dtype || positions.dtype != DType::i64)
    return fail(ErrorCode::type_mismatch, "topk: {} and {} of {}", name_of(values.dtype), name_of(positions.dtype),
                name_of(x.dtype));
  if (axis_ >= x.rank || x.rank != values.rank || !same_dims(values, positions) ||
      !same_dims(without_axis(x, axis_), without_axis(values, axis_)) || x.dims[axis_] > UINT32_MAX)
    return fail(ErrorCode::shape_mismatch, "topk: input and results do not fit along axis {}", axis_);
  if (values.dims[axis_] > x.dims[axis_])
    return fail(ErrorCode::shape_mismatch, "k is {}, but axis {} of the input has {} elements; choose k from 0 to that",
                values.dims[axis_], axis_, x.dims[axis_]);
  return {};
}

template <class Entry>
void TopkKernel::write(const Launch& launch, const Row& row, const Entry* best, int64_t values,
                       int64_t positions) const {
  const TensorArg& y = launch.outputs[0];
  const int64_t k = y.dims[axis_], step = y.strides[axis_], position_step = launch.outputs[1].strides[axis_];
  auto* to = launch.outputs[1].as<int64_t>() + positions;
  for (int64_t i = 0; i < k; ++i) to[i * position_step] = best[i].position();
  const auto copy = [&](auto zero) {
    using T = decltype(zero);
    T* target = y.as<T>() + values;
    for (int64_t i = 0; i < k; ++i) target[i * step] = *static_cast<const T*>(row.at(best[i].position()));
  };
  for_size(size_of(row.type), copy);
}

// One row, or several whose elements lie side by side.
template <class Entry>
void TopkKernel::select(const Launch& launch, const Row& first, int64_t rows, Entry* entries,
                        const int64_t (*results)[2]) const {
  using Key = typename Entry::Key;
  static const auto order_keys = LATHE_ISA_SELECT(order_keys);
  const int64_t k = launch.outputs[0].dims[axis_], room = room_for(k, first.extent);
  alignas(64) Key keys[kSide * kBlock];
  std::array<std::optional<Selection<Entry>>, kSide> selections;
  for (int64_t r = 0; r < rows; ++r) selections[static_cast<size_t>(r)].emplace(entries + r * room, k, room);
  for (int64_t begin = 0; begin < first.extent; begin += kBlock) {
    const int64_t count = std::min(kBlock, first.extent - begin);
    if (rows == 1)
      order_keys(first.type, first.at(begin), first.stride, count, {first.largest, false}, keys);
    else
      load_side_by_side(first, rows, begin, count, keys);
    for (int64_t r = 0; r < rows; ++r) selections[static_cast<size_t>(r)]->add(keys + r * kBlock, begin, count);
  }
  Row row = first;
  for (int64_t r = 0; r < rows; ++r, row.first += size_of(row.type))
    write(launch, row, selections[static_cast<size_t>(r)]->finish(), results[r][0], results[r][1]);
}

// The same of few elements.
template <class Entry>
void TopkKernel::select_few_of(const Launch& launch, const Row& first, int64_t rows, Entry* entries,
                               const int64_t (*results)[2]) const {
  const int64_t k = launch.outputs[0].dims[axis_];
  if (rows == 1) {
    FewBest<Entry> best(entries, k);
    select_few(first, best);
    return write(launch, first, best.entries(), results[0][0], results[0][1]);
  }
  alignas(FewBest<Entry>) std::byte memory[sizeof(FewBest<Entry>) * kFewSide];
  auto* best = reinterpret_cast<FewBest<Entry>*>(memory);
  for (int64_t r = 0; r < rows; ++r) new (best + r) FewBest<Entry>(entries + r * k, k);
  select_few(first, best, rows);
  Row row = first;
  for (int64_t r = 0; r < rows; ++r, row.first += size_of(row.type))
    write(launch, row, best[r].entries(), results[r][0], results[r][1]);
}

template <class Entry>
void TopkKernel::select_rows(const Launch& launch) const {
  const TensorArg &x = launch.inputs[0], &y = launch.outputs[0];
  const TensorArg outputs[] = {without_axis(y, axis_), without_axis(launch.outputs[1], axis_)};
  const TensorArg input = without_axis(x, axis_);
  const LoopNest nest = make_loop_nest(outputs, {&input, 1});
  const int inner = nest.rank - 1;
  const int64_t length = nest.dims[inner], extent = x.dims[axis_];
  const int64_t side = sides(x, y.dims[axis_], nest), pieces = ceil_div(length, side);
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  constexpr int64_t kMinTaskElements = 16 << 10;
  launch.pool.parallel_for(
      input.volume() / length * pieces, kMinTaskElements / (extent * side) + 1,
      [&](int64_t begin, int64_t end, int worker) {
        auto* entries = reinterpret_cast<Entry*>(launch.workspace + worker_bytes(x, y) * static_cast<size_t>(worker));
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i / pieces * length + i % pieces * side;
          const int64_t rows = std::min(side, length - i % pieces * side);
          int64_t offsets[3], results[kFewSide][2];
          nest.offsets(nest.rank, first, offsets);
          for (int64_t r = 0; r < rows; ++r)
            for (int k = 0; k < 2; ++k) results[r][k] = offsets[k] + r * nest.strides[k][inner];
          const Row row{x.dtype, x.as<std::byte>() + offsets[2] * size, x.strides[axis_], extent, largest_};
          if (y.dims[axis_] <= kFew)
            select_few_of(launch, row, rows, entries, results);
          else
            select(launch, row, rows, entries, results);
        }
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_topk(const Record& record) {
  const auto params = decode_params<TopkParams>(record.params);
  if (record.program || !params || !is_axis(params->axis)) return refuse_params("topk");
  return std::make_unique<TopkKernel>(params->axis, params->largest);
}

}  // namespace lathe::cpu
