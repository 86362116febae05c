// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/divide.h"
#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/gemm/integer_panels.h"
#include "kernels/cpu/gemm/matrices.h"
#include "kernels/cpu/gemm/row_map.h"
#include "kernels/cpu/gemm_integer/gemm_integer.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/workspace_parts.h"

namespace lathe::cpu {
namespace {

using namespace gemm;

// What one product reads and writes: whole tensors, or a matrix of each.
struct Product {
  TensorArg a, out;
  std::span<const TensorArg> operands;
  const int32_t* packed;
  const int32_t* flipped;  // see bind_integer_epilogue()
};

class IntegerRows final : public RowSource {
 public:
  IntegerRows(const Product& product, const BoundEpilogue& epilogue, const Tap* taps)
      : a_(product.a), out_(product.out), epilogue_(epilogue), taps_(taps) {
    map_.streams = 2 + epilogue.count;
    for (int d = 0; d < out_.rank - 1; ++d) {
      map_.add_dim(out_.dims[d]);
      map_.set_stride(0, d, broadcast_stride_at(a_, d, out_.rank));
      map_.set_stride(1, d, out_.strides[d]);
      for (int i = 0; i < epilogue.count; ++i) map_.set_stride(2 + i, d, broadcast_stride(product.operands[i], d));
    }
    map_.collapse();
  }

  TileTaps fill(int64_t first, int count, TileScratch& scratch) const override {
    map_.fill(first, count, [&](int stream, int row, int64_t offset) {
      if (stream == 0) {
        scratch.a_rows[row] = element_at(a_.data, offset, 1);
      } else if (stream == 1) {
        scratch.where.out[row] = element_at(out_.data, offset, out_size_);
      } else if (const EpilogueOperand& operand = epilogue_.operands[stream - 2]; operand.varies_by_row) {
        scratch.where.operand[stream - 2][row] = element_at(operand.data, offset, operand.size);
      }
    });
    return {scratch.a_rows, taps_};
  }

 private:
  const TensorArg a_, out_;
  const size_t out_size_ = size_of(out_.dtype);
  const BoundEpilogue& epilogue_;
  const Tap* taps_;
  RowMap<2 + kMaxEpilogueOperands> map_;
};

// Offsets into the workspace.
struct Layout {
  size_t taps, epilogue, b, a, threads, total;
};

class GemmInteger final : public Kernel {
 public:
  GemmInteger(const IntegerGemmParams& params, IntegerProgram program)
      : packed_(params.packed),
        weights_{params.k / 4, params.n, params.blocking.width},
        blocking_(params.blocking),
        program_(std::move(program)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return layout(inputs, outputs[0], threads).total;
  }
  void run(const Launch& launch) const override;

 private:
  // Four by four along K. Weights that were packed while building have the record's sizes, others their own.
  Panels fours_of(const TensorArg& a, const TensorArg& out) const {
    return packed_ ? weights_
                   : Panels{ceil_div(a.dims[a.rank - 1], 4), out.dims[out.rank - 1], static_cast<int>(blocking_.width)};
  }
  bool repacks(const TensorArg& a) const {
    return !packed_ && (a.strides[a.rank - 1] != 1 || a.dims[a.rank - 1] % 4 != 0);
  }
  Needs needs(int64_t fours) const {
    const int64_t block = blocking_.k_block;
    return {1, block && fours > block ? ceil_div(fours, block) : 1, 0, true};
  }
  Layout layout(std::span<const TensorArg> inputs, const TensorArg& out, int threads) const;
  void multiply(const Launch& launch, const Product& product, const Layout& where) const;
  void multiply_computed(const Launch& launch, const TensorArg& a, const Layout& where) const;

