// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/expert_gemm/expert_rows.h"

#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu {
namespace {

bool fit_rows(const TensorArg& a, const TensorArg& ids, const TensorArg& out, int64_t k, int64_t n) {
  if (a.rank < 1 || out.rank < 1) return false;
  TensorArg a_rows = a, rows = out;
  --a_rows.rank, --rows.rank;
  const int last = out.rank - 1;
  const int64_t own_k = a.dims[a.rank - 1], own_n = out.dims[last];
  return (n == 0 || (own_k == k && own_n == n)) && own_k <= INT32_MAX && (out.strides[last] == 1 || own_n == 1) &&
         rows_of(out) <= INT32_MAX && broadcasts_to(a_rows, rows) && broadcasts_to(ids, rows);
}

}  // namespace

Result<> check_expert_rows(std::string_view kernel, std::span<const TensorArg> inputs,
                           std::span<const TensorArg> outputs, const ExpertSizes& sizes, const Epilogue& epilogue) {
  if (inputs.size() < 3 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed,
                "{} has {} inputs and {} outputs; it takes A, B and ids, and gives one output", kernel, inputs.size(),
                outputs.size());
  const TensorArg &a = inputs[0], &b = inputs[1], &ids = inputs[2], &out = outputs[0];
  if (a.dtype != DType::f32 || b.dtype != sizes.b || out.dtype != DType::f32 || !is_integer(ids.dtype))
    return fail(ErrorCode::type_mismatch, "{} takes f32, {} and integers and gives f32, not {}, {}, {} and {}", kernel,
                name_of(sizes.b), name_of(a.dtype), name_of(b.dtype), name_of(ids.dtype), name_of(out.dtype));
  if (!fit_rows(a, ids, out, sizes.k, sizes.n))
    return fail(ErrorCode::shape_mismatch, "{}: A, ids and the output do not fit K {} and N {}", kernel, sizes.k,
                sizes.n);
  return check_epilogue(epilogue, inputs.subspan(3), out);
}

std::optional<IndexWalk::Outside> ExpertRows::sort(const TensorArg& ids, const TensorArg& out, bool is_strict) {
  gemm::RowMap<1> map;
  map.streams = 1;
  for (int d = 0; d < out.rank - 1; ++d) {
    map.add_dim(out.dims[d]);
    map.set_stride(0, d, broadcast_stride_at(ids, d, out.rank - 1));
  }
  map.collapse();
  std::optional<IndexWalk::Outside> outside;
  const auto each_row = [&](const auto& use) {
    map.fill(0, static_cast<int>(rows_), [&](int, int row, int64_t offset) {
      const int64_t id = integer_at(ids, offset), index = is_strict && id < 0 ? id + experts_ : id;
      const bool is_inside = index >= 0 && index < experts_;
      if (!is_inside && is_strict) outside = {id, experts_, -1};
      use(row, is_inside ? index : experts_);
    });
  };
  // first[e + 1] counts the rows of expert e, then is where the next of them goes, and at last where they end.
  std::fill_n(first_, experts_ + 2, 0);
  each_row([&](int, int64_t expert) {
    if (expert < experts_) ++first_[expert + 2];
  });
  for (int64_t e = 1; e <= experts_; ++e) first_[e + 1] += first_[e];
  int32_t others = first_[experts_ + 1];
  each_row([&](int row, int64_t expert) { numbers_[expert < experts_ ? first_[expert + 1]++ : others++] = row; });
  return outside;
}

void ExpertRows::finish_others(gemm::MatrixRows source, const BoundEpilogue& epilogue, int64_t n) const {
  static const auto finish = LATHE_ISA_SELECT(finish_tile);
  constexpr int kRows = kMaxVectorTileRows;
  source.order = numbers_ + first_[experts_];
  const int64_t count = rows_ - first_[experts_];
  const float* a_rows[kMaxTileRows];
  alignas(64) float sums[kRows * kMaxTileColumns];
  gemm::TileScratch tile;
  tile.a_rows = a_rows;
  for (int64_t row = 0; row < count; row += kRows)
    for (int64_t column = 0; column < n; column += kMaxTileColumns) {
      const int rows = static_cast<int>(std::min<int64_t>(kRows, count - row));
      source.fill(row, rows, tile);
      std::fill(std::begin(sums), std::end(sums), 0.0f);
      finish(epilogue, tile.where, sums, kMaxTileColumns, rows, column,
             static_cast<int>(std::min<int64_t>(kMaxTileColumns, n - column)));
    }
}

int64_t rows_of(const TensorArg& out) {
  int64_t rows = 1;
  for (int d = 0; d < out.rank - 1; ++d) rows *= out.dims[d];
  return rows;
}

TensorArg rows_of_a(const TensorArg& a, const TensorArg& out, float* copy, ThreadPool& pool) {
  TensorArg rows = a;
  rows.rank = std::max(out.rank, 2);
  const int added = rows.rank - a.rank;
  for (int d = rows.rank; d-- > 0;) {
    rows.dims[d] = d < added ? 1 : a.dims[d - added];
    rows.strides[d] = d < added ? 0 : a.strides[d - added];
  }
  return gemm::repacks(rows) ? gemm::repack(rows, copy, pool) : rows;
}

int64_t copied_floats(const TensorArg& a) { return gemm::repacks(a) ? a.volume() : 0; }

void repeat_rows(TensorArg& a) {
  for (int d = 0; d < a.rank - 1; ++d)
    if (a.dims[d] == 1) a.strides[d] = 0;
}

}  // namespace lathe::cpu
