// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "kernels/cpu/conv/even_rows.h"
#include "kernels/cpu/conv_integer/conv_integer.h"
#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/gemm/integer_panels.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using namespace conv;

// x with its channels four by four, as floats.
TensorArg in_fours(const TensorArg& x) {
  TensorArg fours = x;
  fours.dtype = DType::f32;
  fours.dims[1] = x.dims[1] / 4;
  for (int d = 0; d < x.rank; ++d)
    if (d != 1) fours.strides[d] = x.strides[d] / 4;
  return fours;
}

class ConvInteger final : public Kernel {
 public:
  // The shape and the configuration count in fours of input channels.
  ConvInteger(const ConvIntegerParams& params, gemm::IntegerProgram program)
      : shape_(params.conv.shape), config_(params.conv.config), packed_(params.packed), program_(std::move(program)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override;
  void run(const Launch& launch) const override;

 private:
  gemm::Panels panels() const {
    return {shape_.volume() * shape_.group_inputs(), shape_.group_outputs(), config_.blocking.width};
  }
  static size_t rounded(int64_t bytes) { return static_cast<size_t>((bytes + 63) / 64 * 64); }
  // How a launch reads x: as it lies, or a copy.
  struct Reading {
    Geometry geometry;
    std::optional<EvenImage> image;
    gemm::Needs needs;
    int64_t rows;
  };
  void read(const TensorArg& x, const TensorArg& weights, const TensorArg& out, Reading& reading) const;
  size_t tap_bytes() const { return rounded(needs_of(shape_, config_).taps * static_cast<int64_t>(sizeof(gemm::Tap))); }
  size_t zero_bytes() const { return rounded(shape_.in_channels * 4); }
  size_t packed_at() const {
    return tap_bytes() + zero_bytes() + gemm::integer_scratch_bytes(shape_.out_channels, program_.operand_types.size());
  }
  size_t start_bytes() const {
    return packed_at() + (packed_ ? 0 : rounded(gemm::packed_integers(panels(), shape_.groups) * 4));
  }
  const int32_t* pack(const Launch& launch) const;

  ConvShape shape_;
  ConvConfig config_;
  bool packed_;
  gemm::IntegerProgram program_;
};

Result<> ConvInteger::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed,
                "conv_integer has {} inputs and {} outputs; it takes x, weights and gives one output", inputs.size(),
                outputs.size());
  const TensorArg &x = inputs[0], &weights = inputs[1], &out = outputs[0];
  if (!is_byte_integer(x.dtype) || (packed_ ? weights.dtype != DType::i32 : !is_byte_integer(weights.dtype)))
    return fail(ErrorCode::type_mismatch, "conv_integer multiplies 8-bit integers, x is {} and the weights {}",
                name_of(x.dtype), name_of(weights.dtype));
  const int rank = 2 + shape_.spatial;
  bool fits = x.rank == rank && out.rank == rank && x.dims[0] == out.dims[0] && x.dims[1] == 4 * shape_.in_channels &&
              out.dims[1] == shape_.out_channels && x.strides[1] == 1 && (out.strides[1] == 1 || out.dims[1] == 1) &&
              (packed_ ? weights.rank == 1 && weights.dims[0] >= gemm::packed_integers(panels(), shape_.groups)
                       : are_weights(shape_, weights, 4 * shape_.group_inputs()));
  for (int d = 0; fits && d < rank; ++d) fits = d == 1 || x.dims[d] == 1 || x.strides[d] % 4 == 0;
  if (!fits)
    return fail(ErrorCode::shape_mismatch,
                "conv_integer: x, weights and the output do not fit {} input and {} output channels, channels last",
                4 * shape_.in_channels, shape_.out_channels);
  return gemm::check_integer_epilogue(program_, inputs.subspan(2), out, 1);
}

// Where the pixels of a kernel's row lie one after the other, the row is one tap of as many channels more.
void ConvInteger::read(const TensorArg& x, const TensorArg& weights, const TensorArg& out, Reading& reading) const {
  Geometry& geometry = reading.geometry = geometry_of(shape_, x, out);
  ConvShape& shape = geometry.shape;
  const bool pads = std::ranges::all_of(shape.pad, [](int64_t pad) { return pad >= 0; });
  if (gemm::has_matrix_tiles(panels().k) && weights.dtype != DType::u8 && pads && !geometry.contiguous()) {
    reading.image.emplace(geometry);
    reading.needs = reading.image->needs(config_);
    reading.rows = reading.image->rows();
    return;
  }
  if (shape.groups == 1 && shape.dilation[2] == 1 && geometry.in_stride[2] == shape.in_channels && !geometry.padded())
    shape.in_channels *= std::exchange(shape.kernel[2], 1);
  reading.needs = needs_of(shape, config_);
  reading.needs.is_narrow = true;
  reading.needs.is_even = geometry.contiguous();
  reading.rows = geometry.rows();
}

