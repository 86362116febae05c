// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/matrices.h"
#include "kernels/cpu/gemm/matrix_rows.h"
#include "kernels/cpu/gemm/pairs.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu {
namespace {

using namespace gemm;

// What a launch multiplies, and offsets into the workspace.
struct Layout {
  Panels panels;
  size_t taps, a, pairs, b, threads, total;
  bool in_blocks;  // the pairs
};

PairBlocks blocks_of(const TensorArg& a) { return {a.dims[a.rank - 2] * leading(a), a.dims[a.rank - 1]}; }

class GemmKernel final : public Kernel {
 public:
  GemmKernel(const GemmParams& params, Epilogue epilogue) : params_(params), epilogue_(std::move(epilogue)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return layout(inputs, outputs[0], threads).total;
  }
  void run(const Launch& launch) const override;

 private:
  // Weights that were packed while building have the record's sizes, others their own.
  int64_t k_of(const TensorArg& a) const { return params_.packed ? params_.k : a.dims[a.rank - 1]; }
  Panels panels_of(const TensorArg& a, const TensorArg& out) const {
    const int64_t k = k_of(a);
    return {params_.bf16 ? pairs_of(k) : k, params_.packed ? params_.n : out.dims[out.rank - 1], blocking_.width};
  }
  int64_t tap_count(int64_t k) const {
    return blocking_.k_block && k > blocking_.k_block ? ceil_div(k, blocking_.k_block) : 1;
  }
  Needs needs_of(int64_t k, bool is_narrow) const {
    return {.taps = tap_count(k), .is_narrow = is_narrow, .may_split = !params_.bf16};
  }
  // One B for all matrices: their rows are one long matrix.
  bool shares_b(const TensorArg& b) const { return params_.packed ? params_.batches == 1 : leading(b) == 1; }
  // Rows of A are the output's.
  bool takes_blocks(const TensorArg& a, const TensorArg& out) const {
    return has_matrix_registers() && blocking_.k_block % kMatrixRegisterRows == 0 && leading(a) == leading(out);
  }
  void pack_panels(const Panels& panels, const TensorArg& b, int64_t offset, int64_t first, int64_t last,
                   float* to) const;
  Layout layout(std::span<const TensorArg> inputs, const TensorArg& out, int threads) const;
  void write_taps(int64_t k, Tap* taps) const;
  GemmProblem problem_of(const Panels& panels, const Tap* taps, int64_t rows, const float* packed,
                         const BoundEpilogue& epilogue, const RowSource& source) const;
  void run_shared(const Launch& launch, const TensorArg& a, const Layout& where) const;
  void run_batch(const Launch& launch, const TensorArg& a, const Layout& where) const;

  const GemmParams params_;
  const Blocking& blocking_ = params_.blocking;
  const Epilogue epilogue_;
};

Result<> GemmKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed, "gemm has {} inputs and {} outputs; it takes A, B and gives one output",
                inputs.size(), outputs.size());
  const TensorArg &a = inputs[0], &b = inputs[1], &out = outputs[0];
  const DType b_type = params_.packed && params_.bf16 ? DType::bf16 : DType::f32;
  if (a.dtype != DType::f32 || b.dtype != b_type || out.dtype != DType::f32)
    return fail(ErrorCode::type_mismatch, "gemm takes f32 and {} and gives f32; A is {}, B {} and the output {}",
                name_of(b_type), name_of(a.dtype), name_of(b.dtype), name_of(out.dtype));
  if (a.rank < 2 || out.rank < 2) return fail(ErrorCode::shape_mismatch, "gemm: A or the output is no matrix");
  const int r = out.rank;
  const Panels panels = panels_of(a, out);
  const int64_t k = k_of(a), batches = params_.batches;
  if (!is_matrix_of(a, out, out.dims[r - 2], k) || out.dims[r - 1] != panels.n ||
      (out.strides[r - 1] != 1 && panels.n != 1) || k > INT32_MAX)
    return fail(ErrorCode::shape_mismatch, "gemm: A and the output do not fit K {} and N {}", k, panels.n);
  const int64_t elements = panels.floats() * batches * (params_.bf16 ? 2 : 1);
  const bool fits = params_.packed ? b.rank == 1 && (b.strides[0] == 1 || b.dims[0] == 1) && b.dims[0] >= elements &&
                                         (batches == 1 || batches == leading(out))
                                   : is_matrix_of(b, out, k, panels.n);
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "gemm: B does not fit K {}, N {} and the output's batch", k, panels.n);
  return check_epilogue(epilogue_, inputs.subspan(2), out);
}

