// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/generic/data_dependent_ops.h"

#include "kernels/cuda/generic/op_source.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kHeader = "generic/select.cuh";
constexpr uint32_t kThreads = 256;                           // kSelectThreads of the header
constexpr int64_t kBlockPositions = int64_t{kThreads} * 16;  // positions of a block
constexpr uint32_t kShared = kThreads * sizeof(int64_t);     // a sum for each thread

// Which positions are asked: those of `flags`, an input of the op.
struct Selection {
  size_t flags = 0;
  Expr positions;  // of the flags
  Expr limit;      // positions that exist
};

Emission emit_find(const Problem& problem, const Selection& selection) {
  Emission emission;
  const Expr blocks = ceildiv(selection.positions, kBlockPositions);
  emission.workspace = blocks * static_cast<int64_t>(sizeof(int64_t));
  const Operand list = list_operand(selection.positions + 1);
  const auto add = [&](std::string_view call, bool writes_list, const Expr& grid) {
    OpSource source(kHeader, problem, emission);
    const std::string flags = source.input(selection.flags);
    source.source().workspace("counts", 0, "long");
    if (writes_list) source.source().output(0, list, "List");
    const auto number = [&](const Expr& expr) { return source.source().number(expr); };
    source.finish_blocks(fmt::format(fmt::runtime(call),
                                     fmt::arg("flags", fmt::format("NonzeroFlags<In{}>{{{}}}", selection.flags, flags)),
                                     fmt::arg("count", number(selection.positions)),
                                     fmt::arg("limit", number(selection.limit)), fmt::arg("blocks", number(blocks))),
                         grid, kThreads, kShared);
  };
  add("select_count({flags}, {count}, counts);", false, blocks);
  add("select_add_up({flags}, {count}, {limit}, {blocks}, counts, reinterpret_cast<long*>(List_.data));", true, 1);
  add("select_list({flags}, {count}, counts, reinterpret_cast<long*>(List_.data));", true, blocks);
  return emission;
}

Emission emit_write(const Problem& problem, const Selection& selection, std::string_view function, bool raw) {
  Emission emission;
  OpSource source(kHeader, problem, emission);
  const std::string tensor = source.input(0, raw), out = source.output(0, raw);
  source.source().input(1, list_operand(selection.positions + 1), "List");
  source.finish(fmt::format("{}({}, reinterpret_cast<const long*>(List_.data), {});", function, tensor, out),
                volume(problem.outputs[0].dims));
  return emission;
}

}  // namespace

DataDependentMatched match_selection(const Problem& problem) {
  if (!problem.is(OpKind::nonzero) && !problem.is(OpKind::compress)) return refuse("no choice by conditions");
  Selection selection;
  DataDependentEmission emission;
  std::string function = "select_coordinates";
  const Shape& dims = problem.inputs[0].dims;
  selection.positions = selection.limit = volume(dims);
  emission.output_dim = 1;
  if (problem.is(OpKind::compress)) {
    const auto& attrs = problem.attrs<CompressAttrs>();
    int64_t axis = -1;
    if (!attrs.flat) {
      const Result<int64_t> known = normalize_axis(attrs.axis, problem.inputs[0].rank());
      if (!known) return refuse(known.error().message);
      axis = *known;
      selection.limit = dims[static_cast<size_t>(axis)];
    }
    selection.flags = 1;
    selection.positions = problem.inputs[1].dims[0];
    emission.output_dim = static_cast<size_t>(std::max<int64_t>(axis, 0));
    function = fmt::format("select_elements<{}>", axis);
  }
  emission.find = emit_find(problem, selection);
  emission.write = emit_write(problem, selection, function, problem.is(OpKind::compress));
  emission.found = {selection.positions + 1};
  emission.count = selection.positions;
  return emission;
}

}  // namespace lathe::cuda
