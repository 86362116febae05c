// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/divide.h"
#include "kernels/cpu/gemm/tile.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/recurrence/recurrence.h"

namespace lathe::cpu {
namespace {

using namespace recurrence;

enum Input : size_t { kX, kR, kBias, kLengths, kInitialH, kInitialC, kPeepholes, kInputs };
// Multiplications that a thread must have in a step for the step to be worth sharing: meeting the other threads costs
// about 3 us.
constexpr int64_t kMinShare = 100'000;
constexpr int64_t kMinRows = 6;  // sequences of a thread that works alone: at each step it reads all weights for them

const gemm::TileTable& tiles() {
  static const gemm::TileTable& table = LATHE_ISA_SELECT(tile_table)();
  return table;
}

struct Sizes {
  int64_t steps, batch, directions, hidden;
};

// Offsets into the workspace, in floats. h, c, z and reset are [directions][batch] rows, `row` floats apart.
struct Layout {
  int64_t row, h[2], c, z, reset, packed, total;
};

// An input beyond the end of the list is omitted, too.
const TensorArg& input_of(std::span<const TensorArg> inputs, Input i) {
  static constexpr TensorArg kOmitted{};
  return i < inputs.size() ? inputs[i] : kOmitted;
}

// All that one run works on.
struct Work {
  const Launch& launch;
  Sizes sizes;
  Layout where;
  const float* packed;  // the weights of all directions

  const TensorArg& input(Input i) const { return input_of(launch.inputs, i); }
  float* at(int64_t offset) const { return reinterpret_cast<float*>(launch.workspace) + offset; }
  float* state(int64_t offset, int64_t direction, int64_t b) const {
    return at(offset) + (direction * sizes.batch + b) * where.row;
  }
  int64_t length(int64_t b) const {
    const TensorArg& lengths = input(kLengths);
    if (!lengths.data) return sizes.steps;
    const int64_t at = b * lengths.strides[0];
    const int64_t length = lengths.dtype == DType::i32 ? lengths.as<int32_t>()[at] : lengths.as<int64_t>()[at];
    return std::clamp<int64_t>(length, 0, sizes.steps);
  }
};

// Some sequences in one direction.
struct Rows {
  int64_t direction, first;
  int count;
};
constexpr int kBlockRows = 24;

class RecurrenceKernel final : public Kernel {
 public:
  RecurrenceKernel(Direction direction, int64_t hidden, bool packed, std::span<const CellType> types)
      : direction_(direction),
        hidden_(hidden),
        packed_(packed),
        types_{types[0], types.back()},
        panels_(types[0], hidden) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg>, int) const override {
    return static_cast<size_t>(layout(sizes_of(inputs)).total) * sizeof(float);
  }
  void run(const Launch& launch) const override;

 private:
  int64_t directions() const { return direction_ == Direction::bidirectional ? 2 : 1; }
  int phases() const { return types_[0].has_two_phases() ? 2 : 1; }
  int64_t time_of(const Work& work, int64_t direction, int64_t step) const {
    const bool is_backwards = direction == 1 || direction_ == Direction::reverse;
    return is_backwards ? work.sizes.steps - 1 - step : step;
  }
  Sizes sizes_of(std::span<const TensorArg> inputs) const {
    return {inputs[kX].dims[0], inputs[kX].dims[1], directions(), hidden_};
  }
  Layout layout(const Sizes& sizes) const;
  void begin(const Work& work) const;
  void finish(const Work& work) const;
  void run_alone(const Work& work, int64_t direction, int64_t first, int64_t last) const;
  void run_together(const Work& work) const;
  void run_panel(const Work& work, int64_t direction, int64_t step, int phase, const Panel& panel, int64_t first,
                 int64_t last) const;
  const float* input_of_units(const Work& work, int64_t direction, int64_t step, int64_t b, const Panel& panel) const;
  void prefetch_inputs(const Work& work, const Rows& rows, int64_t step, const Panel& panel) const;
  void multiply(const Work& work, const Rows& rows, int64_t step, int phase, const Panel& panel, float* sums) const;
  void update(const Work& work, const Rows& rows, int64_t step, int phase, const Panel& panel, const float* sums) const;

