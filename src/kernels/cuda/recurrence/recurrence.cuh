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

enum class Cell { rnn, gru, lstm };

struct Omitted {};
template <class Tensor>
inline constexpr bool is_given = !is_same<Tensor, Omitted>;

// How the work is divided, as the tactic has chosen.
//   Hidden      units of the layer; Units: of a block
//   Batch       sequences that a team runs at a time
//   Team        blocks; Together: the team is part of a cooperative launch, not a cluster
//   Held        rows of each warp, and of each phase, whose weights are in registers; the others are in shared memory
//               (InShared) or read from global memory at each step
//   TwoPhases   a GRU without linear_before_reset: gate h multiplies its weights with r * h, after gates z and r
//   Constant    the weights are constants of the engine: they may be read before the launches before this one are done
template <Cell CellKind, int Hidden, int Units, int Batch, int Team, bool Together, int Threads, int Held,
          bool InShared, bool TwoPhases, bool Constant>
struct Cut {
  static constexpr Cell kCell = CellKind;
  static constexpr int kHidden = Hidden, kUnits = Units, kBatch = Batch, kTeam = Team, kThreads = Threads;
  static constexpr int kHeld = Held;
  static constexpr bool kTogether = Together;
  static constexpr bool kInShared = InShared, kTwoPhases = TwoPhases, kConstant = Constant;

  static constexpr int kGates = kCell == Cell::lstm ? 4 : kCell == Cell::gru ? 3 : 1;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kPieces = (kHidden + 127) / 128;                          // of 4 elements, of a row in a lane
  static constexpr int kPadded = kPieces * 128;                                  // floats of a row of state
  static constexpr int kSums = kGates * kUnits;                                  // of a sequence
  static constexpr int kElements = (kUnits * kBatch + kThreads - 1) / kThreads;  // cells of a thread
  static constexpr int kBatchGroup = kBatch < 8 ? kBatch : 8;
};

// The sums over the lanes of N values each (a power of two, 32 at most): lane i gets that of value i / (32 / N).
template <int N>
LATHE_DEVICE float sum_over_lanes(float (&v)[N]) {
  int mask = 16;
  LATHE_UNROLL
  for (int half = N / 2; half > 0; half /= 2, mask /= 2) {
    const bool upper = (lane() & mask) != 0;
    LATHE_UNROLL
    for (int i = 0; i < half; ++i) {
      const float other = shuffle_xor(upper ? v[i] : v[i + half], mask);
      v[i] = (upper ? v[i + half] : v[i]) + other;
    }
  }
  for (; mask > 0; mask /= 2) v[0] += shuffle_xor(v[0], mask);
  return v[0];
}

// A block's rows of the weights of Gates gates from FirstGate on: row g * kUnits + u is gate g of its unit u.
template <class C, int FirstGate, int Gates, class R>
struct Rows {
  using T = typename R::Type;
  static constexpr int kRows = Gates * C::kUnits;
  // Row i of a warp is row i * kWarps + warp() of the block. A warp has kEach rows, which are padded to kPerWarp, whole
  // groups of kGroup; the first kHeld are in registers. A group's products have kGroup * kBatchGroup sums, at most 32.
  static constexpr int kEach = (kRows + C::kWarps - 1) / C::kWarps;
  static constexpr int kWanted = 32 / C::kBatchGroup < 8 ? 32 / C::kBatchGroup : 8;
  static constexpr int kGroup = kEach >= kWanted || kWanted == 1 ? kWanted : kEach > 2 ? 4 : kEach > 1 ? 2 : 1;
  static constexpr int kPerWarp = (kEach + kGroup - 1) / kGroup * kGroup;
  static constexpr int kHeld = C::kHeld < kPerWarp ? C::kHeld / kGroup * kGroup : kPerWarp;
  static constexpr int kElsewhere = kPerWarp - kHeld;
  static constexpr int kSharedBytes =
      C::kInShared ? kElsewhere * C::kWarps * C::kPadded * static_cast<int>(sizeof(T)) : 0;

  const R& r;
  int direction, first_unit;
  T* shared;  // kSharedBytes: the rows that are not held, if InShared
  Vec<T, 4> held[kHeld > 0 ? kHeld : 1][C::kPieces];

