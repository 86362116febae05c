// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/recurrence/recurrence.h"
#include "kernels/cpu/simd_scalars.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using recurrence::Cell;
using recurrence::CellFunction;
using recurrence::CellRows;
using recurrence::CellStep;
using recurrence::CellType;

Vec apply(const CellFunction& f, Vec a) {
  using real = float;
  const Vec x = broadcast(f.alpha), y = broadcast(f.beta);
  switch (f.op) {
#define LATHE_ACTIVATION(name, parameters, formula) \
  case Opcode::name:                                \
    return formula;
#include "base/scalars.def"
    default:
      return a;  // the kernel admits activations only
  }
}

// `gate`, `candidate` and `shown` are ONNX's activations f, g and h. Usual has ONNX's defaults without clipping, which
// most models use, inlined; Listed looks up what the record lists.
struct Usual {
  explicit Usual(const CellType&) {}
  static Vec gate(Vec x) { return sigmoid_quick(x); }
  static Vec candidate(Vec x) { return tanh(x); }
  static Vec shown(Vec x) { return tanh(x); }
};
struct Listed {
  explicit Listed(const CellType& of) : type(of), limit(broadcast(of.clip)), first(of.functions[0]) {}
  Vec clipped(Vec x) const { return type.clip > 0 ? min_or_second(limit, max_or_second(-limit, x)) : x; }
  Vec gate(Vec x) const { return apply(first, clipped(x)); }
  // An RNN's only function, f, is that of its candidate.
  Vec candidate(Vec x) const { return apply(type.functions[type.cell == Cell::rnn ? 0 : 1], clipped(x)); }
  Vec shown(Vec x) const { return apply(type.functions[2], x); }

  const CellType& type;
  Vec limit;
  const CellFunction& first;
};

bool is_usual(const CellType& type) {
  const auto is = [&](int i, Opcode op) { return type.functions[i].op == op; };
  const bool tanh = type.cell == Cell::rnn ? is(0, Opcode::tanh) : is(1, Opcode::tanh);
  return type.clip == 0 && tanh && (type.cell == Cell::rnn || is(0, Opcode::sigmoid)) &&
         (type.cell != Cell::lstm || is(2, Opcode::tanh));
}

// Access to one vector of a row of units: Lanes<kLanes> to a whole one, Lanes<0> to the first `rest` lanes of the last.
template <int kLanesNow>
struct Lanes {
  int rest;
  Vec read(const float* p) const { return kLanesNow == kLanes ? load(p) : load_tail(p, rest); }
  void write(float* p, Vec v) const { kLanesNow == kLanes ? store(p, v) : store_tail(p, rest, v); }
};

// rnn(), gru() and lstm() advance one vector of units, which begins at the row's unit `u`.
template <class F, class L>
LATHE_INLINE void rnn(const CellStep&, const CellRows& row, const F& f, const L& lanes, int64_t u) {
  const Vec h = f.candidate(lanes.read(row.x + u) + lanes.read(row.sums + u));
  lanes.write(row.next + u, h);
  lanes.write(row.y + u, h);
}

template <class F, class L>
LATHE_INLINE void finish_gru(const CellRows& row, const F& f, const L& lanes, int64_t u, Vec z, Vec x) {
  const Vec candidate = f.candidate(x);
  const Vec h = candidate + z * (lanes.read(row.h + u) - candidate);
  lanes.write(row.next + u, h);
  lanes.write(row.y + u, h);
}

// Gates in the order z, r, h.
template <class F, class L>
LATHE_INLINE void gru(const CellStep& step, const CellRows& row, const F& f, const L& lanes, int64_t u) {
  const Vec bias = step.bias ? lanes.read(step.bias + u) : zero();
  const float *x = row.x + u, *sums = row.sums + u;
  if (step.phase == 1)
    return finish_gru(row, f, lanes, u, lanes.read(row.z + u),
                      lanes.read(x + 2 * step.hidden) + (lanes.read(sums) + bias));
  const Vec z = f.gate(lanes.read(x) + lanes.read(sums));
  const Vec r = f.gate(lanes.read(x + step.hidden) + lanes.read(sums + step.gate_stride));
  if (step.type->linear_before_reset)
    return finish_gru(row, f, lanes, u, z,
                      lanes.read(x + 2 * step.hidden) + r * (lanes.read(sums + 2 * step.gate_stride) + bias));
  lanes.write(row.z + u, z);
  lanes.write(row.reset + u, r * lanes.read(row.h + u));
}

// Gates in the order i, o, f, c; peepholes i, o, f.
template <class F, class L>
LATHE_INLINE void lstm(const CellStep& step, const CellRows& row, const F& f, const L& lanes, int64_t u) {
  const auto gate = [&](int g) {
    return lanes.read(row.x + g * step.hidden + u) + lanes.read(row.sums + g * step.gate_stride + u);
  };
  const auto peek = [&](int g, Vec x, Vec c) {
    return step.peepholes ? x + lanes.read(step.peepholes + g * step.hidden + u) * c : x;
  };
  const Vec before = lanes.read(row.c + u);
  const Vec input = f.gate(peek(0, gate(0), before));
  const Vec forget = step.type->input_forget ? 1.0f - input : f.gate(peek(2, gate(2), before));
  const Vec c = forget * before + input * f.candidate(gate(3));
  const Vec h = f.gate(peek(1, gate(1), c)) * f.shown(c);
  lanes.write(row.c + u, c);
  lanes.write(row.next + u, h);
  lanes.write(row.y + u, h);
}

template <class F, class L>
LATHE_INLINE void units(const CellStep& step, const CellRows& row, const F& f, const L& lanes, int64_t u) {
  switch (step.type->cell) {
    case Cell::rnn:
      return rnn(step, row, f, lanes, u);
    case Cell::gru:
      return gru(step, row, f, lanes, u);
    case Cell::lstm:
      return lstm(step, row, f, lanes, u);
  }
}

// A sequence that is over.
void keep(const CellStep& step, const CellRows& row) {
  if (step.phase + 1 < step.phases) return;
  for (int u = 0; u < step.units; ++u) {
    row.next[u] = row.h[u];
    row.y[u] = 0;
  }
}

void advance(CellRows& rows) {
  rows.x += rows.x_stride;
  rows.sums += rows.sums_stride;
  rows.y += rows.y_stride;
  rows.h += rows.state_stride;
  rows.next += rows.state_stride;
  if (rows.c) rows.c += rows.state_stride;
  if (!rows.z) return;
  rows.z += rows.state_stride;
  rows.reset += rows.state_stride;
}

template <class F>
void all_rows(const CellStep& step, CellRows& rows) {
  const F f(*step.type);
  for (int i = 0; i < rows.count; ++i, advance(rows)) {
    if (rows.ended && rows.ended[i]) {
      keep(step, rows);
      continue;
    }
    int u = 0;
    for (; u + kLanes <= step.units; u += kLanes) units(step, rows, f, Lanes<kLanes>{kLanes}, u);
    if (u < step.units) units(step, rows, f, Lanes<0>{step.units - u}, u);
  }
}

}  // namespace

void cell_step(const CellStep& step, CellRows rows) {
  is_usual(*step.type) ? all_rows<Usual>(step, rows) : all_rows<Listed>(step, rows);
}

}  // namespace lathe::cpu::LATHE_ISA
