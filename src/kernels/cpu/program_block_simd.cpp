// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/program_block.h"

#include "kernels/cpu/block_views.h"
#include "kernels/cpu/simd_scalars.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

static_assert(kLanes <= kMaxLanes && kBlockFloats % kMaxLanes == 0);

// One step over n elements, n a multiple of kLanes. An operand that is one value has an increment of 0.
struct Frame {
  float* target;
  const float* operands[3];
  int increments[3];
  const float* immediates;
  int n;
};

// LATHE_STEP(name, operands, formula of a b c and the immediates x y z w): those beside the instructions.
#define LATHE_TRANSLATED_STEPS(LATHE_STEP)                                 \
  LATHE_STEP(copy, 1, a)                                                   \
  LATHE_STEP(add_relu, 2, max_or_second(zero(), a + b))                    \
  LATHE_STEP(affine_clip, 1, min_or_second(w, max_or_second(z, a* x + y))) \
  LATHE_STEP(cube, 1, a* a* a)                                             \
  LATHE_STEP(pow_half, 1, LATHE_ISA::select(a == -kInfinity, broadcast(kInfinity), LATHE_ISA::sqrt(a + 0.0f)))

#define LATHE_STEP(name, arity, formula)                                                        \
  void step_##name(const Frame& frame) {                                                        \
    using real [[maybe_unused]] = float;                                                        \
    const float *pa = frame.operands[0], *pb = frame.operands[1], *pc = frame.operands[2];      \
    const int64_t ia = frame.increments[0], ib = frame.increments[1], ic = frame.increments[2]; \
    const Vec x = broadcast(frame.immediates[0]), y = broadcast(frame.immediates[1]);           \
    const Vec z = broadcast(frame.immediates[2]), w = broadcast(frame.immediates[3]);           \
    static_cast<void>(x), static_cast<void>(y), static_cast<void>(z), static_cast<void>(w);     \
    for (int i = 0; i < frame.n; i += kLanes, pa += ia, pb += ib, pc += ic) {                   \
      const Vec a = arity > 0 ? load(pa) : zero();                                              \
      const Vec b = arity > 1 ? load(pb) : a;                                                   \
      const Vec c = arity > 2 ? load(pc) : a;                                                   \
      static_cast<void>(a), static_cast<void>(b), static_cast<void>(c);                         \
      store(frame.target + i, formula);                                                         \
    }                                                                                           \
  }
#define LATHE_INSTRUCTION(name, number, operands, parameters, formula) LATHE_STEP(name, operands, formula)
#define LATHE_ROUNDING(...)
#include "base/scalars.def"
LATHE_TRANSLATED_STEPS(LATHE_STEP)
#undef LATHE_STEP

// Whether it is a level: rounding a number that was clipped to such bounds clips what is rounded.
bool is_level(float x) { return x >= -0x1p16f && x <= 0x1p16f && x == round_even(broadcast(x))[0]; }

// finish(min(max(round(a / scale), low), high)) of each element.
template <class Finish>
void round_all(const Frame& frame, float scale, float low, float high, Finish&& finish) {
  const float* a = frame.operands[0];
  const int64_t step = frame.increments[0];
  const auto each = [&](auto&& level_of) {
    for (int i = 0; i < frame.n; i += kLanes, a += step) store(frame.target + i, finish(level_of(load(a))));
  };
  const Vec least = broadcast(low), most = broadcast(high), divisor = broadcast(scale);
  if (has_quotients(scale) && is_level(low) && is_level(high))
    return each([quotient = Quotient(scale), lowest = least * scale, highest = most * scale](Vec x) {
      return round_even(quotient(min_or_second(highest, max_or_second(lowest, x))));
    });
  each([=](Vec x) { return min_or_second(most, max_or_second(least, round_even(x / divisor))); });
}

void step_levels(const Frame& frame) {
  const float* with = frame.immediates;
  round_all(frame, with[0], with[2], with[3], [y = broadcast(with[1])](Vec level) { return level * y; });
}

// Scale and zero point are usually one for all.
void step_to_levels(const Frame& frame) {
  const float low = frame.immediates[0], high = frame.immediates[1];
  const float *b = frame.operands[1], *c = frame.operands[2];
  if (frame.increments[1] == 0 && frame.increments[2] == 0 && is_level(*c))
    return round_all(frame, *b, low - *c, high - *c, [zero = broadcast(*c)](Vec level) { return level + zero; });
  const float* a = frame.operands[0];
  for (int i = 0; i < frame.n;
       i += kLanes, a += frame.increments[0], b += frame.increments[1], c += frame.increments[2])
    store(frame.target + i,
          min_or_second(broadcast(high), max_or_second(broadcast(low), round_even(load(a) / load(b)) + load(c))));
}

void apply(StepOp op, const Frame& frame) {
  switch (op) {
    case StepOp::levels:
      return step_levels(frame);
    case StepOp::to_levels:
      return step_to_levels(frame);
#define LATHE_STEP(name, arity, formula) \
  case StepOp::name:                     \
    return step_##name(frame);
#define LATHE_INSTRUCTION(name, number, operands, parameters, formula) LATHE_STEP(name, operands, formula)
#define LATHE_ROUNDING(...)
#include "base/scalars.def"
      LATHE_TRANSLATED_STEPS(LATHE_STEP)
#undef LATHE_STEP
    case StepOp::count:
      break;
  }
}

