// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "base/divide.h"
#include "base/scalars.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu {
namespace {

using namespace elementwise;

constexpr size_t kMaxInputs = 3;

bool is_quantization(Function function) { return function == Function::quantize || function == Function::dequantize; }

uint32_t traits_of(Function function) {
  switch (function) {
#define LATHE_UNARY(name, traits, formula, integers) \
  case Function::name:                               \
    return traits;
#define LATHE_BINARY(name, traits, formula, integers) \
  case Function::name:                                \
    return traits;
#define LATHE_ACTIVATION(name, parameters, formula) case Function::name:
#include "base/scalars.def"
    case Function::prelu:
      return kReals;
    case Function::cast:
      return kNumbers | kBooleans;
    case Function::clip_integers:
      return kIntegers;
    default:
      return 0;
  }
}

bool has(Function function, uint32_t traits) { return (traits_of(function) & traits) != 0; }

// The lane of the inputs; nothing when the function does not take their types.
std::optional<Lane> lane_of(Function function, std::span<const TensorArg> inputs, DType to) {
  if (function == Function::quantize) return inputs[0].dtype == DType::f64 ? Lane::f64 : Lane::f32;
  if (function == Function::dequantize) {  // products are rounded once
    const bool exact = size_of(inputs[0].dtype) <= 2 && inputs[1].dtype == DType::f32 && to == DType::f32;
    return exact ? Lane::f32 : Lane::f64;
  }
  bool floating = false, wide = false;
  for (const TensorArg& input : inputs) {
    floating |= is_floating(input.dtype);
    wide |= input.dtype == DType::f64;
  }
  if (!floating) {
    if (!has(function, kIntegers | kBooleans)) return std::nullopt;
    return inputs[0].dtype == DType::u64 ? Lane::u64 : Lane::i64;
  }
  if (!has(function, kReals)) return std::nullopt;
  const bool mixed = inputs.size() == 2 && inputs[0].dtype != inputs[1].dtype;
  if (mixed && function != Function::pow) return std::nullopt;
  const bool in_f32 = function == Function::cast ? is_floating(to) : has(function, kExact);
  return in_f32 && !wide ? Lane::f32 : Lane::f64;
}

class ElementwiseKernel final : public Kernel {
 public:
  ElementwiseKernel(Function function, int64_t x, int64_t y) : function_(function), x_(x), y_(y) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  void run(const Launch& launch) const override;

 private:
  Result<> check_types(std::span<const TensorArg> inputs, DType to) const;

  const Function function_;
  const int64_t x_, y_;
};

Result<> ElementwiseKernel::check_types(std::span<const TensorArg> inputs, DType to) const {
  const auto refuse = [&] {
    return fail(ErrorCode::type_mismatch, "elementwise: function {} does not make {} of {}",
                static_cast<int64_t>(function_), name_of(to), name_of(inputs.back().dtype));
  };
  if (function_ == Function::select) {
    const bool fits = inputs[0].dtype == DType::boolean && inputs[1].dtype == to && inputs[2].dtype == to;
    return fits ? Result<>() : refuse();
  }
  if (is_quantization(function_)) {
    const bool down = function_ == Function::quantize;
    const DType from = inputs[0].dtype, levels = down ? to : from;
    const bool fits = is_integer(levels) && size_of(levels) <= (down ? 2 : 4) && is_floating(inputs[1].dtype) &&
                      (down ? inputs[1].dtype == from : is_floating(to)) &&
                      (inputs.size() < 3 || inputs[2].dtype == levels);
    return fits ? Result<>() : refuse();
  }
  const std::optional<Lane> lane = lane_of(function_, inputs, to);
  if (!lane) return refuse();
  const DType wanted = has(function_, kTruth) ? DType::boolean : inputs[0].dtype;
  if (function_ != Function::cast && to != wanted) return refuse();
  if (function_ == Function::pow || inputs.size() < 2 || inputs[0].dtype == inputs[1].dtype) return {};
  return refuse();
}

Result<> ElementwiseKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const size_t most = inputs_of(function_), least = is_quantization(function_) ? most - 1 : most;
  if (inputs.size() < least || inputs.size() > most || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "elementwise: {} inputs and {} outputs given to function {}",
                inputs.size(), outputs.size(), static_cast<int64_t>(function_));
  for (const TensorArg& input : inputs)
    if (!broadcasts_to(input, outputs[0]))
      return fail(ErrorCode::shape_mismatch, "elementwise: an input does not broadcast to the output's shape");
  return check_types(inputs, outputs[0].dtype);
}

// Up to kBlock elements of one row.
struct Piece {
  const void* inputs[kMaxInputs] = {};
  void* output = nullptr;
  int64_t strides[1 + kMaxInputs] = {};  // of the output, then the inputs
  int64_t count = 0;
};

