// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/expert_gemm/expert_rows.h"
#include "kernels/cpu/expert_gemm_weight_only/expert_gemm_weight_only.h"
#include "kernels/cpu/gemm_weight_only/unpacked.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/workspace_parts.h"

namespace lathe::cpu {
namespace {

using namespace gemm;

// Offsets into the workspace.
struct Layout {
  int64_t rows;
  size_t order, a, taps, threads, total;
};

class ExpertGemmWeightOnly final : public Kernel {
 public:
  ExpertGemmWeightOnly(const PackedPanels& panels, int64_t experts, bool strict, Epilogue epilogue)
      : panels_(panels), experts_(experts), strict_(strict), epilogue_(std::move(epilogue)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return layout(inputs, outputs[0], threads).total;
  }
  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override;

 private:
  Layout layout(std::span<const TensorArg> inputs, const TensorArg& out, int threads) const;
  void multiply_few(const std::byte* codes, int64_t panel, int64_t rows, const BoundEpilogue& epilogue,
                    const RowSource& source) const;

  const PackedPanels panels_;  // of an expert
  const int64_t experts_;
  const bool strict_;
  const Epilogue epilogue_;
};

Result<> ExpertGemmWeightOnly::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  LATHE_TRY(
      check_expert_rows("expert_gemm_weight_only", inputs, outputs, {DType::u8, panels_.k, panels_.n}, epilogue_));
  const TensorArg& b = inputs[1];
  const bool fits = b.rank == 1 && b.dims[0] >= experts_ * panels_.bytes() && (b.strides[0] == 1 || b.dims[0] == 1);
  return fits ? Result<>()
              : fail(ErrorCode::shape_mismatch, "expert_gemm_weight_only: B does not fit K {} and N {}", panels_.k,
                     panels_.n);
}

Layout ExpertGemmWeightOnly::layout(std::span<const TensorArg> inputs, const TensorArg& out, int threads) const {
  Layout where{};
  WorkspaceParts parts;
  where.rows = rows_of(out);
  where.order = parts.take(ExpertRows::bytes(where.rows, experts_));
  where.a = parts.take(copied_floats(inputs[0]) * static_cast<int64_t>(sizeof(float)));
  const UnpackedProduct many(panels_, where.rows);
  where.taps = parts.take(static_cast<int64_t>(many.tap_bytes()));
  where.threads = parts.bytes();
  where.total = parts.bytes() + (are_unpacked(where.rows) ? many.thread_bytes() * static_cast<size_t>(threads) : 0);
  return where;
}

Result<> ExpertGemmWeightOnly::try_run(const Launch& launch) const {
  const TensorArg& out = launch.outputs[0];
  const Layout where = layout(launch.inputs, out, launch.pool.size());
  ExpertRows rows(where.rows, experts_, launch.workspace + where.order);
  if (const auto outside = rows.sort(launch.inputs[2], out, strict_)) return fail_outside("expert_matmul", *outside);
  if (out.volume() == 0) return {};
  TensorArg a = rows_of_a(launch.inputs[0], out, reinterpret_cast<float*>(launch.workspace + where.a), launch.pool);
  repeat_rows(a);
  const auto operands = launch.inputs.subspan(3);
  const BoundEpilogue epilogue = bind_epilogue(epilogue_, operands, out, out.rank - 1);
  const UnpackedProduct most(panels_, where.rows);
  const Tap* taps = most.write_taps(launch.workspace + where.taps);
  MatrixRows source(a.as<float>(), out.as<float>(), epilogue, taps);
  source.map_rows(a, out, operands);
  const auto* packed = launch.inputs[1].as<std::byte>();
  const double products = static_cast<double>(where.rows * panels_.k) * static_cast<double>(panels_.n);
  rows.share(panels_.panels(), products, launch.pool, [&](int64_t expert, int64_t first, int64_t last, int worker) {
    MatrixRows own = source;
    own.order = rows.of(expert);
    const int64_t count = rows.count(expert);
    std::byte* memory = launch.workspace + where.threads + static_cast<size_t>(worker) * most.thread_bytes();
    for (int64_t panel = first; panel < last; ++panel) {
      const std::byte* codes = packed + expert * panels_.bytes() + panel * panels_.panel_bytes();
      if (are_unpacked(count))
        UnpackedProduct(panels_, count).multiply(panel, codes, epilogue, own, taps, memory);
      else
        multiply_few(codes, panel, count, epilogue, own);
    }
  });
  rows.finish_others(source, epilogue, panels_.n);
  return {};
}

void ExpertGemmWeightOnly::multiply_few(const std::byte* codes, int64_t panel, int64_t rows,
                                        const BoundEpilogue& epilogue, const RowSource& source) const {
  static const auto& kernel = LATHE_ISA_SELECT(weight_only_kernel)();
  static const auto finish = LATHE_ISA_SELECT(finish_tile);
  alignas(64) float sums[kMostPanelRows * PackedPanels::kColumns];
  const float* a_rows[kMaxTileRows];
  TileScratch tile;
  tile.a_rows = a_rows;
  for (int64_t first = 0; first < rows; first += kernel.most_rows) {
    const int count = static_cast<int>(std::min<int64_t>(kernel.most_rows, rows - first));
    source.fill(first, count, tile);
    kernel.multiply({panels_, codes, a_rows, sums}, count);
    const int64_t column = panel * PackedPanels::kColumns;
    finish(epilogue, tile.where, sums, PackedPanels::kColumns, count, column,
           static_cast<int>(std::min<int64_t>(PackedPanels::kColumns, panels_.n - column)));
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_expert_gemm_weight_only(const Record& record) {
  const auto params = decode_counts<ExpertWeightOnlyParams>(record.params);
  const std::optional<PackedPanels> panels = params ? panels_of(params->matrix) : std::nullopt;
  constexpr double kMaxBytes = 1e12;
  if (!panels || params->experts < 1 ||
      static_cast<double>(panels->bytes()) * static_cast<double>(params->experts) > kMaxBytes)
    return refuse_params("expert_gemm_weight_only");
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  return std::unique_ptr<Kernel>(
      new ExpertGemmWeightOnly(*panels, params->experts, params->strict, std::move(epilogue)));
}

}  // namespace lathe::cpu
