// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/normalization/normalization.h"

#include "kernels/axes_tactic.h"
#include "kernels/cuda/row_input.h"
#include "kernels/cuda/row_shapes.h"

namespace lathe::cuda {
namespace {

// Writes the launches of one normalisation.
class Writer {
 public:
  Writer(const Normalization& normalization, const Problem& problem, const RowShape& shape)
      : n_(normalization), space_(normalization.space), problem_(problem), shape_(shape) {
    columns_ = shape.kind == RowShape::columns || shape.kind == RowShape::strips;
    header_ = columns_ ? "normalization/columns.cuh" : "normalization/rows.cuh";
  }

  SourceLaunch whole() const {
    const bool resident = shape_.kind == RowShape::resident;
    const std::string call = columns_   ? fmt::format("normalize_columns<{}, {}, {}, {}, {}>", kept(), shape_.tx(),
                                                      shape_.ty, width(), shape_.unroll)
                             : resident ? fmt::format("normalize_resident<{}, {}, {}, {}, {}>", kept(), shape_.lanes,
                                                      shape_.rows_per_block, shape_.chunks, width())
                                        : fmt::format("normalize_twice<{}, {}, {}, {}, {}>", kept(), shape_.lanes,
                                                      shape_.rows_per_block, width(), shape_.unroll);
    return normalize(call, false);
  }

  // In parts: the states go to the workspace.
  std::vector<SourceLaunch> in_parts() const {
    std::vector<SourceLaunch> launches{summarize()};
    if (columns_) launches.push_back(merge());
    const std::string call =
        fmt::format("{}<{}, {}>", columns_ ? "normalize_strips" : "normalize_parts", block_arguments(), shape_.splits);
    launches.push_back(normalize(call, true));
    return launches;
  }
  Expr workspace() const { return space_.rows() * (shape_.splits + columns_) * n_.statistic.state_bytes; }

 private:
  int kept() const { return space_.kept(); }
  int width() const { return chunk_width(space_); }
  std::string block_arguments() const {
    return columns_ ? fmt::format("{}, {}, {}, {}, {}", kept(), shape_.tx(), shape_.ty, width(), shape_.unroll)
                    : fmt::format("{}, {}, {}, {}", kept(), shape_.lanes, width(), shape_.unroll);
  }
  std::string statistic() const { return fmt::format("{}{{{}}}", n_.statistic.type, n_.statistic.members); }
  std::array<Expr, 3> grid() const { return {row_blocks(space_, shape_), shape_.splits, 1}; }
  uint32_t shared_bytes() const { return row_shared_bytes(space_, shape_, n_.statistic.state_bytes); }

  SourceLaunch summarize() const {
    Source source(header_);
    const std::string x = declare_row_input(source, problem_, space_);
    source.workspace("states", 0, n_.statistic.type + "::State");
    const std::string call =
        fmt::format("{}<{}, {}>({}, states, {});", columns_ ? "summarize_strips" : "summarize_parts", block_arguments(),
                    shape_.splits, x, statistic());
    return source.finish(call, grid(), static_cast<uint32_t>(shape_.threads()), shared_bytes());
  }

  SourceLaunch merge() const {
    constexpr int64_t kThreads = 128;
    Source source(header_);
    source.workspace("states", 0, n_.statistic.type + "::State");
    const std::string call = fmt::format("merge_strips<{}, {}>(states, {}, {});", kThreads, shape_.splits,
                                         source.number(space_.rows()), statistic());
    return source.finish(call, {ceildiv(space_.rows(), kThreads / 32), 1, 1}, kThreads, 0);
  }

  SourceLaunch normalize(std::string_view call, bool from_states) const {
    Source source(header_);
    const NormalizedText text = declare_normalized(source, problem_, n_);
    if (from_states) source.workspace("states", 0, n_.statistic.type + "::State");
    return source.finish(fmt::format("{}({}, {}{}, {}, fusion_, {});", call, text.x, from_states ? "states, " : "",
                                     statistic(), text.affine, text.results),
                         grid(), static_cast<uint32_t>(shape_.threads()), shared_bytes());
  }

