// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/expert_gemm/expert_gemm.h"
#include "kernels/cpu/expert_gemm/expert_rows.h"
#include "kernels/cpu/gemm/pairs.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/workspace_parts.h"

namespace lathe::cpu {
namespace {

using namespace gemm;

constexpr int64_t kFloat = sizeof(float);

// What a launch multiplies, and offsets into the workspace.
struct Layout {
  Panels panels;  // of an expert
  int64_t experts, rows;
  size_t taps, order, a, pairs, threads, thread_bytes, panel_bytes, total;
};

class ExpertGemm final : public Kernel {
 public:
  ExpertGemm(const ExpertGemmParams& params, Epilogue epilogue) : params_(params), epilogue_(std::move(epilogue)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return layout(inputs, outputs[0], threads).total;
  }
  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override;

 private:
  struct Work {
    const Launch& launch;
    const Layout& where;
    const ExpertRows& rows;
    MatrixRows& source;
    const BoundEpilogue& epilogue;
  };
  // Weights that were packed while building have the record's sizes, others their own.
  int64_t experts_of(const TensorArg& b) const { return params_.packed ? params_.experts : b.dims[0]; }
  Panels panels_of(const TensorArg& a, const TensorArg& out) const {
    const int64_t k = params_.packed ? params_.k : a.dims[a.rank - 1];
    return {params_.bf16 ? pairs_of(k) : k, params_.packed ? params_.n : out.dims[out.rank - 1],
            params_.blocking.width};
  }
  int64_t tap_count(int64_t k) const {
    const int64_t block = params_.blocking.k_block;
    return block && k > block ? ceil_div(k, block) : 1;
  }
  Needs needs_of(const Panels& panels) const { return {1, tap_count(panels.k), 0, params_.bf16}; }
  Layout layout(std::span<const TensorArg> inputs, const TensorArg& out, int threads) const;
  const Tap* write_taps(const Panels& panels, std::byte* to) const;
  void multiply(const Work& work, int64_t expert, int64_t first, int64_t last, std::byte* own) const;
  void pack_panel(const Panels& panels, const TensorArg& b, int64_t expert, int64_t panel, float* to) const;