size_t ConvInteger::workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                                    int threads) const {
  Reading reading;
  read(in_fours(inputs[0]), inputs[1], outputs[0], reading);
  return start_bytes() + rounded(reading.image ? reading.image->floats() * 4 : 0) +
         gemm::scratch_bytes(config_.blocking, reading.rows, panels().k, reading.needs) * static_cast<size_t>(threads);
}

// Weights [O, C / groups, kernel...], and 128 times their sums behind them.
const int32_t* ConvInteger::pack(const Launch& launch) const {
  const TensorArg &x = launch.inputs[0], &w = launch.inputs[1];
  auto* packed = reinterpret_cast<int32_t*>(launch.workspace + packed_at());
  const gemm::Panels fours = panels();
  int32_t* sums = packed + fours.floats() * shape_.groups;
  const bool is_unsigned = w.dtype == DType::u8, sums_matter = x.dtype == DType::i8;
  const auto depth = static_cast<uint32_t>(4 * fours.k);
  std::fill_n(sums, shape_.out_channels, is_unsigned ? static_cast<int32_t>(depth * 128 * 128) : 0);
  launch.pool.parallel_for(shape_.groups * fours.count(), 1, [&](int64_t first, int64_t last, int) {
    for (int64_t p = first; p < last; ++p) {
      const int64_t group = p / fours.count(), panel = p % fours.count();
      const int64_t column = group * fours.n;
      for (int64_t t = 0; t < shape_.volume(); ++t)
        pack_fours(fours, panel, t * shape_.group_inputs(),
                   {w.as<std::byte>() + column * w.strides[0] + tap_offset(shape_, w, t), 4 * shape_.group_inputs(),
                    w.strides[1], w.strides[0], is_unsigned},
                   packed + group * fours.floats(), sums_matter ? sums + column + panel * fours.width : nullptr);
    }
  });
  return packed;
}

void ConvInteger::run(const Launch& launch) const {
  const TensorArg x = in_fours(launch.inputs[0]), &out = launch.outputs[0];
  if (out.volume() == 0) return;
  const auto operands = launch.inputs.subspan(2);
  Reading reading;
  read(x, launch.inputs[1], out, reading);
  const Geometry& geometry = reading.geometry;
  auto* taps = reinterpret_cast<gemm::Tap*>(launch.workspace);
  auto* zeros = reinterpret_cast<float*>(launch.workspace + tap_bytes());
  std::memset(zeros, 0, zero_bytes());
  const int32_t* packed = packed_ ? launch.inputs[1].as<int32_t>() : pack(launch);
  const int32_t* flipped = launch.inputs[0].dtype == DType::i8 ? packed + panels().floats() * shape_.groups : nullptr;
  gemm::IntegerEpilogue epilogue =
      gemm::bind_integer_epilogue(program_, operands, out, 1, flipped, launch.workspace + tap_bytes() + zero_bytes());
  if (launch.inputs[1].dtype == DType::u8) epilogue.row_factor = 128;
  const OutputRows rows(geometry, out, epilogue.middle, operands);
  std::byte* next = launch.workspace + start_bytes();
  std::optional<PixelRows> pixels;
  std::optional<EvenRows> steps;
  gemm::GemmProblem problem;
  if (reading.image) {
    auto* copy = reinterpret_cast<float*>(next);
    next += rounded(reading.image->floats() * 4);
    reading.image->write_taps(config_, taps);
    reading.image->copy(x.as<float>(), copy, launch.pool);
    problem.source = &steps.emplace(*reading.image, copy, taps, rows);
  } else {
    write_taps(geometry, config_, taps);
    pixels.emplace(geometry, config_, reading.needs, taps, zeros, x.as<float>(), rows);
    if (flipped) pixels->keep_outside();  // where they are 128, which the sums of the weights take off
    problem.source = &*pixels;
    problem.row_unit = config_.row_aligned && !gemm::has_matrix_tiles(panels().k) ? geometry.out[2] : 0;
  }
  problem.rows = reading.rows;
  problem.groups = shape_.groups;
  problem.group_input = geometry.shape.group_inputs();
  problem.panels = panels();
  problem.packed = reinterpret_cast<const float*>(packed);
  problem.taps = taps;
  problem.needs = reading.needs;
  problem.blocking = config_.blocking;
  problem.epilogue = &epilogue.middle;
  problem.integers = &epilogue;
  gemm::run_problem(problem, next, launch.pool);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_conv_integer(const Record& record) {
  const auto params = decode_counts<ConvIntegerParams>(record.params);
  if (!params || !is_valid(params->conv) || params->conv.config.algorithm != Algorithm::direct)
    return refuse_params("conv_integer");
  LATHE_ASSIGN(gemm::IntegerProgram program, gemm::compile_integer_epilogue(record.program, params->types));
  return std::unique_ptr<Kernel>(new ConvInteger(*params, std::move(program)));
}

}  // namespace lathe::cpu
