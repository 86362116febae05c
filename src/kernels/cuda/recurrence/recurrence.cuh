// SPDX-License-Identifier: Apache-2.0
// A layer of an RNN, GRU or LSTM over a sequence of any length, in one launch. A team of blocks runs kBatch sequences
// at a time in one direction, from the first step to the last. Each block of the team has some of the hidden units: it
// keeps their weights in registers or shared memory where they fit, and after each step gives their new state to all
// blocks of the team. A team is a cluster, which exchanges the state through distributed shared memory, or (kTogether)
// all blocks of a cooperative launch for a direction, which exchange it through global memory. Teams are independent of
// each other.
//
// The products of a step are computed by warps. A row of weights is that of one gate of one unit. A warp takes a group
// of rows at a time, each lane multiplies every 32nd piece of 4 elements, and the sums over the lanes go to shared
// memory, where the threads that own the cells read them.
//
// Example: an LSTM of 256 units and a team of 4 blocks of 256 threads. A block has 64 units, so 4 * 64 rows; each of
// its 8 warps has 32 of them, and a lane has 2 pieces of each row.
#pragma once

#include "lib/math.cuh"
#include "lib/tensor.cuh"
#include "recurrence/rows.cuh"

// The barrier of a team's blocks, and the exchange of state between them.
template <class C>
struct Team {
  // Only if kTogether, in global memory: for each direction a counter, zeroed by clear_counters(), and three buffers of
  // state.
  uint32* counters = nullptr;
  float* exchange = nullptr;
  uint32 barriers_passed = 0;

  LATHE_DEVICE_MEMBER int rank() const {
    return C::kTogether ? block_x() % C::kTeam : C::kTeam > 1 ? cluster_rank() : 0;
  }
  LATHE_DEVICE_MEMBER int direction() const { return C::kTogether ? block_x() / C::kTeam : block_z(); }

  // The two halves of the barrier: what any block gave before arrive() can be read after wait() and take().
  LATHE_DEVICE_MEMBER void arrive() {
    if constexpr (C::kTogether)
      blocks_arrive(counters + direction() * kCounterStride);
    else if constexpr (C::kTeam > 1)
      cluster_arrive();
  }
  LATHE_DEVICE_MEMBER void wait() {
    if constexpr (C::kTogether)
      blocks_wait(counters + direction() * kCounterStride, ++barriers_passed * C::kTeam);
    else if constexpr (C::kTeam > 1)
      cluster_wait();
    else
      barrier();
  }
  // Gives a value to all blocks of the team, for index `place` of state buffer `which`, which begins at `shared` in
  // each block's shared memory. If kTogether it goes through global memory, and take() brings it there.
  LATHE_DEVICE_MEMBER void give(float* shared, int which, int place, float value) const {
    if constexpr (C::kTogether) {
      buffer(which)[place] = value;
    } else if constexpr (C::kTeam > 1) {
      LATHE_UNROLL
      for (int rank = 0; rank < C::kTeam; ++rank) *cluster_peer(shared + place, rank) = value;
    } else {
      shared[place] = value;
    }
  }
  // After wait(): if kTogether, copies what all blocks gave from global memory to `shared`.
  LATHE_DEVICE_MEMBER void take(float* shared, int which) const {
    if constexpr (C::kTogether) {
      const float* from = buffer(which);
      LATHE_UNROLL
      for (int b = 0; b < C::kBatch; ++b)
        for (int unit = thread_x(); unit < C::kHidden; unit += C::kThreads)
          shared[b * C::kPadded + unit] = load_coherent(from + b * C::kPadded + unit);
      barrier();
    }
  }

 private:
  static constexpr int kCounterStride = 32;  // each direction's counter has a cache line
  LATHE_DEVICE_MEMBER float* buffer(int which) const {
    return exchange + (direction() * 3 + which) * C::kBatch * C::kPadded;
  }
};

