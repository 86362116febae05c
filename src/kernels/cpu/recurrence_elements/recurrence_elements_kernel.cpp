// SPDX-License-Identifier: Apache-2.0
// Sequences are independent: some of them in one direction are a unit of work, which runs through all steps. A step is
// the products of the state with the weights of each gate, packed for kernel "contraction", and then the cell.
#include "base/divide.h"
#include "kernels/cpu/recurrence_elements/recurrence_elements.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/contraction/contraction.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using contraction::kColumns;
using contraction::kDepth;
using elementwise::Lane;
using recurrence::Cell;
using recurrence::Direction;
using recurrence::LayerParams;
using Function = LayerParams::Function;

enum Input : size_t { kX, kR, kBias, kLengths, kInitialH, kInitialC, kPeepholes, kInputs };

constexpr int64_t kRows = 16;  // sequences of a unit

int64_t blocks_of(int64_t extent) { return ceil_div(extent, kColumns); }

void apply(const Function& f, double* row, int64_t count) {
  static const auto compute = LATHE_ISA_SELECT(compute_elements);
  const elementwise::FunctionCall call{static_cast<elementwise::Function>(f.op),  // scalar operations have one number
                                       Lane::f64,
                                       Lane::f64,
                                       DType::f64,
                                       64,
                                       std::bit_cast<int64_t>(f.alpha),
                                       std::bit_cast<int64_t>(f.beta)};
  const void* inputs[] = {row, nullptr};
  compute(call, inputs, count, row);
}

const TensorArg& input_of(std::span<const TensorArg> inputs, Input i) {
  static constexpr TensorArg kOmitted{};
  return i < inputs.size() ? inputs[i] : kOmitted;
}

// A row of elements along the last dimension, as doubles.
void read_row(const TensorArg& tensor, int64_t offset, int64_t count, double* row) {
  static const auto load = LATHE_ISA_SELECT(load_elements);
  const auto size = static_cast<int64_t>(size_of(tensor.dtype));
  const void* read = load(tensor.dtype, tensor.as<std::byte>() + offset * size, tensor.strides[tensor.rank - 1], count,
                          Lane::f64, row);
  if (read != row) std::copy_n(static_cast<const double*>(read), count, row);
}
void write_row(const TensorArg& tensor, int64_t offset, int64_t count, const double* row) {
  static const auto store = LATHE_ISA_SELECT(store_elements);
  const auto size = static_cast<int64_t>(size_of(tensor.dtype));
  store(Lane::f64, row, count, tensor.dtype, tensor.as<std::byte>() + offset * size, tensor.strides[tensor.rank - 1]);
}

// The memory of a unit, in doubles: rows of `hidden` numbers, and sums by gates and blocks of columns.
struct State {
  double *h, *c, *reset, *x, *next;  // x: of one sequence, all gates
  double *bias, *peepholes;
  double *state, *sums;  // state: as multiply_blocks() reads it
};

struct Work {
  const Launch& launch;
  int64_t steps, batch, hidden;
  int64_t blocks;  // of a gate's columns
  const double* packed;
  double* scratch;
};

class RecurrenceElementsKernel final : public Kernel {
 public:
  explicit RecurrenceElementsKernel(LayerParams params) : params_(std::move(params)) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg>, int threads) const override {
    const int64_t hidden = inputs[kR].dims[2];
    return static_cast<size_t>(packed_size(hidden) + unit_size(hidden) * threads) * sizeof(double);
  }
  void run(const Launch& launch) const override;

 private:
  int64_t packed_size(int64_t hidden) const {
    return params_.directions() * params_.gates() * blocks_of(hidden) * hidden * kColumns;
  }
  int64_t unit_size(int64_t hidden) const {
    const int64_t numbers = (3 * kRows + params_.gates() + 1 + 1 + 3) * hidden + kRows * kDepth;
    return round_up(numbers, 8) + params_.gates() * blocks_of(hidden) * kRows * kColumns;
  }
  bool is_two_phased() const { return params_.cell == Cell::gru && !params_.linear_before_reset; }
  State state_of(const Work& work, int worker) const;
  void pack(const Work& work, double* packed) const;
  void multiply(const Work& work, const State& s, int64_t direction, int64_t gate, const double* state,
                int64_t rows) const;
  double sum(const Work& work, const State& s, int64_t gate, int64_t row, int64_t unit) const {
    const int64_t block = gate * work.blocks + unit / kColumns;
    return s.sums[(block * kRows + row) * kColumns + unit % kColumns];
  }
  // Of what a gate sees.
  void apply_clipped(const Function& f, double* row, int64_t count) const {
    const double most = params_.clip;
    for (int64_t i = 0; most > 0 && i < count; ++i) row[i] = row[i] < -most ? -most : row[i] > most ? most : row[i];
    apply(f, row, count);
  }
  // Adds the sums of a gate to what it sees of x.
  void add_sums(const Work& work, const State& s, int64_t gate, int64_t row) const {
    double* const x = s.x + gate * work.hidden;
    for (int64_t u = 0; u < work.hidden; ++u) x[u] += sum(work, s, gate, row, u);
  }
  void step_lstm(const Work& work, const State& s, std::span<const Function> f, int64_t row) const;
  void step_gru(const Work& work, const State& s, std::span<const Function> f, int64_t row) const;
  void step_rnn(const Work& work, const State& s, std::span<const Function> f, int64_t row) const;
  void reset(const Work& work, const State& s, std::span<const Function> f, int64_t row) const;
  void run_unit(const Work& work, int64_t direction, int64_t first, int64_t rows, int worker) const;

  const LayerParams params_;
};