  Direction direction_;
  int64_t hidden_;
  bool packed_;
  CellType types_[2];  // by direction
  CellPanels panels_;
};

Result<> RecurrenceKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const CellType& type = types_[0];
  const size_t most = type.cell == Cell::lstm ? 3 : 2;
  if (inputs.size() < 2 || inputs.size() > kInputs || outputs.size() < 2 || outputs.size() > most)
    return fail(ErrorCode::plan_malformed, "recurrence: {} inputs and {} outputs given, 2 to {} and 2 to {} expected",
                inputs.size(), outputs.size(), static_cast<size_t>(kInputs), most);
  const auto has_dims = [](const TensorArg& tensor, std::initializer_list<int64_t> dims) {
    return tensor.rank == static_cast<int>(dims.size()) && std::equal(dims.begin(), dims.end(), tensor.dims);
  };
  const auto has_rows = [](const TensorArg& t) { return t.dims[t.rank - 1] <= 1 || t.strides[t.rank - 1] == 1; };
  const TensorArg &x = inputs[kX], &r = inputs[kR], &lengths = input_of(inputs, kLengths);
  bool fits = x.rank == 3 && has_rows(x) && r.rank == (packed_ ? 1 : 3);
  if (!fits) return fail(ErrorCode::shape_mismatch, "recurrence: x and r have other ranks or strides than expected");
  const Sizes s = sizes_of(inputs);
  const int64_t width = type.gates() * hidden_;
  fits = x.dims[2] == s.directions * width;
  if (packed_)
    fits = fits && r.dims[0] == s.directions * panels_.floats() && has_rows(r);
  else
    fits = fits && has_dims(r, {s.directions, width, hidden_});
  const auto optional = [&](Input i, bool may_be, std::initializer_list<int64_t> dims) {
    const TensorArg& tensor = input_of(inputs, i);
    fits = fits && (tensor.rank == 0 || (may_be && has_dims(tensor, dims)));
  };
  optional(kBias, type.cell == Cell::gru, {s.directions, hidden_});
  optional(kLengths, true, {s.batch});
  optional(kInitialH, true, {s.directions, s.batch, hidden_});
  optional(kInitialC, type.cell == Cell::lstm, {s.directions, s.batch, hidden_});
  optional(kPeepholes, type.cell == Cell::lstm, {s.directions, 3 * hidden_});
  fits = fits && has_dims(outputs[0], {s.steps, s.batch, s.directions * hidden_}) && has_rows(outputs[0]);
  for (const TensorArg& state : outputs.subspan(1)) fits = fits && has_dims(state, {s.directions, s.batch, hidden_});
  for (const Input i : {kBias, kPeepholes})
    fits = fits && (input_of(inputs, i).rank == 0 || has_rows(input_of(inputs, i)));
  if (!fits) return fail(ErrorCode::shape_mismatch, "recurrence: the tensors' shapes or strides do not fit together");
  if (lengths.rank && lengths.dtype != DType::i32 && lengths.dtype != DType::i64)
    return fail(ErrorCode::dtype_unsupported, "recurrence: the lengths are {}", name_of(lengths.dtype));
  const auto is_f32 = [&](const TensorArg& t) { return &t == &lengths || t.rank == 0 || t.dtype == DType::f32; };
  if (!std::all_of(inputs.begin(), inputs.end(), is_f32) || !std::all_of(outputs.begin(), outputs.end(), is_f32))
    return fail(ErrorCode::dtype_unsupported, "recurrence: only f32 is supported");
  return {};
}

Layout RecurrenceKernel::layout(const Sizes& sizes) const {
  Layout where{};
  where.row = round_up(hidden_, 16);
  const auto take = [&](int64_t floats) {
    const int64_t at = where.total;
    where.total += round_up(floats, 16);
    return at;
  };
  const int64_t state = sizes.directions * sizes.batch * where.row;
  for (int64_t& h : where.h) h = take(state);
  where.c = take(types_[0].cell == Cell::lstm ? state : 0);
  where.z = take(phases() == 2 ? state : 0);
  where.reset = take(phases() == 2 ? state : 0);
  where.packed = take(packed_ ? 0 : sizes.directions * panels_.floats());
  return where;
}

// Writes the state before the first step to h[0] and c, and packs the weights where the plan has not done it.
void RecurrenceKernel::begin(const Work& work) const {
  const auto copy = [&](Input from, int64_t to) {
    const TensorArg& initial = work.input(from);
    for (int64_t direction = 0; direction < work.sizes.directions; ++direction)
      for (int64_t b = 0; b < work.sizes.batch; ++b)
        for (int64_t u = 0; u < hidden_; ++u) {
          const int64_t at = direction * initial.strides[0] + b * initial.strides[1] + u * initial.strides[2];
          work.state(to, direction, b)[u] = initial.data ? initial.as<float>()[at] : 0;
        }
  };
  copy(kInitialH, work.where.h[0]);
  if (types_[0].cell == Cell::lstm) copy(kInitialC, work.where.c);
  if (packed_) return;
  const TensorArg& r = work.input(kR);
  for (int64_t direction = 0; direction < work.sizes.directions; ++direction)
    pack(panels_, r.as<float>() + direction * r.strides[0], r.strides[1], r.strides[2],
         work.at(work.where.packed) + direction * panels_.floats());
}

