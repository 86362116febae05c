// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/gemm/integer_panels.h"
#include "kernels/cpu/gemm/row_map.h"
#include "kernels/cpu/gemm_integer/gemm_integer.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using namespace gemm;

class IntegerRows final : public RowSource {
 public:
  IntegerRows(const TensorArg& a, const TensorArg& out, std::span<const TensorArg> operands,
              const BoundEpilogue& epilogue, const Tap* taps)
      : a_(a), out_(out), epilogue_(epilogue), taps_(taps) {
    map_.streams = 2 + epilogue.count;
    for (int d = 0; d < out.rank - 1; ++d) {
      map_.add_dim(out.dims[d]);
      map_.set_stride(0, d, a.strides[d]);
      map_.set_stride(1, d, out.strides[d]);
      for (int i = 0; i < epilogue.count; ++i) map_.set_stride(2 + i, d, broadcast_stride(operands[i], d));
    }
    map_.collapse();
  }

  TileTaps fill(int64_t first, int count, TileScratch& scratch) const override {
    map_.fill(first, count, [&](int stream, int row, int64_t offset) {
      if (stream == 0) {
        scratch.a_rows[row] = element_at(a_.data, offset, 1);
      } else if (stream == 1) {
        scratch.where.out[row] = element_at(out_.data, offset, size_of(out_.dtype));
      } else if (const EpilogueOperand& operand = epilogue_.operands[stream - 2]; operand.varies_by_row) {
        scratch.where.operand[stream - 2][row] = element_at(operand.data, offset, operand.size);
      }
    });
    return {scratch.a_rows, taps_};
  }

 private:
  const TensorArg& a_;
  const TensorArg& out_;
  const BoundEpilogue& epilogue_;
  const Tap* taps_;
  RowMap<2 + kMaxEpilogueOperands> map_;
};

class GemmInteger final : public Kernel {
 public:
  GemmInteger(const Panels& fours, const Blocking& blocking, IntegerProgram program)
      : fours_(fours), blocking_(blocking), program_(std::move(program)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() < 2 || outputs.size() != 1)
      return fail(ErrorCode::plan_malformed,
                  "gemm_integer has {} inputs and {} outputs; it takes A, B and gives one output", inputs.size(),
                  outputs.size());
    const TensorArg &a = inputs[0], &b = inputs[1], &out = outputs[0];
    if ((a.dtype != DType::u8 && a.dtype != DType::i8) || b.dtype != DType::i32)
      return fail(ErrorCode::type_mismatch, "gemm_integer multiplies 8-bit integers, A is {}", name_of(a.dtype));
    const int r = out.rank;
    bool fits = r >= 2 && a.rank == r && a.dims[r - 1] == 4 * fours_.k && out.dims[r - 1] == fours_.n &&
                a.strides[r - 1] == 1 && (out.strides[r - 1] == 1 || fours_.n == 1) && b.rank == 1 &&
                b.dims[0] >= packed_integers(fours_, 1) && (b.strides[0] == 1 || b.dims[0] == 1);
    for (int d = 0; fits && d < r - 1; ++d) fits = a.dims[d] == out.dims[d];
    if (!fits)
      return fail(ErrorCode::shape_mismatch, "gemm_integer: A, B and the output do not fit K {} and N {}", 4 * fours_.k,
                  fours_.n);
    return check_integer_epilogue(program_, inputs.subspan(2), out, r - 1);
  }
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg> outputs, int threads) const override {
    const TensorArg& out = outputs[0];
    const int64_t rows = out.dims[out.rank - 1] ? out.volume() / out.dims[out.rank - 1] : 0;
    return start_bytes() + scratch_bytes(blocking_, rows, fours_.k, needs()) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override {
    const TensorArg &a = launch.inputs[0], &out = launch.outputs[0];
    if (out.volume() == 0) return;
    const auto operands = launch.inputs.subspan(2);
    auto* taps = reinterpret_cast<Tap*>(launch.workspace);
    const int64_t count = needs().taps, block = count == 1 ? fours_.k : blocking_.k_block;
    for (int64_t t = 0; t < count; ++t)
      taps[t] = {t * block, t * block, static_cast<int32_t>(std::min(block, fours_.k - t * block)), 0};
    const int32_t* packed = launch.inputs[1].as<int32_t>();
    const IntegerEpilogue epilogue = bind_integer_epilogue(program_, operands, out, out.rank - 1,
                                                           a.dtype == DType::i8 ? packed + fours_.floats() : nullptr,
                                                           launch.workspace + tap_bytes());
    const IntegerRows rows(a, out, operands, epilogue.middle, taps);
    Problem problem;
    problem.rows = out.volume() / fours_.n;
    problem.panels = fours_;
    problem.packed = reinterpret_cast<const float*>(packed);
    problem.taps = taps;
    problem.needs = needs();
    problem.blocking = blocking_;
    problem.epilogue = &epilogue.middle;
    problem.integers = &epilogue;
    problem.source = &rows;
    run_problem(problem, launch.workspace + start_bytes(), launch.pool);
  }

 private:
  Needs needs() const {
    const int64_t block = blocking_.k_block;
    return {1, block && fours_.k > block ? (fours_.k + block - 1) / block : 1, 0};
  }
  size_t tap_bytes() const { return (static_cast<size_t>(needs().taps) * sizeof(Tap) + 63) / 64 * 64; }
  size_t start_bytes() const { return tap_bytes() + integer_scratch_bytes(fours_.n, program_.operand_types.size()); }

  Panels fours_;
  Blocking blocking_;
  IntegerProgram program_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_gemm_integer(const Record& record) {
  const auto params = decode_counts<IntegerGemmParams>(record.params);
  if (!params) return refuse_params("gemm_integer");
  const auto& [k, n, blocking, types] = *params;
  constexpr double kMaxBytes = 1e12;
  if (!valid(blocking) || k < 4 || k % 4 != 0 || n < 1 ||
      static_cast<double>(k) * static_cast<double>(n + 16) > kMaxBytes)
    return refuse_params("gemm_integer");
  LATHE_ASSIGN(IntegerProgram program, compile_integer_epilogue(record.program, types));
  return std::unique_ptr<Kernel>(new GemmInteger({k / 4, n, blocking.width}, blocking, std::move(program)));
}

}  // namespace lathe::cpu