  LATHE_DEVICE_MEMBER Rows(const R& weights, int direction_, int first_unit_, void* memory)
      : r(weights), direction(direction_), first_unit(first_unit_), shared(static_cast<T*>(memory)) {
    LATHE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      LATHE_UNROLL
      for (int piece = 0; piece < C::kPieces; ++piece) held[i][piece] = read(i, piece);
    }
    if constexpr (C::kInShared)
      for (int i = kHeld; i < kPerWarp; ++i)
        for (int piece = 0; piece < C::kPieces; ++piece) {
          const Vec<T, 4> v = read(i, piece);
          move_vector<4>(in_shared(i, piece), v.at);
        }
  }

  LATHE_DEVICE_MEMBER T* in_shared(int i, int piece) const {
    return shared + ((i - kHeld) * C::kWarps + warp()) * C::kPadded + (piece * 32 + lane()) * 4;
  }
  // The lane's piece of row i of its warp, from global memory; zeros beyond the ends.
  LATHE_DEVICE_MEMBER Vec<T, 4> read(int i, int piece) const {
    const int row = i * C::kWarps + warp(), k = (piece * 32 + lane()) * 4;
    const int unit = first_unit + row % C::kUnits, gate = FirstGate + row / C::kUnits;
    Vec<T, 4> v{};
    if (row >= kRows || unit >= C::kHidden || k >= C::kHidden) return v;
    const T* from = r.data + direction * r.stride(0) + (gate * C::kHidden + unit) * r.stride(1) + k * r.stride(2);
    if constexpr (R::kUnit == 2 && R::kVector >= 4 && C::kHidden % 4 == 0) return load_vector<4>(from);
    LATHE_UNROLL
    for (int e = 0; e < 4; ++e)
      if (k + e < C::kHidden) v.at[e] = from[e * r.stride(2)];
    return v;
  }
  template <bool IsHeld>
  LATHE_DEVICE_MEMBER Vec<T, 4> weights(int i, int piece) const {
    if constexpr (IsHeld)
      return held[i][piece];
    else if constexpr (C::kInShared)
      return load_vector<4>(in_shared(i, piece));
    else
      return read(i, piece);
  }

  // sums[b * kSums + FirstGate * kUnits + row] = the row times state[b]. A barrier must follow.
  LATHE_DEVICE_MEMBER void multiply(const float* state, float* sums) const {
    LATHE_UNROLL
    for (int i = 0; i < kHeld; i += kGroup) multiply_group<true>(i, state, sums);
    LATHE_NO_UNROLL
    for (int i = kHeld; i < kPerWarp; i += kGroup) multiply_group<false>(i, state, sums);
  }
  template <bool IsHeld>
  LATHE_DEVICE_MEMBER void multiply_group(int first, const float* state, float* sums) const {
    constexpr int kBatch = C::kBatchGroup, kValues = kGroup * kBatch;
    for (int b = 0; b < C::kBatch; b += kBatch) {
      float v[kValues] = {};
      if constexpr (IsHeld) {
        LATHE_UNROLL
        for (int piece = 0; piece < C::kPieces; ++piece) multiply_piece<true>(first, b, piece, state, v);
      } else {  // not unrolled: that would take registers from the held rows
        LATHE_NO_UNROLL
        for (int piece = 0; piece < C::kPieces; ++piece) multiply_piece<false>(first, b, piece, state, v);
      }
      const float sum = sum_over_lanes(v);
      constexpr int kLanesEach = 32 / kValues;
      const int value = lane() / kLanesEach, row = (first + value / kBatch) * C::kWarps + warp();
      if (lane() % kLanesEach == 0 && row < kRows)
        sums[(b + value % kBatch) * C::kSums + FirstGate * C::kUnits + row] = sum;
    }
  }
  template <bool IsHeld, int Values>
  LATHE_DEVICE_MEMBER void multiply_piece(int first, int b, int piece, const float* state, float (&v)[Values]) const {
    constexpr int kBatch = C::kBatchGroup;
    Vec<float, 4> h[kBatch];
    LATHE_UNROLL
    for (int j = 0; j < kBatch; ++j) h[j] = load_vector<4>(state + (b + j) * C::kPadded + (piece * 32 + lane()) * 4);
    LATHE_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      const Vec<T, 4> w = weights<IsHeld>(first + i, piece);
      LATHE_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float weight = to_float(w.at[e]);
        LATHE_UNROLL
        for (int j = 0; j < kBatch; ++j) v[i * kBatch + j] = fmaf(weight, h[j].at[e], v[i * kBatch + j]);
      }
    }
  }
};

template <class C, class R>
inline constexpr int kRowsBytes =
    Rows<C, 0, C::kTwoPhases ? 2 : C::kGates, R>::kSharedBytes + Rows<C, 2, C::kTwoPhases ? 1 : 0, R>::kSharedBytes;
// The dynamic shared memory of the kernel: state before and after a step (and r * h), sums, weights.
template <class C, class R>
inline constexpr int kSharedBytes = 4 * C::kBatch*((C::kTwoPhases ? 3 : 2) * C::kPadded + C::kSums) + kRowsBytes<C, R>;

// The barrier of a team's blocks, and the exchange of state between them.
template <class C>
struct Team {
  // Only if kTogether, in global memory: for each direction a counter, zeroed by clear_counters(), and three buffers of
  // state.
  uint32* counters = nullptr;
  float* exchange = nullptr;
  uint32 met = 0;  // how many barriers the block has passed

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
      blocks_wait(counters + direction() * kCounterStride, ++met * C::kTeam);
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