// Writes the outputs of the last state, which is in h[steps & 1] and c.
void RecurrenceKernel::finish(const Work& work) const {
  const int64_t from[2] = {work.where.h[work.sizes.steps & 1], work.where.c};
  for (size_t i = 1; i < work.launch.outputs.size(); ++i) {
    const TensorArg& to = work.launch.outputs[i];
    for (int64_t direction = 0; direction < work.sizes.directions; ++direction)
      for (int64_t b = 0; b < work.sizes.batch; ++b)
        for (int64_t u = 0; u < hidden_; ++u)
          to.as<float>()[direction * to.strides[0] + b * to.strides[1] + u * to.strides[2]] =
              work.state(from[i - 1], direction, b)[u];
  }
}

// One step of some sequences' units: the products of their state with the weights, then the cell.
void RecurrenceKernel::run_panel(const Work& work, int64_t direction, int64_t step, int phase, const Panel& panel,
                                 int64_t first, int64_t last) const {
  alignas(64) float sums[kBlockRows * kPanelColumns];
  for (int64_t b = first; b < last; b += kBlockRows) {
    const Rows rows{direction, b, static_cast<int>(std::min<int64_t>(kBlockRows, last - b))};
    prefetch_inputs(work, rows, step, panel);
    multiply(work, rows, step, phase, panel, sums);
    update(work, rows, step, phase, panel, sums);
  }
}

// The input's part of the first gate of the panel's units at that step.
const float* RecurrenceKernel::input_of_units(const Work& work, int64_t direction, int64_t step, int64_t b,
                                              const Panel& panel) const {
  const TensorArg& x = work.input(kX);
  const int64_t t = time_of(work, direction, step);
  return x.as<float>() + t * x.strides[0] + b * x.strides[1] + direction * types_[0].gates() * hidden_ + panel.unit;
}

// The cell's inputs lie far apart, in a line or two for each gate of each sequence. They are fetched while the products
// are computed.
void RecurrenceKernel::prefetch_inputs(const Work& work, const Rows& rows, int64_t step, const Panel& panel) const {
  constexpr int kLine = 16;
  for (int i = 0; i < rows.count; ++i) {
    const float* input = input_of_units(work, rows.direction, step, rows.first + i, panel);
    for (int gate = 0; gate < types_[0].gates(); ++gate)
      for (int unit = 0; unit < panel.units; unit += kLine) __builtin_prefetch(input + gate * hidden_ + unit);
  }
}

// Few rows take wide tiles, which read each weight once. More rows take narrow tiles of many rows: all but the first
// tile of a column find its weights in the L1 cache.
void RecurrenceKernel::multiply(const Work& work, const Rows& rows, int64_t step, int phase, const Panel& panel,
                                float* sums) const {
  constexpr int kNarrow = 2;
  const gemm::TileTable& table = tiles();
  const int64_t state = phase == 1 ? work.where.reset : work.where.h[step & 1];
  const float* a_rows[kBlockRows];
  for (int i = 0; i < rows.count; ++i) a_rows[i] = work.state(state, rows.direction, rows.first + i);
  const gemm::Tap tap{0, 0, static_cast<int32_t>(hidden_), 0};
  gemm::Tile tile{};
  tile.taps = &tap;
  tile.tap_count = 1;
  tile.b_stride = tile.partial_stride = panel.columns();
  tile.store_partial = true;
  const float* weights = work.packed + rows.direction * panels_.floats() + panel.offset;
  const int widest = rows.count <= table.max_rows[table.vectors - 1] ? table.vectors : kNarrow;
  for (int column = 0, vectors; column < panel.columns(); column += vectors * table.lanes) {
    vectors = std::min(widest, (panel.columns() - column) / table.lanes);
    tile.b = weights + column;
    // The rows are spread evenly over the tiles.
    const int most = table.max_rows[vectors - 1], tile_count = ceil_div(rows.count, most);
    for (int i = 0; i < tile_count; ++i) {
      const int begin = rows.count * i / tile_count, end = rows.count * (i + 1) / tile_count;
      tile.a_rows = a_rows + begin;
      tile.partial = sums + begin * panel.columns() + column;
      table.functions[vectors - 1][end - begin - 1](tile);
    }
  }
}