  const ExpertGemmParams params_;
  const Epilogue epilogue_;
};

Result<> ExpertGemm::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const DType type = params_.packed && params_.bf16 ? DType::bf16 : DType::f32;
  LATHE_TRY(check_expert_rows("expert_gemm", inputs, outputs, {type, params_.k, params_.n}, epilogue_));
  const TensorArg &a = inputs[0], &b = inputs[1];
  const Panels panels = panels_of(a, outputs[0]);
  const int64_t elements = panels.floats() * params_.experts * (params_.bf16 ? 2 : 1);
  const bool has_weights =
      params_.packed
          ? b.rank == 1 && (b.strides[0] == 1 || b.dims[0] == 1) && b.dims[0] >= elements
          : b.rank == 3 && b.dims[1] == a.dims[a.rank - 1] && b.dims[2] == panels.n && b.dims[0] <= INT32_MAX;
  return has_weights ? Result<>() : fail(ErrorCode::shape_mismatch, "expert_gemm: B does not fit A and N {}", panels.n);
}

Layout ExpertGemm::layout(std::span<const TensorArg> inputs, const TensorArg& out, int threads) const {
  Layout where{};
  WorkspaceParts parts;
  const TensorArg& a = inputs[0];
  const Panels& panels = where.panels = panels_of(a, out);
  where.experts = experts_of(inputs[1]), where.rows = rows_of(out);
  const Needs needs = needs_of(panels);
  where.taps = parts.take(needs.taps * static_cast<int64_t>(sizeof(Tap)));
  where.order = parts.take(ExpertRows::bytes(where.rows, where.experts));
  where.a = parts.take(copied_floats(a) * kFloat);
  const int64_t k = std::max<int64_t>(a.dims[a.rank - 1], 1);
  where.pairs = parts.take(params_.bf16 ? a.volume() / k * panels.k * kFloat : 0);
  where.threads = parts.bytes();
  where.panel_bytes = static_cast<size_t>(params_.packed ? 0 : panels.k * panels.width * kFloat);
  where.thread_bytes = where.panel_bytes + scratch_bytes(params_.blocking, where.rows, panels.k, needs);
  where.total = parts.bytes() + where.thread_bytes * static_cast<size_t>(threads);
  return where;
}

const Tap* ExpertGemm::write_taps(const Panels& panels, std::byte* to) const {
  auto* taps = reinterpret_cast<Tap*>(to);
  const int64_t count = tap_count(panels.k), block = count == 1 ? panels.k : params_.blocking.k_block;
  for (int64_t t = 0; t < count; ++t)
    taps[t] = {t * block, t * block, static_cast<int32_t>(std::min(block, panels.k - t * block)), 0};
  return taps;
}

Result<> ExpertGemm::try_run(const Launch& launch) const {
  const TensorArg& out = launch.outputs[0];
  const Layout where = layout(launch.inputs, out, launch.pool.size());
  ExpertRows rows(where.rows, where.experts, launch.workspace + where.order);
  if (const auto outside = rows.sort(launch.inputs[2], out, params_.strict))
    return fail_outside("expert_matmul", *outside);
  if (out.volume() == 0) return {};
  TensorArg a = rows_of_a(launch.inputs[0], out, reinterpret_cast<float*>(launch.workspace + where.a), launch.pool);
  if (params_.bf16) a = in_pairs(a, reinterpret_cast<float*>(launch.workspace + where.pairs), launch.pool);
  repeat_rows(a);
  const auto operands = launch.inputs.subspan(3);
  const BoundEpilogue epilogue = bind_epilogue(epilogue_, operands, out, out.rank - 1);
  MatrixRows source(a.as<float>(), out.as<float>(), epilogue, write_taps(where.panels, launch.workspace + where.taps));
  source.map_rows(a, out, operands);
  const Work work{launch, where, rows, source, epilogue};
  const double products = static_cast<double>(where.rows * where.panels.k) * static_cast<double>(where.panels.n);
  rows.share(where.panels.count(), products, launch.pool, [&](int64_t expert, int64_t first, int64_t last, int worker) {
    multiply(work, expert, first, last,
             launch.workspace + where.threads + static_cast<size_t>(worker) * where.thread_bytes);
  });
  rows.finish_others(source, epilogue, where.panels.n);
  return {};
}

void ExpertGemm::multiply(const Work& work, int64_t expert, int64_t first, int64_t last, std::byte* own) const {
  const Panels& panels = work.where.panels;
  const TensorArg& b = work.launch.inputs[1];
  MatrixRows source = work.source;
  source.order = work.rows.of(expert);
  GemmProblem problem;
  problem.rows = work.rows.count(expert);
  problem.panels = panels;
  problem.taps = reinterpret_cast<const Tap*>(work.launch.workspace + work.where.taps);
  problem.needs = needs_of(panels);
  problem.blocking = params_.blocking;
  problem.pairs = params_.bf16;
  problem.epilogue = &work.epilogue;
  problem.source = &source;
  std::byte* scratch = own + work.where.panel_bytes;
  if (params_.packed) {
    problem.packed = b.as<float>() + expert * panels.floats();
    return run_panels_alone(problem, first, last, scratch);
  }
  auto* packed = reinterpret_cast<float*>(own);
  problem.packed = packed;
  for (int64_t panel = first; panel < last; ++panel) {
    pack_panel(panels, b, expert, panel, packed);
    problem.first_packed = panel;
    run_panels_alone(problem, panel, panel + 1, scratch);
  }
}

void ExpertGemm::pack_panel(const Panels& panels, const TensorArg& b, int64_t expert, int64_t panel, float* to) const {
  const float* from = b.as<float>() + expert * b.strides[0] + panel * panels.width * b.strides[2];
  const Panels alone{panels.k, panels.columns(panel), panels.width};
  if (params_.bf16)
    pack_pairs(alone, b.dims[1], from, b.strides[1], b.strides[2], 0, 1, to);
  else
    pack(alone, from, b.strides[1], b.strides[2], 0, 1, to);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_expert_gemm(const Record& record) {
  const auto params = decode_counts<ExpertGemmParams>(record.params);
  if (!params || !valid(params->blocking)) return refuse_params("expert_gemm");
  const auto& [experts, k, n, packed, strict, bf16, blocking] = *params;
  constexpr double kMaxFloats = 1e12;
  if ((packed ? n < 1 : experts != 0 || k != 0 || n != 0) ||
      static_cast<double>(k) * static_cast<double>(n + 16) * static_cast<double>(experts) > kMaxFloats)
    return refuse_params("expert_gemm");
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  return std::unique_ptr<Kernel>(new ExpertGemm(*params, std::move(epilogue)));
}

}  // namespace lathe::cpu