// The launch before one that is kTogether: sets the counters of its barriers to zero.
LATHE_DEVICE void clear_counters(uint32* counters, int count) {
  dependency_wait();
  for (int i = thread_x(); i < count; i += block_threads()) counters[i] = 0;
}

// The element of a tensor, 0 where the tensor is omitted.
template <class Tensor, int N>
LATHE_DEVICE float given(const Tensor& tensor, const long (&c)[N]) {
  if constexpr (is_given<Tensor>)
    return to_float(tensor.data[offset_of(tensor, c)]);
  else
    return 0;
}

// A cell is one unit of one sequence. Its thread keeps it in registers from the first step to the last.
template <class C>
struct CellState {
  bool exists;
  int b, unit;         // index among the team's sequences; among all units of the layer
  int length;          // of the sequence
  float c, h;          // the state before the step, then after it
  float x[C::kGates];  // the input's part of the gates at the step
  float z;             // of a GRU of two phases
  float bias, peepholes[3];
};

// A gate that sees c. Where peepholes are omitted, c is not multiplied by 0: it may be infinite.
template <bool HasPeepholes, class C>
LATHE_DEVICE float peek(const CellState<C>& cell, float gate, int peephole) {
  return HasPeepholes ? gate + cell.peepholes[peephole] * cell.c : gate;
}

template <class Functions, bool HasPeepholes, class C>
LATHE_DEVICE float next_lstm(CellState<C>& cell, const float (&gates)[C::kGates]) {
  const float i = Functions::gate(peek<HasPeepholes>(cell, gates[0], 0));
  const float f = Functions::kInputForget ? 1.0f - i : Functions::gate(peek<HasPeepholes>(cell, gates[2], 2));
  cell.c = f * cell.c + i * Functions::candidate(gates[3]);
  return Functions::gate(peek<HasPeepholes>(cell, gates[1], 1)) * Functions::shown(cell.c);
}

// The new h (and cell.c), from `sums`, the state's part of the gates, which Rows::multiply() wrote.
template <class Functions, bool HasPeepholes, class C>
LATHE_DEVICE float next_state(CellState<C>& cell, const float* sums, int unit_of_block) {
  float gates[C::kGates];
  LATHE_UNROLL
  for (int g = 0; g < C::kGates; ++g) gates[g] = sums[cell.b * C::kSums + g * C::kUnits + unit_of_block];
  if constexpr (C::kCell == Cell::gru) {
    const float z = C::kTwoPhases ? cell.z : Functions::gate(cell.x[0] + gates[0]);
    float memory = gates[2] + cell.bias;
    if (!C::kTwoPhases) memory *= Functions::gate(cell.x[1] + gates[1]);
    const float candidate = Functions::candidate(cell.x[2] + memory);
    return candidate + z * (cell.h - candidate);
  } else {
    LATHE_UNROLL
    for (int g = 0; g < C::kGates; ++g) gates[g] += cell.x[g];
    if constexpr (C::kCell == Cell::lstm)
      return next_lstm<Functions, HasPeepholes>(cell, gates);
    else
      return Functions::candidate(gates[0]);
  }
}

// The block's part of a layer: its units of its team's sequences in its team's direction.
template <class C, class Functions, bool Backwards, class X, class R, class Bias, class Lengths, class InitialH,
          class InitialC, class Peepholes, class Y, class LastH, class LastC>
struct Recurrence {
  const X& x;
  const R& r;
  const Bias& bias;
  const Lengths& lengths;
  const InitialH& initial_h;
  const InitialC& initial_c;
  const Peepholes& peepholes;
  const Y& y;
  const LastH& last_h;
  const LastC& last_c;
  Team<C> team;

  static constexpr int kStateFloats = C::kBatch * C::kPadded;
  using First = Rows<C, 0, C::kTwoPhases ? 2 : C::kGates, R>;
  using Second = Rows<C, 2, C::kTwoPhases ? 1 : 0, R>;
  static constexpr int kReset = 2;  // state buffers 0 and 1 have h before and after a step, in turn; 2 has r * h