  bool packed_;
  Panels weights_;  // only the width where they are not packed
  Blocking blocking_;
  IntegerProgram program_;
};

Result<> GemmInteger::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed,
                "gemm_integer has {} inputs and {} outputs; it takes A, B and gives one output", inputs.size(),
                outputs.size());
  const TensorArg &a = inputs[0], &b = inputs[1], &out = outputs[0];
  if (!is_byte_integer(a.dtype) || (packed_ ? b.dtype != DType::i32 : !is_byte_integer(b.dtype)))
    return fail(ErrorCode::type_mismatch, "gemm_integer multiplies 8-bit integers, A is {} and B {}", name_of(a.dtype),
                name_of(b.dtype));
  const int r = out.rank;
  if (a.rank < 2 || r < 2) return fail(ErrorCode::shape_mismatch, "gemm_integer: A or the output is no matrix");
  const Panels fours = fours_of(a, out);
  const int64_t k = packed_ ? 4 * fours.k : a.dims[a.rank - 1];
  const bool fits = is_matrix_of(a, out, out.dims[r - 2], k) && out.dims[r - 1] == fours.n &&
                    (out.strides[r - 1] == 1 || fours.n == 1) && k <= INT32_MAX &&
                    (packed_ ? a.strides[a.rank - 1] == 1 && b.rank == 1 && b.dims[0] >= packed_integers(fours, 1) &&
                                   (b.strides[0] == 1 || b.dims[0] == 1)
                             : is_matrix_of(b, out, k, fours.n));
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "gemm_integer: A, B and the output do not fit K {} and N {}", k, fours.n);
  const bool is_one_product = packed_ || leading(b) == 1;  // else each matrix of B is one by itself
  return check_integer_epilogue(program_, inputs.subspan(2), out, r - 1, is_one_product ? 0 : r - 2);
}

Layout GemmInteger::layout(std::span<const TensorArg> inputs, const TensorArg& out, int threads) const {
  const TensorArg& a = inputs[0];
  const Panels fours = fours_of(a, out);
  Layout where{};
  WorkspaceParts parts;
  where.taps = parts.take(needs(fours.k).taps * static_cast<int64_t>(sizeof(Tap)));
  where.epilogue = parts.take(static_cast<int64_t>(integer_scratch_bytes(fours.n, program_.operand_types.size())));
  where.b = parts.take(packed_ ? 0 : packed_integers(fours, 1) * static_cast<int64_t>(sizeof(int32_t)));
  where.a = parts.take(repacks(a) ? leading(a) * a.dims[a.rank - 2] * fours.k * 4 : 0);
  where.threads = parts.bytes();
  const int64_t rows = out.dims[out.rank - 2] * leading(out);
  where.total = parts.bytes() + scratch_bytes(blocking_, rows, fours.k, needs(fours.k)) * static_cast<size_t>(threads);
  return where;
}

// A with its K contiguous, in whole fours. What they lack counts as 0, which is 128 once A is u8.
TensorArg repack(const TensorArg& a, std::byte* to, ThreadPool& pool) {
  TensorArg whole = a;
  whole.data = to;
  int64_t stride = round_up(a.dims[a.rank - 1], 4);
  std::memset(to, a.dtype == DType::i8 ? 0x80 : 0, static_cast<size_t>(leading(a) * a.dims[a.rank - 2] * stride));
  whole.strides[a.rank - 1] = 1;
  for (int d = a.rank - 2; d >= 0; --d) {
    whole.strides[d] = stride;
    stride *= a.dims[d];
  }
  copy_tensor(whole, a, pool);
  return whole;
}

void GemmInteger::run(const Launch& launch) const {
  const TensorArg& out = launch.outputs[0];
  if (out.volume() == 0) return;
  TensorArg a = launch.inputs[0];
  const Panels fours = fours_of(a, out);
  const Layout where = layout(launch.inputs, out, launch.pool.size());
  auto* taps = reinterpret_cast<Tap*>(launch.workspace + where.taps);
  const int64_t count = needs(fours.k).taps, block = count == 1 ? fours.k : blocking_.k_block;
  for (int64_t t = 0; t < count; ++t)
    taps[t] = {t * block, t * block, static_cast<int32_t>(std::min(block, fours.k - t * block)), 0};
  if (repacks(a)) a = repack(a, launch.workspace + where.a, launch.pool);
  if (!packed_) return multiply_computed(launch, a, where);
  const int32_t* packed = launch.inputs[1].as<int32_t>();
  multiply(launch, {a, out, launch.inputs.subspan(2), packed, a.dtype == DType::i8 ? packed + fours.floats() : nullptr},
           where);
}

