// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/reduce/reduction.h"

#include "kernels/cuda/row_input.h"
#include "kernels/cuda/row_shapes.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

// Writes the launches of one reduction.
class Writer {
 public:
  Writer(const RowReduction& reduction, const Problem& problem, const RowShape& shape)
      : problem_(problem),
        space_(reduction.space),
        shape_(shape),
        type_(reduction.type),
        header_(reduction.header),
        state_bytes_(reduction.state_bytes) {
    columns_ = shape.kind == RowShape::columns || shape.kind == RowShape::strips;
  }

  Expr workspace() const { return shape_.splits == 1 ? Expr(0) : space_.rows() * shape_.splits * state_bytes_; }

  std::vector<SourceLaunch> launches() const {
    std::vector<SourceLaunch> launches;
    launches.push_back(columns_ ? strips() : shape_.kind == RowShape::split ? split_rows() : rows());
    if (shape_.splits > 1) launches.push_back(columns_ ? strip_states() : row_states());
    return launches;
  }

 private:
  int kept() const { return space_.kept(); }
  int width() const { return chunk_width(space_); }
  std::string state_type() const { return type_ + "::State"; }
  std::string object() const { return type_ + "{}"; }
  std::array<Expr, 3> grid() const { return {row_blocks(space_, shape_), shape_.splits, 1}; }

  // What the launch that writes the results needs.
  void add_results(Source& source) const {
    source.output(0, space_.kept_view(1), "Y");
    std::vector<Operand> views;
    for (size_t i = 0; i < problem_.operands.size(); ++i) views.push_back(space_.kept_view(2 + i));
    source.fusion(problem_, space_.kept_view(1), views, 1);
  }
  // A launch that reads x.
  struct Reader {
    Source source;
    std::string x;
  };
  Reader begin() const {
    Reader reader{Source(header_), ""};
    reader.x = declare_row_input(reader.source, problem_, space_);
    return reader;
  }
  // A launch that merges states: of x the dims.
  Source begin_states() const {
    Source source(header_);
    source.input(0, space_.view(0), "X");
    source.workspace("states", 0, state_type());
    add_results(source);
    return source;
  }
  SourceLaunch finish(Source& source, std::string_view call) const {
    return source.finish(call, grid(), static_cast<uint32_t>(shape_.threads()),
                         row_shared_bytes(space_, shape_, state_bytes_));
  }

  SourceLaunch rows() const {
    auto [source, x] = begin();
    add_results(source);
    return finish(source, fmt::format("reduce_rows<{}, {}, {}, {}, {}>({}, Y_, {}, fusion_);", kept(), shape_.lanes,
                                      shape_.rows_per_block, width(), shape_.unroll, x, object()));
  }
  SourceLaunch split_rows() const {
    auto [source, x] = begin();
    source.workspace("states", 0, state_type());
    return finish(source, fmt::format("reduce_split_rows<{}, {}, {}, {}, {}>({}, states, {});", kept(), shape_.lanes,
                                      width(), shape_.unroll, shape_.splits, x, object()));
  }
  SourceLaunch row_states() const {
    constexpr uint32_t kThreads = 128;
    Source source = begin_states();
    const std::string call = fmt::format("reduce_row_states<{}, {}, {}>(X_, Y_, states, {}, fusion_);", kept(),
                                         kThreads, shape_.splits, object());
    return source.finish(call, {space_.rows(), 1, 1}, kThreads, kThreads / 32 * state_bytes_);
  }
  SourceLaunch strips() const {
    auto [source, x] = begin();
    if (shape_.splits > 1) source.workspace("states", 0, state_type());
    if (shape_.splits == 1) add_results(source);
    const std::string arguments =
        fmt::format("{}, {}, {}, {}, {}", kept(), shape_.tx(), shape_.ty, width(), shape_.unroll);
    return finish(source,
                  shape_.splits == 1
                      ? fmt::format("reduce_columns_whole<{}>({}, Y_, {}, fusion_);", arguments, x, object())
                      : fmt::format("reduce_strips<{}, {}>({}, states, {});", arguments, shape_.splits, x, object()));
  }
  SourceLaunch strip_states() const {
    constexpr int64_t kColumns = 32, kShares = 8;
    Source source = begin_states();
    const std::string call = fmt::format("reduce_strip_states<{}, {}, {}, {}>(X_, Y_, states, {}, fusion_);", kept(),
                                         kColumns, kShares, shape_.splits, object());
    Expr blocks = ceildiv(space_.extent(kept() - 1), kColumns);
    for (int i = 0; i + 1 < kept(); ++i) blocks *= space_.extent(i);
    return source.finish(call, {blocks, 1, 1}, kColumns * kShares, kColumns * kShares * state_bytes_);
  }

  const Problem& problem_;
  const IndexSpace& space_;
  RowShape shape_;
  const std::string& type_;
  const std::string& header_;
  uint32_t state_bytes_;
  bool columns_ = false;
};

std::vector<Config> configs(const Problem& problem, const RowReduction& reduction) {
  return row_configs(problem.target, reduction.space, false, reduction.state_bytes);
}

Result<Emission> emit(const Problem& problem, const RowReduction& reduction, const Config& config) {
  const Writer writer(reduction, problem, config.as<RowShape>());
  Emission emission;
  emission.inputs = {{StepInput::input, 0}};
  add_operand_inputs(problem, emission);
  add_prologue_inputs(problem, 0, emission);
  emission.launches = writer.launches();
  emission.workspace = writer.workspace();
  return emission;
}

}  // namespace

Matched match_rows(const Problem& problem, RowReduction reduction) {
  return match_form(problem, std::move(reduction), configs, emit);
}

}  // namespace lathe::cuda
