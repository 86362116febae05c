// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/gemm/matrices.h"
#include "kernels/cpu/gemm/matrix_rows.h"
#include "kernels/cpu/gemm_weight_only/row_digits.h"
#include "kernels/cpu/gemm_weight_only/unpacked.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using namespace gemm;

int64_t groups_of_block(int64_t depth) { return ceil_div<int64_t>(depth, DigitGroup::kDepth); }
int64_t groups_of_row(const PackedPanels& panels) {
  const int64_t before = panels.blocks() - 1;
  return before * groups_of_block(panels.block) + groups_of_block(panels.k - before * panels.block);
}

int64_t rows_of(const TensorArg& out) { return out.dims[out.rank - 2] * leading(out); }

size_t repacked_bytes(const TensorArg& a) {
  return repacks(a) ? round_up(static_cast<size_t>(a.volume()) * sizeof(float), size_t{64}) : 0;
}

class GemmWeightOnly final : public Kernel {
 public:
  GemmWeightOnly(const PackedPanels& panels, Epilogue epilogue) : panels_(panels), epilogue_(std::move(epilogue)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    const int64_t rows = rows_of(outputs[0]);
    const size_t repacked = repacked_bytes(inputs[0]);
    if (are_unpacked(rows)) return repacked + UnpackedProduct(panels_, rows).workspace_bytes(threads);
    const int64_t groups = digits_for(outputs[0]) ? rows * groups_of_row(panels_) : 0;
    return repacked + static_cast<size_t>(groups) * sizeof(DigitGroup);
  }
  void run(const Launch& launch) const override;

 private:
  struct FewRows {
    const std::byte* packed;
    int64_t rows;
    const RowSource& source;
    const BoundEpilogue& epilogue;
    const DigitKernel* digits;
  };
  void run_few(const FewRows& few, std::byte* workspace, ThreadPool& pool) const;
  // Null where rows are multiplied as floats.
  const DigitKernel* digits_for(const TensorArg& out) const {
    return digits_ && rows_of(out) <= digits_->most_rows ? digits_ : nullptr;
  }

  const PackedPanels panels_;
  const Epilogue epilogue_;
  const DigitKernel* const digits_ = LATHE_ISA_SELECT(digit_kernel)(panels_, multiplies_bytes());
};

Result<> GemmWeightOnly::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed, "gemm_weight_only has {} inputs and {} outputs; it takes A, B and gives one",
                inputs.size(), outputs.size());
  const TensorArg &a = inputs[0], &b = inputs[1], &out = outputs[0];
  if (a.dtype != DType::f32 || out.dtype != DType::f32 || b.dtype != DType::u8)
    return fail(ErrorCode::type_mismatch,
                "gemm_weight_only multiplies f32 by packed u8, A is {}, B {} and the output {}", name_of(a.dtype),
                name_of(b.dtype), name_of(out.dtype));
  const int r = out.rank;
  if (a.rank < 2 || r < 2 || !is_matrix_of(a, out, out.dims[r - 2], panels_.k) || out.dims[r - 1] != panels_.n ||
      (out.strides[r - 1] != 1 && panels_.n != 1) || b.rank != 1 || b.dims[0] < panels_.bytes() ||
      (b.strides[0] != 1 && b.dims[0] != 1))
    return fail(ErrorCode::shape_mismatch, "gemm_weight_only: A, B and the output do not fit K {} and N {}", panels_.k,
                panels_.n);
  return check_epilogue(epilogue_, inputs.subspan(2), out);
}

// The rows as integers; null where they cannot be.
const DigitGroup* split_rows(const DigitKernel* digits, const PackedPanels& panels, const RowSource& source, int rows,
                             std::byte* workspace) {
  if (!digits) return nullptr;
  auto* groups = reinterpret_cast<DigitGroup*>(workspace);
  const float* a_rows[kMaxTileRows];
  TileScratch tile;
  tile.a_rows = a_rows;
  source.fill(0, rows, tile);
  for (int r = 0; r < rows; ++r)
    if (!digits->split(panels, a_rows[r], groups + r * groups_of_row(panels))) return nullptr;
  return groups;
}