Result<> RecurrenceElementsKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const bool lstm = params_.cell == Cell::lstm;
  if (inputs.size() < 2 || inputs.size() > kInputs || outputs.size() < 2 || outputs.size() > (lstm ? 3u : 2u))
    return fail(ErrorCode::invalid_argument, "recurrence_elements: {} inputs and {} outputs given", inputs.size(),
                outputs.size());
  const TensorArg &x = inputs[kX], &r = inputs[kR];
  if (x.rank != 3 || r.rank != 3)
    return fail(ErrorCode::shape_mismatch, "recurrence_elements: x of rank {} and r of rank {}", x.rank, r.rank);
  const int64_t steps = x.dims[0], batch = x.dims[1], hidden = r.dims[2], directions = params_.directions();
  const auto has_dims = [](const TensorArg& tensor, std::initializer_list<int64_t> dims) {
    return tensor.rank == static_cast<int>(dims.size()) && std::equal(dims.begin(), dims.end(), tensor.dims);
  };
  const auto may_be = [&](Input i, bool allowed, std::initializer_list<int64_t> dims) {
    const TensorArg& tensor = input_of(inputs, i);
    return tensor.rank == 0 || (allowed && has_dims(tensor, dims));
  };
  bool fits =
      has_dims(r, {directions, params_.gates() * hidden, hidden}) &&
      x.dims[2] == directions * params_.gates() * hidden &&
      may_be(kBias, params_.cell == Cell::gru, {directions, hidden}) && may_be(kLengths, true, {batch}) &&
      may_be(kInitialH, true, {directions, batch, hidden}) && may_be(kInitialC, lstm, {directions, batch, hidden}) &&
      may_be(kPeepholes, lstm, {directions, 3 * hidden}) && has_dims(outputs[0], {steps, batch, directions * hidden});
  for (const TensorArg& state : outputs.subspan(1)) fits = fits && has_dims(state, {directions, batch, hidden});
  if (!fits) return fail(ErrorCode::shape_mismatch, "recurrence_elements: the tensors' dims do not fit together");
  const TensorArg& lengths = input_of(inputs, kLengths);
  bool typed = (x.dtype == DType::f32 || x.dtype == DType::f64) && (lengths.rank == 0 || is_integer(lengths.dtype));
  for (const std::span<const TensorArg> list : {inputs, outputs})
    for (const TensorArg& tensor : list)
      typed = typed && (tensor.rank == 0 || &tensor == &lengths || tensor.dtype == x.dtype);
  if (!typed) return fail(ErrorCode::dtype_unsupported, "recurrence_elements: x is {}", name_of(x.dtype));
  return {};
}

State RecurrenceElementsKernel::state_of(const Work& work, int worker) const {
  const int64_t n = work.hidden;
  State s{};
  s.h = work.scratch + unit_size(n) * worker;
  s.c = s.h + kRows * n;
  s.reset = s.c + kRows * n;
  s.x = s.reset + kRows * n;
  s.next = s.x + params_.gates() * n;
  s.bias = s.next + n;
  s.peepholes = s.bias + n;
  s.state = s.peepholes + 3 * n;
  s.sums = work.scratch + unit_size(n) * (worker + 1) - params_.gates() * work.blocks * kRows * kColumns;
  return s;
}