  LATHE_DEVICE_MEMBER static float* state(int which) {
    return reinterpret_cast<float*>(dynamic_shared()) + which * kStateFloats;
  }
  LATHE_DEVICE_MEMBER static float* sums() { return state(C::kTwoPhases ? 3 : 2); }

  LATHE_DEVICE_MEMBER void run() {
    unsigned char* const memory = reinterpret_cast<unsigned char*>(sums() + C::kBatch * C::kSums);
    if (!C::kConstant) dependency_wait();
    const int first_unit = team.rank() * C::kUnits;
    const First first(r, team.direction(), first_unit, memory);
    const Second second(r, team.direction(), first_unit, memory + First::kSharedBytes);
    if (C::kConstant) dependency_wait();
    if constexpr (C::kTogether) {
      LATHE_NO_UNROLL
      for (long b = 0; b < x.dim(1); b += C::kBatch) run_sequences(first, second, b);
    } else {
      run_sequences(first, second, static_cast<long>(block_y()) * C::kBatch);
    }
  }

 private:
  LATHE_DEVICE_MEMBER static int unit_of_block(int e) { return (e * C::kThreads + thread_x()) % C::kUnits; }
  LATHE_DEVICE_MEMBER long time_of(long step) const {
    return Backwards || team.direction() == 1 ? x.dim(0) - 1 - step : step;
  }

  LATHE_DEVICE_MEMBER void read_x(CellState<C>& cell, long first_batch, long step) const {
    if (!cell.exists || step >= x.dim(0)) return;
    const long first = static_cast<long>(team.direction()) * C::kGates * C::kHidden + cell.unit;
    LATHE_UNROLL
    for (int g = 0; g < C::kGates; ++g) {
      const long at[3] = {time_of(step), first_batch + cell.b, first + g * C::kHidden};
      cell.x[g] = to_float(x.data[offset_of(x, at)]);
    }
  }

  LATHE_DEVICE_MEMBER void begin_cell(CellState<C>& cell, int e, long first_batch) const {
    const int direction = team.direction();
    cell.b = (e * C::kThreads + thread_x()) / C::kUnits;
    cell.unit = team.rank() * C::kUnits + unit_of_block(e);
    const long b = first_batch + cell.b, steps = x.dim(0);
    cell.exists = cell.b < C::kBatch && b < x.dim(1) && cell.unit < C::kHidden;
    if (!cell.exists) return;
    cell.length = static_cast<int>(steps);
    if constexpr (is_given<Lengths>) {
      const long length = static_cast<long>(lengths.data[b * lengths.stride(0)]);
      cell.length = static_cast<int>(length < 0 ? 0 : length < steps ? length : steps);
    }
    cell.h = given(initial_h, {direction, b, cell.unit});
    cell.c = given(initial_c, {direction, b, cell.unit});
    cell.bias = given(bias, {direction, cell.unit});
    LATHE_UNROLL
    for (int p = 0; p < 3; ++p) cell.peepholes[p] = given(peepholes, {direction, p * C::kHidden + cell.unit});
    read_x(cell, first_batch, 0);
  }

  // Fills buffer 0 with the initial h; the padding of all buffers is zero from here on.
  LATHE_DEVICE_MEMBER void begin_state(long first_batch) const {
    for (int i = thread_x(); i < (C::kTwoPhases ? 3 : 2) * kStateFloats; i += C::kThreads) {
      const long b = first_batch + i / C::kPadded, unit = i % C::kPadded;
      const bool exists = i < kStateFloats && b < x.dim(1) && unit < C::kHidden;
      state(0)[i] = exists ? given(initial_h, {team.direction(), b, unit}) : 0.0f;
    }
  }