// Inputs, constants and slots: where each operand of the current elements lies.
constexpr int kMaxOperands = kMaxProgramInputs + 2 * kMaxProgramCode + kMaxProgramOutputs;
struct Operands {
  const float* data[kMaxOperands];
  int increments[kMaxOperands];
};

void run_steps(const BlockProgram& program, const Operands& table, float* const* targets, int n) {
  const int first_slot = program.first_slot();
  for (const BlockStep& step : program.steps()) {
    Frame frame;
    frame.target = targets[step.target - first_slot];
    for (int k = 0; k < 3; ++k) {
      frame.operands[k] = table.data[step.operands[static_cast<size_t>(k)]];
      frame.increments[k] = table.increments[step.operands[static_cast<size_t>(k)]];
    }
    frame.immediates = step.immediates.data();
    frame.n = n;
    apply(step.op, frame);
  }
}

constexpr int64_t kTransposedColumns = 32;

// How an input reaches the steps: as one value, in place, or through a dense copy.
enum class Access : uint8_t { unused, scalar, direct, staged };

class Runner {
 public:
  Runner(const BlockProgram& program, int64_t rows, int64_t columns, const BlockInput* inputs,
         const BlockOutput* outputs, float* scratch)
      : program_(program), rows_(rows), columns_(columns), scratch_(scratch) {
    for (int i = 0; i < program.num_inputs(); ++i) inputs_[i] = inputs[i];
    for (int i = 0; i < program.num_outputs(); ++i) outputs_[i] = outputs[i];
    if (columns_ == 1) swap_axes();
    if (is_dense()) columns_ *= rows_, rows_ = 1;
    int64_t limit = kBlockFloats;
    if (has_transposed()) limit = kBlockFloats / rows_ > kTransposedColumns ? kBlockFloats / rows_ : kTransposedColumns;
    chunk_columns_ = static_cast<int>(columns_ < limit ? columns_ : limit);
    chunk_rows_ = static_cast<int>(kBlockFloats / chunk_columns_ < rows_ ? kBlockFloats / chunk_columns_ : rows_);
    divide_scratch();
    classify();
  }

  void run() {
    for (int64_t r = 0; r < rows_; r += chunk_rows_)
      for (int64_t c = 0; c < columns_; c += chunk_columns_) {
        const int64_t rows = rows_ - r < chunk_rows_ ? rows_ - r : chunk_rows_;
        const int64_t columns = columns_ - c < chunk_columns_ ? columns_ - c : chunk_columns_;
        run_chunk(r, c, static_cast<int>(rows), static_cast<int>(columns));
      }
  }

 private:
  void swap_axes() {
    columns_ = rows_;
    rows_ = 1;
    for (int i = 0; i < program_.num_inputs(); ++i)
      inputs_[i] = {inputs_[i].data, 0, inputs_[i].row_stride, inputs_[i].type};
    for (int i = 0; i < program_.num_outputs(); ++i)
      outputs_[i] = {outputs_[i].data, 0, outputs_[i].row_stride, outputs_[i].type};
  }

  bool is_scalar(const BlockInput& input) const {
    return (input.row_stride == 0 || rows_ == 1) && (input.column_stride == 0 || columns_ == 1);
  }
  // Whether the block is one run of contiguous elements in every view.
  bool is_dense() const {
    if (rows_ == 1) return true;
    for (int i = 0; i < program_.num_inputs(); ++i)
      if (program_.uses_input(i) && !is_scalar(inputs_[i]) &&
          (inputs_[i].column_stride != 1 || inputs_[i].row_stride != columns_))
        return false;
    for (int i = 0; i < program_.num_outputs(); ++i)
      if (outputs_[i].column_stride != 1 || outputs_[i].row_stride != columns_) return false;
    return true;
  }

  // Reading against the memory order, a square-like chunk uses whole cache lines.
  bool has_transposed() const {
    if (rows_ == 1) return false;
    for (int i = 0; i < program_.num_inputs(); ++i)
      if (program_.uses_input(i) && inputs_[i].column_stride != 1 && inputs_[i].column_stride != 0) return true;
    for (int i = 0; i < program_.num_outputs(); ++i)
      if (outputs_[i].column_stride != 1) return true;
    return false;
  }
  // Whether the elements of each chunk lie one after the other.
  bool dense_chunks(int64_t row_stride, int64_t column_stride) const {
    return column_stride == 1 && (chunk_rows_ == 1 || (row_stride == columns_ && chunk_columns_ == columns_));
  }

  void divide_scratch() {
    float* next = scratch_;
    for (int i = 0; i < program_.num_slots(); ++i, next += kBlockFloats) slots_[i] = next;
    const int views = program_.num_inputs() + program_.num_outputs();
    stages_ = next;
    tails_ = stages_ + views * kBlockFloats;
    scalars_ = tails_ + views * kMaxLanes;
  }