// Of each direction and gate blocks of columns, each with its whole depth.
void RecurrenceElementsKernel::pack(const Work& work, double* packed) const {
  const TensorArg& r = work.launch.inputs[kR];
  const int64_t n = work.hidden, columns = blocks_of(n) * kColumns;
  const int64_t gates = params_.gates();
  work.launch.pool.parallel_for(params_.directions() * gates * columns, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t unit = i % columns, gate = i / columns % gates, direction = i / columns / gates;
      double* to =
          packed + ((direction * gates + gate) * work.blocks + unit / kColumns) * n * kColumns + unit % kColumns;
      const int64_t row = direction * r.strides[0] + (gate * n + unit) * r.strides[1];
      for (int64_t k = 0; k < n; ++k) {
        const int64_t at = row + k * r.strides[2];
        to[k * kColumns] = unit >= n ? 0 : r.dtype == DType::f64 ? r.as<double>()[at] : r.as<float>()[at];
      }
    }
  });
}

// The sums of a gate: rows of states times its weights.
void RecurrenceElementsKernel::multiply(const Work& work, const State& s, int64_t direction, int64_t gate,
                                        const double* state, int64_t rows) const {
  static const auto multiply = LATHE_ISA_SELECT(multiply_blocks);
  const int64_t n = work.hidden, first = (direction * params_.gates() + gate) * work.blocks;
  double* const sums = s.sums + gate * work.blocks * kRows * kColumns;
  std::fill_n(sums, work.blocks * kRows * kColumns, 0.0);
  for (int64_t k = 0; k < n; k += kDepth) {
    const int64_t depth = std::min(kDepth, n - k);
    for (int64_t row = 0; row < rows; ++row) std::copy_n(state + row * n + k, depth, s.state + row * kDepth);
    for (int64_t block = 0; block < work.blocks; ++block)
      multiply(DType::f64, s.state, work.packed + ((first + block) * n + k) * kColumns, sums + block * kRows * kColumns,
               rows, depth, std::min(kColumns, n - block * kColumns));
  }
}

// Gates in the order i, o, f, c; peepholes i, o, f.
void RecurrenceElementsKernel::step_lstm(const Work& work, const State& s, std::span<const Function> f,
                                         int64_t row) const {
  const int64_t n = work.hidden;
  double *const c = s.c + row * n, *const input = s.x, *const output = s.x + n, *const forget = s.x + 2 * n,
                *const candidate = s.x + 3 * n;
  const auto peek = [&](int64_t gate) {
    for (int64_t u = 0; u < n; ++u) s.x[gate * n + u] += s.peepholes[gate * n + u] * c[u];
  };
  for (int64_t gate = 0; gate < 4; ++gate) add_sums(work, s, gate, row);
  peek(0);
  peek(2);
  apply_clipped(f[0], input, n);
  apply_clipped(f[0], forget, n);
  apply_clipped(f[1], candidate, n);
  for (int64_t u = 0; u < n; ++u)
    c[u] = (params_.input_forget ? 1 - input[u] : forget[u]) * c[u] + input[u] * candidate[u];
  peek(1);
  apply_clipped(f[0], output, n);
  std::copy_n(c, n, s.next);
  apply(f[2], s.next, n);
  for (int64_t u = 0; u < n; ++u) s.h[row * n + u] = output[u] * s.next[u];
}

// Gates in the order z, r, h. What gate r leaves of the state, where its products come after.
void RecurrenceElementsKernel::reset(const Work& work, const State& s, std::span<const Function> f, int64_t row) const {
  const int64_t n = work.hidden;
  add_sums(work, s, 1, row);
  apply_clipped(f[0], s.x + n, n);
  for (int64_t u = 0; u < n; ++u) s.reset[row * n + u] = s.x[n + u] * s.h[row * n + u];
}

void RecurrenceElementsKernel::step_gru(const Work& work, const State& s, std::span<const Function> f,
                                        int64_t row) const {
  const int64_t n = work.hidden;
  double *const h = s.h + row * n, *const z = s.x, *const r = s.x + n, *const candidate = s.x + 2 * n;
  add_sums(work, s, 0, row);
  apply_clipped(f[0], z, n);
  const bool linear = params_.linear_before_reset;
  if (linear) {
    add_sums(work, s, 1, row);
    apply_clipped(f[0], r, n);
  }
  for (int64_t u = 0; u < n; ++u) candidate[u] += (linear ? r[u] : 1) * (sum(work, s, 2, row, u) + s.bias[u]);
  apply_clipped(f[1], candidate, n);
  for (int64_t u = 0; u < n; ++u) h[u] = (1 - z[u]) * candidate[u] + z[u] * h[u];
}

void RecurrenceElementsKernel::step_rnn(const Work& work, const State& s, std::span<const Function> f,
                                        int64_t row) const {
  add_sums(work, s, 0, row);
  apply_clipped(f[0], s.x, work.hidden);
  std::copy_n(s.x, work.hidden, s.h + row * work.hidden);
}

