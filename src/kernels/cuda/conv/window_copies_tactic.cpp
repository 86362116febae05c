// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/window_copies_tactic.h"

#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/source.h"
#include "ops/windows.h"

namespace lathe::cuda::conv {
namespace {

constexpr size_t kRow = 1, kColumn = 2;  // axes of a ConvShape

// Along an axis: where the first window begins, how far beyond the image's last element the last may begin, and the
// step. Nothing where a map cannot say it.
struct Reach {
  int64_t first = 0, beyond = 0, step = 1;
};

std::optional<Reach> reach_of(const Problem& problem, const ConvShape& a, size_t axis) {
  constexpr int64_t kLeast = -128, kMost = 127, kMostStep = 8;
  const size_t lead = 3 - static_cast<size_t>(a.spatial);
  if (axis < lead) return Reach{};
  const auto& attrs = problem.attrs<ConvolutionAttrs>();
  if (attrs.padding_mode == PaddingMode::explicit_round_up) return std::nullopt;
  const size_t i = axis - lead;
  const std::optional<int64_t> end =
      window_rule(problem.inputs[0].dims[2 + i], a.kernel[axis], a.stride[axis], a.dilation[axis], a.pad[axis],
                  value_at(attrs.pads_end, i, 0), attrs.padding_mode)
          .pad_end.as_constant();
  if (!end) return std::nullopt;
  const int64_t length = (a.kernel[axis] - 1) * a.dilation[axis];
  const Reach reach{-a.pad[axis], *end - length, a.stride[axis]};
  const bool fits = reach.first >= kLeast && reach.first <= kMost && reach.beyond >= kLeast && reach.beyond <= kMost &&
                    length <= kMost && reach.step <= kMostStep;
  return fits ? std::optional(reach) : std::nullopt;
}

}  // namespace

bool can_copy_windows(const Problem& problem, const ImplicitGemm& form) {
  const ConvShape& a = form.attributes;
  return form.load == PixelLoad::window && a.groups == 1 && a.spatial <= 2 && reach_of(problem, a, kRow) &&
         reach_of(problem, a, kColumn);
}

std::string declare_windows(Source& source, const Problem& problem, const ImplicitGemm& form,
                            const gemm::TileShape& tile) {
  const Operand& x = problem.inputs[0];
  const ConvShape& a = form.attributes;
  const Reach rows = *reach_of(problem, a, kRow), columns = *reach_of(problem, a, kColumn);
  const size_t last = x.dims.size() - 1;
  const bool has_rows = a.spatial == 2;
  TensorMap map{0, x.dtype, x.dtype == DType::f32, {}, {}, {}, {}};
  map.dims = {x.dims[1], x.dims[last], has_rows ? x.dims[2] : Expr(1), x.dims[0]};
  map.strides = {x.strides[last], has_rows ? x.strides[2] : x.strides[0], x.strides[0]};
  map.box = {static_cast<uint32_t>(tile.k), static_cast<uint32_t>(tile.m)};
  map.windows = {columns.first, rows.first, columns.beyond, rows.beyond, columns.step, rows.step};
  source.tensor_map(std::move(map), "map_a");
  source.include("conv/window_copies.cuh");
  return fmt::format(
      "const conv::Pixels pixels = {};\n"
      "  const auto place_a = [&](const gemm::Block& block) {{\n"
      "    return conv::WindowPlace<{}, {}>(pixels, block.row);\n"
      "  }};\n  ",
      pixels(source, form.output), window_type(a, 0), form.copied_channels(x.dtype));
}

}  // namespace lathe::cuda::conv