// A matrix of B at a time is packed; one that all matrices of A share, once.
void GemmInteger::multiply_computed(const Launch& launch, const TensorArg& a, const Layout& where) const {
  const TensorArg &b = launch.inputs[1], &out = launch.outputs[0];
  const auto operands = launch.inputs.subspan(2);
  const Panels fours = fours_of(launch.inputs[0], out);
  auto* packed = reinterpret_cast<int32_t*>(launch.workspace + where.b);
  int32_t* sums = a.dtype == DType::i8 ? packed + fours.floats() : nullptr;
  const auto pack = [&](const TensorArg& matrix) {
    const bool is_unsigned = b.dtype == DType::u8;
    const IntegerRowsOfB rows{matrix.as<std::byte>(), matrix.dims[0], matrix.strides[0], matrix.strides[1],
                              is_unsigned};
    if (sums)
      std::fill_n(sums, fours.n, is_unsigned ? static_cast<int32_t>(static_cast<uint32_t>(rows.rows) * 128 * 128) : 0);
    launch.pool.parallel_for(fours.count(), 1, [&](int64_t first, int64_t last, int) {
      for (int64_t p = first; p < last; ++p)
        pack_fours(fours, p, 0, rows, packed, sums ? sums + p * fours.width : sums);
    });
  };
  if (leading(b) == 1) {
    pack(matrix_of(b, out, 0));
    return multiply(launch, {a, out, operands, packed, sums}, where);
  }
  for (int64_t m = 0; m < leading(out); ++m) {
    pack(matrix_of(b, out, m));
    TensorArg own[kMaxEpilogueOperands];
    for (size_t i = 0; i < operands.size(); ++i) own[i] = matrix_of(operands[i], out, m);
    multiply(launch, {matrix_of(a, out, m), matrix_of(out, out, m), {own, operands.size()}, packed, sums}, where);
  }
}

void GemmInteger::multiply(const Launch& launch, const Product& product, const Layout& where) const {
  const Panels fours = fours_of(launch.inputs[0], product.out);
  const auto* taps = reinterpret_cast<const Tap*>(launch.workspace + where.taps);
  IntegerEpilogue epilogue = bind_integer_epilogue(program_, product.operands, product.out, product.out.rank - 1,
                                                   product.flipped, launch.workspace + where.epilogue);
  if (launch.inputs[1].dtype == DType::u8) epilogue.row_factor = 128;
  const IntegerRows rows(product, epilogue.middle, taps);
  GemmProblem problem;
  problem.rows = product.out.volume() / fours.n;
  problem.panels = fours;
  problem.packed = reinterpret_cast<const float*>(product.packed);
  problem.taps = taps;
  problem.needs = needs(fours.k);
  problem.blocking = blocking_;
  problem.epilogue = &epilogue.middle;
  problem.integers = &epilogue;
  problem.source = &rows;
  run_problem(problem, launch.workspace + where.threads, launch.pool);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_gemm_integer(const Record& record) {
  const auto params = decode_counts<IntegerGemmParams>(record.params);
  if (!params) return refuse_params("gemm_integer");
  const auto& [k, n, blocking, types, packed] = *params;
  constexpr double kMaxBytes = 1e12;
  if (!valid(blocking) || (packed ? k < 4 || k % 4 != 0 || n < 1 : k != 0 || n != 0) ||
      static_cast<double>(k) * static_cast<double>(n + 16) > kMaxBytes)
    return refuse_params("gemm_integer");
  LATHE_ASSIGN(IntegerProgram program, compile_integer_epilogue(record.program, types));
  return std::unique_ptr<Kernel>(new GemmInteger(*params, std::move(program)));
}

}  // namespace lathe::cpu