void RecurrenceElementsKernel::run_unit(const Work& work, int64_t direction, int64_t first, int64_t rows,
                                        int worker) const {
  const std::span<const TensorArg> inputs = work.launch.inputs, outputs = work.launch.outputs;
  const int64_t n = work.hidden, gates = params_.gates();
  const State s = state_of(work, worker);
  const auto read = [&](Input i, int64_t row, int64_t count, double* to) {
    const TensorArg& tensor = input_of(inputs, i);
    if (tensor.rank == 0) return void(std::fill_n(to, count, 0.0));
    const int64_t at = direction * tensor.strides[0] + (tensor.rank == 3 ? row * tensor.strides[1] : 0);
    read_row(tensor, at, count, to);
  };
  read(kBias, 0, n, s.bias);
  read(kPeepholes, 0, 3 * n, s.peepholes);
  int64_t lengths[kRows], most = 0;
  for (int64_t row = 0; row < rows; ++row) {
    read(kInitialH, first + row, n, s.h + row * n);
    read(kInitialC, first + row, n, s.c + row * n);
    const TensorArg& given = input_of(inputs, kLengths);
    const int64_t length = given.rank ? integer_at(given, (first + row) * given.strides[0]) : work.steps;
    lengths[row] = std::clamp<int64_t>(length, 0, work.steps);
    most = std::max(most, lengths[row]);
  }
  const size_t count = params_.functions.size() / static_cast<size_t>(params_.directions());
  const std::span<const Function> f =
      std::span(params_.functions).subspan(static_cast<size_t>(direction) * count, count);
  const bool backwards = direction == 1 || params_.direction == Direction::reverse;
  const TensorArg &x = inputs[kX], &y = outputs[0];
  // Calls f(row, time) for the sequences that have a step of that number, with their part of x in s.x.
  const auto each = [&](int64_t step, auto body) {
    for (int64_t row = 0; row < rows; ++row) {
      if (step >= lengths[row]) continue;
      const int64_t t = backwards ? lengths[row] - 1 - step : step;
      read_row(x, t * x.strides[0] + (first + row) * x.strides[1] + direction * gates * n * x.strides[2], gates * n,
               s.x);
      body(row, t);
    }
  };
  for (int64_t step = 0; step < most; ++step) {
    for (int64_t gate = 0; gate < gates; ++gate)
      if (gate < 2 || !is_two_phased()) multiply(work, s, direction, gate, s.h, rows);
    if (is_two_phased()) {
      each(step, [&](int64_t row, int64_t) { reset(work, s, f, row); });
      multiply(work, s, direction, 2, s.reset, rows);
    }
    each(step, [&](int64_t row, int64_t t) {
      if (params_.cell == Cell::lstm)
        step_lstm(work, s, f, row);
      else if (params_.cell == Cell::gru)
        step_gru(work, s, f, row);
      else
        step_rnn(work, s, f, row);
      write_row(y, t * y.strides[0] + (first + row) * y.strides[1] + direction * n * y.strides[2], n, s.h + row * n);
    });
  }
  std::fill_n(s.next, n, 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t t = lengths[row]; t < work.steps; ++t)
      write_row(y, t * y.strides[0] + (first + row) * y.strides[1] + direction * n * y.strides[2], n, s.next);
    for (size_t i = 1; i < outputs.size(); ++i)
      write_row(outputs[i], direction * outputs[i].strides[0] + (first + row) * outputs[i].strides[1], n,
                (i == 1 ? s.h : s.c) + row * n);
  }
}

void RecurrenceElementsKernel::run(const Launch& launch) const {
  const TensorArg &x = launch.inputs[kX], &r = launch.inputs[kR];
  Work work{launch, x.dims[0], x.dims[1], r.dims[2], blocks_of(r.dims[2]), nullptr, nullptr};
  if (work.batch == 0 || work.hidden == 0) return;
  auto* packed = reinterpret_cast<double*>(launch.workspace);
  work.packed = packed;
  work.scratch = packed + packed_size(work.hidden);
  pack(work, packed);
  const int64_t units = ceil_div(work.batch, kRows);
  launch.pool.parallel_for(params_.directions() * units, 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % units * kRows;
      run_unit(work, i / units, first, std::min(kRows, work.batch - first), worker);
    }
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_recurrence_elements(const Record& record) {
  std::optional<LayerParams> params = decode_params<LayerParams>(record.params);
  if (record.program || !params || !is_valid(*params)) return refuse_params("recurrence_elements");
  return std::make_unique<RecurrenceElementsKernel>(*std::move(params));
}

}  // namespace lathe::cpu