class Functions {
 public:
  Functions(const FunctionCall& call, std::span<const TensorArg> inputs, DType to)
      : call_(call), inputs_(inputs), to_(to) {}

  void run(const Piece& piece) const {
    static const auto load = LATHE_ISA_SELECT(load_elements);
    static const auto compute = LATHE_ISA_SELECT(compute_elements);
    static const auto store = LATHE_ISA_SELECT(store_elements);
    alignas(64) std::byte blocks[1 + kMaxInputs][kBlock * kLaneBytes];
    const void* lanes[kMaxInputs] = {};
    for (size_t i = 0; i < inputs_.size(); ++i)
      lanes[i] = load(inputs_[i].dtype, piece.inputs[i], piece.strides[1 + i], piece.count, call_.from, blocks[i]);
    if (call_.function != Function::cast) {
      compute(call_, lanes, piece.count, blocks[kMaxInputs]);
      lanes[0] = blocks[kMaxInputs];
    }
    store(call_.to, lanes[0], piece.count, to_, piece.output, piece.strides[0]);
  }

 private:
  const FunctionCall call_;
  const std::span<const TensorArg> inputs_;
  const DType to_;
};

// Each piece of the walk over the output.
template <class F>
void for_each_piece(const Launch& launch, F&& run) {
  const LoopNest nest = make_loop_nest(launch.outputs, launch.inputs);
  const int inner = nest.rank - 1;
  int64_t rows = 1;
  for (int d = 0; d < inner; ++d) rows *= nest.dims[d];
  const int64_t row = nest.dims[inner], pieces = ceil_div(row, kBlock);
  constexpr int64_t kMinTaskElements = 4096;  // about 5 us
  const int64_t grain = std::max<int64_t>(1, kMinTaskElements * pieces / row);
  launch.pool.parallel_for(rows * pieces, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % pieces * kBlock;
      int64_t offsets[1 + kMaxInputs];
      nest.offsets(inner, unit / pieces, offsets);
      Piece piece;
      piece.count = std::min<int64_t>(kBlock, row - first);
      const auto at = [&](const TensorArg& tensor, size_t k) {
        piece.strides[k] = nest.strides[k][inner];
        const int64_t offset = offsets[k] + first * piece.strides[k];
        return tensor.as<std::byte>() + offset * static_cast<int64_t>(size_of(tensor.dtype));
      };
      piece.output = at(launch.outputs[0], 0);
      for (size_t i = 0; i < launch.inputs.size(); ++i) piece.inputs[i] = at(launch.inputs[i], i + 1);
      run(piece);
    }
  });
}

void ElementwiseKernel::run(const Launch& launch) const {
  const TensorArg& output = launch.outputs[0];
  if (output.volume() == 0) return;
  if (function_ == Function::select) {
    static const auto select = LATHE_ISA_SELECT(select_elements);
    return for_each_piece(launch, [&](const Piece& piece) {
      select(size_of(output.dtype), piece.inputs, piece.output, piece.strides, piece.count);
    });
  }
  const Lane from = *lane_of(function_, launch.inputs, output.dtype);
  const int bits = static_cast<int>(size_of(launch.inputs[0].dtype)) * 8;
  const Functions functions(
      {function_, from, has(function_, kTruth) ? Lane::i64 : from, launch.inputs[0].dtype, bits, x_, y_}, launch.inputs,
      output.dtype);
  for_each_piece(launch, [&](const Piece& piece) { functions.run(piece); });
}

}  // namespace

namespace elementwise {

size_t inputs_of(Function function) {
  switch (function) {
#define LATHE_UNARY(name, traits, formula, integers) case Function::name:
#define LATHE_ACTIVATION(name, parameters, formula) case Function::name:
#include "base/scalars.def"
    case Function::cast:
    case Function::clip_integers:
      return 1;
#define LATHE_BINARY(name, traits, formula, integers) case Function::name:
#include "base/scalars.def"
    case Function::prelu:
      return 2;
    case Function::select:
    case Function::quantize:
    case Function::dequantize:
      return 3;
    case Function::constant:
    case Function::fma:
      return 0;  // of fusion programs only
  }
  return 0;
}

}  // namespace elementwise

Result<std::unique_ptr<Kernel>> make_elementwise(const Record& record) {
  const std::optional<ElementwiseParams> params = decode_params<ElementwiseParams>(record.params);
  if (record.program || !params || inputs_of(params->function) == 0) return refuse_params("elementwise");
  return std::make_unique<ElementwiseKernel>(params->function, params->x, params->y);
}

}  // namespace lathe::cpu