void GemmWeightOnly::run(const Launch& launch) const {
  const TensorArg& out = launch.outputs[0];
  if (out.volume() == 0) return;
  const auto operands = launch.inputs.subspan(2);
  TensorArg a = launch.inputs[0];
  if (repacks(a)) a = repack(a, reinterpret_cast<float*>(launch.workspace), launch.pool);
  std::byte* workspace = launch.workspace + repacked_bytes(launch.inputs[0]);
  const std::byte* packed = launch.inputs[1].as<std::byte>();
  const BoundEpilogue epilogue = bind_epilogue(epilogue_, operands, out, out.rank - 1);
  const int64_t rows = rows_of(out);
  const bool unpacks = are_unpacked(rows);
  const UnpackedProduct unpacked(panels_, rows);
  MatrixRows source(a.as<float>(), out.as<float>(), epilogue, unpacks ? unpacked.write_taps(workspace) : nullptr);
  source.map_rows(a, out, operands);
  if (unpacks) return unpacked.run(packed, epilogue, source, workspace, launch.pool);
  run_few({packed, rows, source, epilogue, digits_for(out)}, workspace, launch.pool);
}

// All rows by a panel, which stays in the cache, before the next.
void GemmWeightOnly::run_few(const FewRows& few, std::byte* workspace, ThreadPool& pool) const {
  static const auto& kernel = LATHE_ISA_SELECT(weight_only_kernel)();
  static const auto finish = LATHE_ISA_SELECT(finish_tile);
  const DigitGroup* groups = split_rows(few.digits, panels_, few.source, static_cast<int>(few.rows), workspace);
  const double flops = 2.0 * static_cast<double>(few.rows * panels_.k) * static_cast<double>(panels_.n);
  const int64_t grain = flops < kMinParallelFlops ? panels_.panels() : 1;
  pool.parallel_for(panels_.panels(), grain, [&](int64_t begin, int64_t end, int) {
    alignas(64) float sums[kMostPanelRows * PackedPanels::kColumns];
    const float* a_rows[kMaxTileRows];
    TileScratch tile;
    tile.a_rows = a_rows;
    for (int64_t panel = begin; panel < end; ++panel)
      for (int64_t first = 0; first < few.rows; first += kernel.most_rows) {
        const int count = static_cast<int>(std::min<int64_t>(kernel.most_rows, few.rows - first));
        few.source.fill(first, count, tile);
        const std::byte* codes = few.packed + panel * panels_.panel_bytes();
        if (groups)
          few.digits->multiply(panels_, codes, groups, groups_of_row(panels_), count, sums);
        else
          kernel.multiply({panels_, codes, a_rows, sums}, count);
        const int64_t column = panel * PackedPanels::kColumns;
        finish(few.epilogue, tile.where, sums, PackedPanels::kColumns, count, column,
               static_cast<int>(std::min<int64_t>(PackedPanels::kColumns, panels_.n - column)));
      }
  });
}

}  // namespace

std::optional<PackedPanels> gemm::panels_of(const WeightOnlyParams& params) {
  const PackedPanels panels{params.k,
                            params.n,
                            params.block,
                            static_cast<int>(params.bits),
                            params.has_zeros,
                            params.half_scales,
                            static_cast<Codes>(params.codes)};
  constexpr double kMaxBytes = 1e12;
  const bool fits = panels.k > 0 && panels.n > 0 && (panels.bits == 4 || panels.bits == 8) && panels.block > 0 &&
                    (panels.block == panels.k || (panels.block < panels.k && panels.block % 16 == 0)) &&
                    static_cast<double>(panels.k) * static_cast<double>(panels.n + PackedPanels::kColumns) < kMaxBytes;
  const bool has_codes = params.codes == 0 || (params.codes == 3 && panels.bits == 4) ||
                         ((params.codes == 1 || params.codes == 2) && panels.bits == 8);
  return fits && has_codes ? std::optional(panels) : std::nullopt;
}

Result<std::unique_ptr<Kernel>> make_gemm_weight_only(const Record& record) {
  const auto params = decode_counts<WeightOnlyParams>(record.params);
  const std::optional<PackedPanels> panels = params ? panels_of(*params) : std::nullopt;
  if (!panels) return refuse_params("gemm_weight_only");
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  return std::unique_ptr<Kernel>(new GemmWeightOnly(*panels, std::move(epilogue)));
}

}  // namespace lathe::cpu