Layout GemmKernel::layout(std::span<const TensorArg> inputs, const TensorArg& out, int threads) const {
  Layout where{};
  size_t next = 0;
  auto take = [&](int64_t bytes) {
    const size_t at = next;
    next += static_cast<size_t>(round_up(bytes, 64));
    return at;
  };
  constexpr int64_t kFloat = sizeof(float);
  const Panels panels = where.panels = panels_of(inputs[0], out);
  const int64_t taps = tap_count(panels.k);
  where.taps = take(taps * static_cast<int64_t>(sizeof(Tap)));
  const TensorArg& a = inputs[0];
  where.a = take(repacks(a) ? a.volume() * kFloat : 0);
  const int64_t rows_of_a = a.dims[a.rank - 2] * leading(a);
  where.in_blocks = params_.bf16 && shares_b(inputs[1]) && takes_blocks(a, out);
  where.pairs = take(where.in_blocks ? blocks_of(a).floats() * kFloat
                     : params_.bf16  ? rows_of_a * panels.k * kFloat
                                     : 0);
  const bool alone = !shares_b(inputs[1]) && leading(out) >= threads;
  where.b = take(params_.packed ? 0 : panels.floats() * kFloat * (alone ? threads : 1));
  where.threads = next;
  const int64_t rows = out.dims[out.rank - 2] * (shares_b(inputs[1]) ? leading(out) : 1);
  where.total = next + scratch_bytes(blocking_, rows, panels.k, needs_of(panels.k, params_.bf16 && !where.in_blocks)) *
                           static_cast<size_t>(threads);
  return where;
}

void GemmKernel::write_taps(int64_t k, Tap* taps) const {
  const int64_t count = tap_count(k), block = count == 1 ? k : blocking_.k_block;
  for (int64_t t = 0; t < count; ++t)
    taps[t] = {t * block, t * block, static_cast<int32_t>(std::min(block, k - t * block)), 0};
}

void GemmKernel::run(const Launch& launch) const {
  const TensorArg& out = launch.outputs[0];
  if (out.volume() == 0) return;
  const Layout where = layout(launch.inputs, out, launch.pool.size());
  TensorArg a = launch.inputs[0];
  write_taps(where.panels.k, reinterpret_cast<Tap*>(launch.workspace + where.taps));
  if (repacks(a)) a = repack(a, reinterpret_cast<float*>(launch.workspace + where.a), launch.pool);
  if (params_.bf16 && !where.in_blocks)
    a = in_pairs(a, reinterpret_cast<float*>(launch.workspace + where.pairs), launch.pool);
  if (shares_b(launch.inputs[1]))
    run_shared(launch, a, where);
  else
    run_batch(launch, a, where);
}

void GemmKernel::pack_panels(const Panels& panels, const TensorArg& b, int64_t offset, int64_t first, int64_t last,
                             float* to) const {
  const float* from = b.as<float>() + offset;
  const int64_t k_stride = b.strides[b.rank - 2], n_stride = b.strides[b.rank - 1];
  if (params_.bf16)
    pack_pairs(panels, b.dims[b.rank - 2], from, k_stride, n_stride, first, last, to);
  else
    pack(panels, from, k_stride, n_stride, first, last, to);
}

// The part of a problem that every launch shares.
GemmProblem GemmKernel::problem_of(const Panels& panels, const Tap* taps, int64_t rows, const float* packed,
                                   const BoundEpilogue& epilogue, const RowSource& source) const {
  GemmProblem problem;
  problem.rows = rows;
  problem.panels = panels;
  problem.packed = packed;
  problem.taps = taps;
  problem.needs = needs_of(panels.k, params_.bf16);
  problem.blocking = blocking_;
  problem.pairs = params_.bf16;
  problem.epilogue = &epilogue;
  problem.source = &source;
  return problem;
}

