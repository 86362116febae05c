// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/generic/counted_ops.h"

#include "kernels/cuda/generic/op_source.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kHeader = "generic/select.cuh";
constexpr uint32_t kThreads = 256;                        // kSelectThreads of the header
constexpr int64_t kPart = int64_t{kThreads} * 16;         // positions of a block
constexpr uint32_t kShared = kThreads * sizeof(int64_t);  // a sum for each thread

// Which positions are asked: those of `flags`, an input of the op.
struct Selection {
  size_t flags = 0;
  Expr positions;  // of the flags
  Expr limit;      // positions that exist
};

Emission emit_find(const Problem& problem, const Selection& selection) {
  Emission emission;
  const Expr parts = ceildiv(selection.positions, kPart);
  emission.workspace = parts * static_cast<int64_t>(sizeof(int64_t));
  const Operand list = list_operand(selection.positions + 1);
  const auto add = [&](std::string_view call, bool writes_list, const Expr& blocks) {
    OpSource source(kHeader, problem, emission);
    const std::string flags = source.input(selection.flags);
    source.source().workspace("parts", 0, "long");
    if (writes_list) source.source().output(0, list, "List");
    const auto number = [&](const Expr& expr) { return source.source().number(expr); };
    source.finish_blocks(fmt::format(fmt::runtime(call),
                                     fmt::arg("flags", fmt::format("NonzeroFlags<In{}>{{{}}}", selection.flags, flags)),
                                     fmt::arg("count", number(selection.positions)),
                                     fmt::arg("limit", number(selection.limit)), fmt::arg("parts", number(parts))),
                         blocks, kThreads, kShared);
  };
  add("select_count({flags}, {count}, parts);", false, parts);
  add("select_add_up({flags}, {count}, {limit}, {parts}, parts, reinterpret_cast<long*>(List_.data));", true, 1);
  add("select_list({flags}, {count}, parts, reinterpret_cast<long*>(List_.data));", true, parts);
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

class SelectTactic final : public CountedTactic {
 public:
  std::string_view name() const override { return "select"; }

  bool takes(const Problem& problem) const override {
    return problem.is(OpKind::nonzero) || problem.is(OpKind::compress);
  }

  Result<CountedEmission> emit(const Problem& problem) const override {
    Selection selection;
    CountedEmission counted;
    std::string function = "select_coordinates";
    const Shape& dims = problem.inputs[0].dims;
    selection.positions = selection.limit = volume(dims);
    counted.output_dim = 1;
    if (problem.is(OpKind::compress)) {
      const auto& attrs = problem.attrs<CompressAttrs>();
      int64_t axis = -1;
      if (!attrs.flat) {
        LATHE_ASSIGN(axis, normalize_axis(attrs.axis, problem.inputs[0].rank()));
        selection.limit = dims[static_cast<size_t>(axis)];
      }
      selection.flags = 1;
      selection.positions = problem.inputs[1].dims[0];
      counted.output_dim = static_cast<size_t>(std::max<int64_t>(axis, 0));
      function = fmt::format("select_elements<{}>", axis);
    }
    counted.find = emit_find(problem, selection);
    counted.write = emit_write(problem, selection, function, problem.is(OpKind::compress));
    counted.found = {selection.positions + 1};
    counted.count = selection.positions;
    return counted;
  }
};

}  // namespace

const CountedTactic& select_tactic() {
  static const SelectTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