  void classify() {
    for (int i = 0; i < program_.num_inputs(); ++i) {
      const BlockInput& input = inputs_[i];
      if (!program_.uses_input(i)) {
        access_[i] = Access::unused;
      } else if (is_scalar(input)) {
        access_[i] = Access::scalar;
        float value;
        gather_one(&value, input);
        store(scalars_ + i * kMaxLanes, broadcast(value));
      } else {
        const bool in_place = input.type == DType::f32 && dense_chunks(input.row_stride, input.column_stride);
        access_[i] = in_place ? Access::direct : Access::staged;
      }
      table_.increments[i] = access_[i] == Access::scalar || access_[i] == Access::unused ? 0 : kLanes;
      table_.data[i] = scalars_ + i * kMaxLanes;
    }
    const int first_slot = program_.first_slot();
    for (int i = program_.num_inputs(); i < first_slot; ++i) {
      table_.data[i] = program_.constants().data() + (i - program_.num_inputs()) * kMaxLanes;
      table_.increments[i] = 0;
    }
    for (int i = 0; i < program_.num_slots(); ++i) table_.increments[first_slot + i] = kLanes;
    // With several outputs, storing one early could overwrite an input that another still needs.
    direct_output_ = program_.num_outputs() == 1 && outputs_[0].type == DType::f32 &&
                     dense_chunks(outputs_[0].row_stride, outputs_[0].column_stride);
  }

  float* stage(int i) { return stages_ + i * kBlockFloats; }

  void run_chunk(int64_t r, int64_t c, int rows, int columns) {
    for (int i = 0; i < program_.num_inputs(); ++i) {
      const BlockInput& input = inputs_[i];
      const void* source = element_of(input.data, input.type, r * input.row_stride + c * input.column_stride);
      if (access_[i] == Access::direct) {
        table_.data[i] = static_cast<const float*>(source);
      } else if (access_[i] == Access::staged) {
        // A view that repeats with the rows is the same in each chunk of full rows.
        const bool repeats = input.row_stride == 0 && chunk_columns_ == columns_;
        if (!repeats || r == 0)
          gather(stage(i), {source, input.row_stride, input.column_stride, input.type}, rows, columns);
        table_.data[i] = stage(i);
      }
    }
    const int n = rows * columns, full = n / kLanes * kLanes;
    float* direct = direct_output_ ? static_cast<float*>(outputs_[0].data) + r * outputs_[0].row_stride + c : nullptr;
    if (full > 0) run_part(0, full, direct);
    if (full < n) run_tail(full, n - full, direct);
    if (direct) return;
    const int first_slot = program_.first_slot();
    for (int i = 0; i < program_.num_outputs(); ++i) {
      const BlockOutput& output = outputs_[i];
      scatter({element_of(output.data, output.type, r * output.row_stride + c * output.column_stride),
               output.row_stride, output.column_stride, output.type},
              slots_[program_.outputs()[static_cast<size_t>(i)] - first_slot], rows, columns);
    }
  }

  // Elements [begin, begin + n) of the chunk, through slots at the same offset.
  void run_part(int begin, int n, float* direct) {
    const int first_slot = program_.first_slot();
    float* targets[kMaxProgramCode + kMaxProgramOutputs];
    for (int i = 0; i < program_.num_slots(); ++i) targets[i] = slots_[i] + begin;
    if (direct) targets[program_.outputs()[0] - first_slot] = direct;
    for (int i = 0; i < program_.num_slots(); ++i) table_.data[first_slot + i] = targets[i];
    run_steps(program_, table_, targets, n);
  }

  // The last, partial vector. Memory of others is read and written through full vectors of our own.
  void run_tail(int begin, int n, float* direct) {
    for (int i = 0; i < program_.num_inputs(); ++i) {
      float* tail = tails_ + i * kMaxLanes;
      if (access_[i] == Access::direct || access_[i] == Access::staged) {
        store(tail, load_tail(table_.data[i] + begin, n));
        table_.data[i] = tail;
      }
    }
    float* out = tails_ + program_.num_inputs() * kMaxLanes;
    run_part(begin, kLanes, direct ? out : nullptr);
    if (direct) store_tail(direct + begin, n, load(out));
  }

  const BlockProgram& program_;
  int64_t rows_, columns_;
  int chunk_rows_ = 1, chunk_columns_ = 1;
  bool direct_output_ = false;
  float *scratch_, *stages_ = nullptr, *tails_ = nullptr, *scalars_ = nullptr;
  float* slots_[kMaxProgramCode + kMaxProgramOutputs];
  BlockInput inputs_[kMaxProgramInputs];
  BlockOutput outputs_[kMaxProgramOutputs];
  Access access_[kMaxProgramInputs];
  Operands table_;
};

}  // namespace

void run_program_block(const BlockProgram& program, int64_t rows, int64_t columns, const BlockInput* inputs,
                       const BlockOutput* outputs, float* scratch) {
  if (rows <= 0 || columns <= 0) return;
  Runner(program, rows, columns, inputs, outputs, scratch).run();
}

}  // namespace lathe::cpu::LATHE_ISA