void GemmKernel::run_shared(const Launch& launch, const TensorArg& a, const Layout& where) const {
  const TensorArg &b = launch.inputs[1], &out = launch.outputs[0];
  const auto operands = launch.inputs.subspan(2);
  const Panels& panels = where.panels;
  const Tap* taps = reinterpret_cast<const Tap*>(launch.workspace + where.taps);
  const float* weights = b.as<float>();
  if (!params_.packed) {
    float* to = reinterpret_cast<float*>(launch.workspace + where.b);
    launch.pool.parallel_for(panels.count(), 1,
                             [&](int64_t first, int64_t last, int) { pack_panels(panels, b, 0, first, last, to); });
    weights = to;
  }
  const BoundEpilogue epilogue = bind_epilogue(epilogue_, operands, out, out.rank - 1);
  MatrixRows rows(a.as<float>(), out.as<float>(), epilogue, taps);
  rows.map_rows(a, out, operands);
  const int64_t count = out.dims[out.rank - 2] * leading(out);
  GemmProblem problem = problem_of(panels, taps, count, weights, epilogue, rows);
  const PairBlocks blocks = blocks_of(a);
  if (where.in_blocks) {
    auto* pairs = reinterpret_cast<float*>(launch.workspace + where.pairs);
    write_blocks(blocks, a, pairs, launch.pool);
    problem.blocks = &blocks;
    problem.a_blocks = pairs;
    problem.needs.is_narrow = false;
    problem.row_unit = 2 * blocks.height;
  }
  run_problem(problem, launch.workspace + where.threads, launch.pool);
}

void GemmKernel::run_batch(const Launch& launch, const TensorArg& a, const Layout& where) const {
  const TensorArg &b = launch.inputs[1], &out = launch.outputs[0];
  const auto operands = launch.inputs.subspan(2);
  const int r = out.rank;
  const Panels& panels = where.panels;
  const Tap* taps = reinterpret_cast<const Tap*>(launch.workspace + where.taps);
  const BoundEpilogue whole = bind_epilogue(epilogue_, operands, out, r - 1);
  const size_t stride = scratch_bytes(blocking_, out.dims[r - 2], panels.k, needs_of(panels.k, params_.bf16));
  auto multiply = [&](int64_t matrix, const float* weights, std::byte* scratch, bool alone) {
    BoundEpilogue epilogue = whole;
    for (int i = 0; i < epilogue.count; ++i) {
      epilogue.operands[i].data += matrix_offset(operands[i], out, matrix);
      if (operands[i].data == whole.bias) epilogue.bias = epilogue.operands[i].data;
    }
    MatrixRows rows(a.as<float>() + matrix_offset(a, out, matrix), out.as<float>() + matrix_offset(out, out, matrix),
                    epilogue, taps);
    rows.map.streams = 2 + epilogue.count;
    rows.map.add_dim(out.dims[r - 2]);
    rows.map.set_stride(0, 0, a.strides[a.rank - 2]);
    rows.map.set_stride(1, 0, out.strides[r - 2]);
    for (int i = 0; i < epilogue.count; ++i) rows.map.set_stride(2 + i, 0, broadcast_stride(operands[i], r - 2));
    const GemmProblem problem = problem_of(panels, taps, out.dims[r - 2], weights, epilogue, rows);
    if (alone)
      run_problem_alone(problem, scratch);
    else
      run_problem(problem, scratch, launch.pool);
  };
  float* packed = reinterpret_cast<float*>(launch.workspace + where.b);
  std::byte* scratch = launch.workspace + where.threads;
  const int64_t matrices = leading(out);
  if (matrices >= launch.pool.size()) {
    const double flops = 2.0 * static_cast<double>(out.volume()) * static_cast<double>(panels.k + 1);
    const int64_t grain = flops < 2 * kMinParallelFlops ? matrices : 1;
    launch.pool.parallel_for(matrices, grain, [&](int64_t first, int64_t last, int worker) {
      float* own = packed + worker * panels.floats();
      for (int64_t matrix = first; matrix < last; ++matrix) {
        if (!params_.packed) pack_panels(panels, b, matrix_offset(b, out, matrix), 0, panels.count(), own);
        multiply(matrix, params_.packed ? b.as<float>() + matrix * panels.floats() : own, scratch + worker * stride,
                 true);
      }
    });
    return;
  }
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    if (!params_.packed)
      launch.pool.parallel_for(panels.count(), 1, [&](int64_t first, int64_t last, int) {
        pack_panels(panels, b, matrix_offset(b, out, matrix), first, last, packed);
      });
    multiply(matrix, params_.packed ? b.as<float>() + matrix * panels.floats() : packed, scratch, false);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_gemm(const Record& record) {
  const auto params = decode_counts<GemmParams>(record.params);
  if (!params || !valid(params->blocking) || params->batches < 1) return refuse_params("gemm");
  const auto& [k, n, packed, batches, blocking, bf16] = *params;
  constexpr double kMaxFloats = 1e12;
  if ((packed ? n < 1 : k != 0 || n != 0) ||
      static_cast<double>(k) * static_cast<double>(n + 16) * static_cast<double>(batches) > kMaxFloats)
    return refuse_params("gemm");
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  return std::unique_ptr<Kernel>(new GemmKernel(*params, std::move(epilogue)));
}

}  // namespace lathe::cpu