void RecurrenceKernel::update(const Work& work, const Rows& rows, int64_t step, int phase, const Panel& panel,
                              const float* sums) const {
  static const auto cell_step = LATHE_ISA_SELECT(cell_step);
  const int64_t direction = rows.direction, t = time_of(work, direction, step);
  const CellType& type = types_[direction];
  const Layout& where = work.where;
  const TensorArg& y = work.launch.outputs[0];
  const auto row_of = [&](const TensorArg& tensor) {
    return tensor.data ? tensor.as<float>() + direction * tensor.strides[0] + panel.unit : nullptr;
  };
  const CellStep cell{&type,
                      phase,
                      phases(),
                      panel.units,
                      hidden_,
                      panel.gate_stride,
                      row_of(work.input(kBias)),
                      row_of(work.input(kPeepholes))};
  const auto state = [&](int64_t offset) { return work.state(offset, direction, rows.first) + panel.unit; };
  bool ended[kBlockRows];
  for (int i = 0; i < rows.count; ++i) ended[i] = t >= work.length(rows.first + i);
  CellRows first{};
  first.count = rows.count;
  first.ended = work.input(kLengths).data ? ended : nullptr;
  first.x = input_of_units(work, direction, step, rows.first, panel);
  first.sums = sums;
  first.h = state(where.h[step & 1]);
  first.next = state(where.h[~step & 1]);
  if (type.cell == Cell::lstm) first.c = state(where.c);
  if (phases() == 2) first.z = state(where.z), first.reset = state(where.reset);
  first.y = y.as<float>() + t * y.strides[0] + rows.first * y.strides[1] + direction * hidden_ + panel.unit;
  first.x_stride = work.input(kX).strides[1];
  first.sums_stride = panel.columns();
  first.y_stride = y.strides[1];
  first.state_stride = where.row;
  cell_step(cell, first);
}

// All steps of some sequences in one direction, by one thread: no other reads or writes their state.
void RecurrenceKernel::run_alone(const Work& work, int64_t direction, int64_t first, int64_t last) const {
  for (int64_t step = 0; step < work.sizes.steps; ++step)
    for (int phase = 0; phase < phases(); ++phase)
      for (int64_t p = 0; p < panels_.count(phase); ++p)
        run_panel(work, direction, step, phase, panels_.panel(phase, p), first, last);
}

// Each step by all threads, among which the panels of all directions are divided.
void RecurrenceKernel::run_together(const Work& work) const {
  for (int64_t step = 0; step < work.sizes.steps; ++step)
    for (int phase = 0; phase < phases(); ++phase) {
      const int64_t panels = panels_.count(phase);
      const int64_t products = work.sizes.batch * hidden_ * panels_.panel(phase, 0).columns();
      work.launch.pool.parallel_for(work.sizes.directions * panels, std::max<int64_t>(1, kMinShare / products),
                                    [&](int64_t begin, int64_t end, int) {
                                      for (int64_t i = begin; i < end; ++i)
                                        run_panel(work, i / panels, step, phase, panels_.panel(phase, i % panels), 0,
                                                  work.sizes.batch);
                                    });
    }
}

void RecurrenceKernel::run(const Launch& launch) const {
  const Sizes sizes = sizes_of(launch.inputs);
  if (sizes.batch == 0) return;
  const Layout where = layout(sizes);
  Work work{launch, sizes, where, nullptr};
  work.packed = packed_ ? launch.inputs[kR].as<float>() : work.at(where.packed);
  begin(work);
  // Sequences are independent, so each thread runs some of them alone. Where those would be too few to be worth reading
  // all weights for, and a step is long enough, all threads share each step.
  const int64_t threads = launch.pool.size();
  const int64_t wanted = ceil_div(threads, sizes.directions);
  const int64_t batches = std::clamp<int64_t>(sizes.batch / kMinRows, 1, wanted);
  const int64_t products = sizes.batch * sizes.directions * types_[0].gates() * hidden_ * hidden_;
  if (sizes.directions * batches < threads && products >= 2 * kMinShare) {
    run_together(work);
  } else {
    launch.pool.parallel_for(sizes.directions * batches, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        run_alone(work, i / batches, sizes.batch * (i % batches) / batches, sizes.batch * (i % batches + 1) / batches);
    });
  }
  finish(work);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_recurrence(const Record& record) {
  constexpr int64_t kMaxHidden = int64_t{1} << 20;
  const std::optional<RecurrenceParams> params = decode_params<RecurrenceParams>(record.params);
  if (record.program || !params || !is_valid(params->layer) || params->hidden < 1 || params->hidden > kMaxHidden)
    return refuse_params("recurrence");
  const LayerParams& layer = params->layer;
  std::vector<CellType> types(static_cast<size_t>(layer.directions()));
  for (size_t d = 0; d < types.size(); ++d) {
    types[d].cell = layer.cell;
    types[d].linear_before_reset = layer.linear_before_reset;
    types[d].input_forget = layer.input_forget;
    types[d].clip = static_cast<float>(layer.clip);
    const size_t count = layer.functions_of_direction();
    for (size_t i = 0; i < count; ++i) {
      const LayerParams::Function& f = layer.functions[d * count + i];
      types[d].functions[i] = {f.op, static_cast<float>(f.alpha), static_cast<float>(f.beta)};
    }
  }
  return std::make_unique<RecurrenceKernel>(layer.direction, params->hidden, params->packed, types);
}

}  // namespace lathe::cpu