  const Normalization& n_;
  const IndexSpace& space_;
  const Problem& problem_;
  RowShape shape_;
  bool columns_ = false;
  std::string header_;
};

std::vector<Config> configs(const Problem& problem, const Normalization& normalization) {
  return row_configs(problem.target, normalization.space, true, normalization.statistic.state_bytes);
}

Result<Emission> emit(const Problem& problem, const Normalization& normalization, const Config& config) {
  const auto& shape = config.as<RowShape>();
  const Writer writer(normalization, problem, shape);
  Emission emission = inputs_of(problem, normalization);
  if (shape.splits == 1) {
    emission.launches.push_back(writer.whole());
  } else {
    emission.launches = writer.in_parts();
    emission.workspace = writer.workspace();
  }
  return emission;
}

}  // namespace

Normalization normalization_along(const Problem& problem, int64_t axis, RowStatistic statistic) {
  Normalization normalization{IndexSpace(problem.inputs[0]), std::move(statistic)};
  IndexSpace& space = normalization.space;
  for (const Operand& output : problem.outputs) space.add(output);
  for (const Operand& operand : problem.operands) space.add(operand);
  add_prologue_operands(problem, space);
  space.reduce(static_cast<size_t>(axis_from_start(axis, problem.inputs[0])));
  space.simplify();
  return normalization;
}

Emission inputs_of(const Problem& problem, const Normalization& normalization) {
  Emission emission;
  emission.inputs = {{StepInput::input, 0}};
  if (normalization.has_scale) emission.inputs.push_back({StepInput::input, 1});
  if (normalization.has_bias) emission.inputs.push_back({StepInput::input, 2});
  add_operand_inputs(problem, emission);
  add_prologue_inputs(problem, 0, emission);
  return emission;
}

NormalizedText declare_normalized(Source& source, const Problem& problem, const Normalization& normalization) {
  const auto& [space, statistic, has_scale, has_bias] = normalization;
  NormalizedText text{declare_row_input(source, problem, space), {}, {}};
  const size_t results = problem.outputs.size();
  size_t tensor = 1 + results;
  if (has_scale) source.input(1, space.view(tensor++), "Scale");
  if (has_bias) source.input(tensor - results, space.view(tensor), "Bias"), ++tensor;
  for (size_t i = 0; i < results; ++i) {
    source.output(i, space.view(1 + i), fmt::format("Y{}", i));
    text.results += fmt::format("{}Y{}_", i > 0 ? ", " : "", i);
  }
  std::vector<Operand> views;
  for (size_t i = 0; i < problem.operands.size(); ++i) views.push_back(space.view(tensor + i));
  source.rounding_fusion(problem, space.view(1), views, tensor - results);
  text.affine = fmt::format("Affine<{}, {}>{{{}, {}}}", has_scale ? "Scale" : "Absent", has_bias ? "Bias" : "Absent",
                            has_scale ? "Scale_" : "{}", has_bias ? "Bias_" : "{}");
  return text;
}

Matched match_rows(const Problem& problem, Normalization normalization) {
  return match_form(problem, std::move(normalization), configs, emit);
}

std::optional<std::string> refuse_types(const Problem& problem) {
  for (const Operand& input : problem.inputs)
    if (!input.omitted && !input.is_computed() && !is_short_float(input.dtype))
      return fmt::format("a tensor is {}", name_of(input.dtype));
  for (size_t i = 0; i < problem.outputs.size(); ++i) {
    const DType dtype = problem.outputs[i].dtype;
    const bool has_levels =
        is_integer(dtype) && !problem.program.outputs.empty() && is_quantized(problem.program, i, dtype);
    if (!is_short_float(dtype) && !is_factor_float8(dtype) && !has_levels)
      return fmt::format("a result is {}", name_of(dtype));
  }
  return refuse_row_input(problem);
}

}  // namespace lathe::cuda
