// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/reduce/reduction.h"

#include "kernels/cuda/row_input.h"
#include "kernels/cuda/row_shapes.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

// Writes the launch of one reduction.
class Writer {
 public:
  Writer(const Reduction& reduction, const Problem& problem, const RowShape& shape)
      : problem_(problem),
        space_(reduction.space),
        shape_(shape),
        type_(reduction.type),
        header_(reduction.header),
        state_bytes_(reduction.state_bytes) {
    columns_ = shape.kind == RowShape::columns || shape.kind == RowShape::strips;
  }

  Expr workspace() const { return shape_.splits == 1 ? Expr(0) : space_.rows() * shape_.splits * state_bytes_; }

  Expr counters() const {
    return shape_.splits == 1 ? Expr(0) : row_blocks(space_, shape_) * static_cast<int64_t>(sizeof(uint32_t));
  }

  SourceLaunch launch() const { return columns_ ? strips() : shape_.kind == RowShape::parts ? row_parts() : rows(); }

 private:
  int kept() const { return space_.kept(); }
  int width() const { return chunk_width(space_); }
  std::string state_type() const { return type_ + "::State"; }
  std::array<Expr, 3> grid() const { return {row_blocks(space_, shape_), shape_.splits, 1}; }

  void add_results(Source& source) const {
    source.output(0, space_.kept_view(1), "Y");
    Problem view;
    view.attributes = problem_.attributes;
    view.program = problem_.program;
    view.outputs = {space_.kept_view(1)};
    for (size_t i = 0; i < problem_.operands.size(); ++i) view.operands.push_back(space_.kept_view(2 + i));
    source.fusion(view, 1);
    if (shape_.splits == 1) return;
    source.workspace("states", 0, state_type());
    source.counters("counters", 0);
  }
  // `call` without its arguments.
  SourceLaunch finish(std::string_view call) const {
    Source source(header_);
    const std::string x = declare_row_input(source, problem_, space_);
    add_results(source);
    const std::string_view parts = shape_.splits > 1 ? "states, counters, " : "";
    return source.finish(fmt::format("{}({}, Y_, {}{}{{}}, fusion_);", call, x, parts, type_), grid(),
                         static_cast<uint32_t>(shape_.threads()), row_shared_bytes(space_, shape_, state_bytes_));
  }

  SourceLaunch rows() const {
    return finish(fmt::format("reduce_rows<{}, {}, {}, {}, {}>", kept(), shape_.lanes, shape_.rows_per_block, width(),
                              shape_.unroll));
  }
  SourceLaunch row_parts() const {
    return finish(fmt::format("reduce_row_parts<{}, {}, {}, {}, {}>", kept(), shape_.lanes, width(), shape_.unroll,
                              shape_.splits));
  }
  SourceLaunch strips() const {
    const std::string arguments =
        fmt::format("{}, {}, {}, {}, {}", kept(), shape_.tx(), shape_.ty, width(), shape_.unroll);
    return finish(shape_.splits == 1 ? fmt::format("reduce_columns_whole<{}>", arguments)
                                     : fmt::format("reduce_strips<{}, {}>", arguments, shape_.splits));
  }

  const Problem& problem_;
  const IndexSpace& space_;
  RowShape shape_;
  const std::string& type_;
  const std::string& header_;
  uint32_t state_bytes_;
  bool columns_ = false;
};

}  // namespace

std::vector<Config> configs_of(const Reduction& reduction) {
  return row_configs(reduction.space, false, reduction.state_bytes);
}

Emission emit(const Reduction& reduction, const Problem& problem, const Config& config) {
  const Writer writer(reduction, problem, RowShape::of(config));
  Emission emission;
  emission.inputs = {{StepInput::input, 0}};
  for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
  add_prologue_inputs(problem, emission);
  emission.launches.push_back(writer.launch());
  emission.workspace = writer.workspace();
  emission.counters = writer.counters();
  return emission;
}

}  // namespace lathe::cuda