  LATHE_DEVICE_MEMBER void run_sequences(const First& first, const Second& second, long first_batch) {
    const long steps = x.dim(0);
    CellState<C> cells[C::kElements];
    begin_state(first_batch);
    LATHE_UNROLL
    for (int e = 0; e < C::kElements; ++e) begin_cell(cells[e], e, first_batch);
    barrier();
    team.arrive();
    team.wait();
    LATHE_NO_UNROLL
    for (long step = 0; step < steps; ++step) {
      const long t = time_of(step);
      const int before = static_cast<int>(step & 1), after = 1 - before;
      first.multiply(state(before), sums());
      barrier();
      if constexpr (C::kTwoPhases) {
        reset_state(cells);
        second.multiply(state(kReset), sums());
        barrier();
      }
      LATHE_UNROLL
      for (int e = 0; e < C::kElements; ++e) {
        CellState<C>& cell = cells[e];
        if (!cell.exists) continue;
        // Beyond its length a sequence keeps its state: forwards after its end, backwards before it begins.
        if (t < cell.length) cell.h = next_state<Functions, is_given<Peepholes>>(cell, sums(), unit_of_block(e));
        team.give(state(after), after, cell.b * C::kPadded + cell.unit, cell.h);
      }
      team.arrive();
      LATHE_UNROLL
      for (int e = 0; e < C::kElements; ++e) {
        CellState<C>& cell = cells[e];
        if (!cell.exists) continue;
        const long at[3] = {t, first_batch + cell.b, team.direction() * C::kHidden + cell.unit};
        y.data[offset_of(y, at)] = from_float<typename Y::Type>(t < cell.length ? cell.h : 0.0f);
        read_x(cell, first_batch, step + 1);
      }
      team.wait();
      team.take(state(after), after);
    }
    LATHE_UNROLL
    for (int e = 0; e < C::kElements; ++e) finish_cell(cells[e], first_batch);
  }

  // Between the phases: gate z, and r * h for the products of gate h, which go to all blocks.
  LATHE_DEVICE_MEMBER void reset_state(CellState<C> (&cells)[C::kElements]) {
    LATHE_UNROLL
    for (int e = 0; e < C::kElements; ++e) {
      CellState<C>& cell = cells[e];
      if (!cell.exists) continue;
      const float* own = sums() + cell.b * C::kSums + unit_of_block(e);
      cell.z = Functions::gate(cell.x[0] + own[0]);
      team.give(state(kReset), kReset, cell.b * C::kPadded + cell.unit,
                Functions::gate(cell.x[1] + own[C::kUnits]) * cell.h);
    }
    team.arrive();
    team.wait();
    team.take(state(kReset), kReset);
  }

  LATHE_DEVICE_MEMBER void finish_cell(const CellState<C>& cell, long first_batch) const {
    if (!cell.exists) return;
    const long at[3] = {team.direction(), first_batch + cell.b, cell.unit};
    last_h.data[offset_of(last_h, at)] = from_float<typename LastH::Type>(cell.h);
    if constexpr (is_given<LastC>) last_c.data[offset_of(last_c, at)] = from_float<typename LastC::Type>(cell.c);
  }
};

template <class C, class Functions, bool Backwards, class X, class R, class Bias, class Lengths, class InitialH,
          class InitialC, class Peepholes, class Y, class LastH, class LastC>
LATHE_DEVICE void recurrence(const Team<C>& team, const X& x, const R& r, const Bias& bias, const Lengths& lengths,
                             const InitialH& initial_h, const InitialC& initial_c, const Peepholes& peepholes,
                             const Y& y, const LastH& last_h, const LastC& last_c) {
  Recurrence<C, Functions, Backwards, X, R, Bias, Lengths, InitialH, InitialC, Peepholes, Y, LastH, LastC>{
      x, r, bias, lengths, initial_h, initial_c, peepholes, y, last_h, last_c, team}
      .run();
}
