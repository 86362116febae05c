// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "kernels/cuda/generic/op_source.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kHeader = "generic/indexing.cuh";

Result<Emission> emit_gather_call(const Problem& problem, std::string_view function) {
  if (problem.inputs[0].dtype != problem.outputs[0].dtype)
    return fail(ErrorCode::no_tactic, "elements are moved as they are, and not converted");
  Emission emission;
  OpSource source(kHeader, problem, emission);
  const std::string data = source.input(0, true), indices = source.input(1), out = source.output(0, true);
  source.finish(fmt::format("{}({}, {}, {});", function, data, indices, out), volume(problem.outputs[0].dims));
  return emission;
}

Result<Emission> emit_gather(const Problem& problem) {
  LATHE_ASSIGN(const int64_t axis, normalize_axis(problem.attrs<GatherAttrs>().axis, problem.inputs[0].rank()));
  return emit_gather_call(problem, fmt::format("gather<{}>", axis));
}

Result<Emission> emit_gather_elements(const Problem& problem) {
  LATHE_ASSIGN(const int64_t axis, normalize_axis(problem.attrs<GatherElementsAttrs>().axis, problem.inputs[0].rank()));
  return emit_gather_call(problem, fmt::format("gather_elements<{}>", axis));
}

Result<int64_t> tuple_depth(const Problem& problem) {
  const std::optional<int64_t> depth = problem.inputs[1].dims.back().as_constant();
  if (!depth) return fail(ErrorCode::no_tactic, "the length of its index tuples is only known while running");
  return *depth;
}

Result<Emission> emit_gather_nd(const Problem& problem) {
  LATHE_ASSIGN(const int64_t depth, tuple_depth(problem));
  return emit_gather_call(problem, fmt::format("gather_nd<{}, {}>", problem.attrs<GatherNdAttrs>().batch_dims, depth));
}

// The launches of a scatter: the data, the updates in their order, and the rounding of 16-bit floats, whose sums stay
// in f32 until then.
class Scatter {
 public:
  Scatter(const Problem& problem, ScatterReduction reduction)
      : problem_(problem),
        raw_(reduction == ScatterReduction::none),
        buffered_(!raw_ && (problem.outputs[0].dtype == DType::f16 || problem.outputs[0].dtype == DType::bf16)) {}

  // `function` is called with indices, updates, output and sums.
  Emission emit(std::string_view function, const Expr& threads) {
    const Expr elements = volume(problem_.outputs[0].dims);
    if (!problem_.in_place || buffered_) {
      OpSource source(kHeader, problem_, emission_);
      const std::string data = source.input(0, raw_), out = source.output(0, raw_);
      source.finish(fmt::format("scatter_begin({}, {}, {});", data, out, sums(source)), elements);
    }
    {
      OpSource source(kHeader, problem_, emission_);
      const std::string indices = source.input(1), updates = source.input(2, raw_), out = source.output(0, raw_);
      source.finish(fmt::format("{}({}, {}, {}, {});", function, indices, updates, out, sums(source)), threads);
    }
    if (buffered_) {
      OpSource source(kHeader, problem_, emission_);
      const std::string out = source.output(0);
      source.finish(fmt::format("scatter_end({}, {});", out, sums(source)), elements);
      emission_.workspace = elements * static_cast<int64_t>(sizeof(float));
    }
    return std::move(emission_);
  }

 private:
  std::string sums(OpSource& source) const {
    if (!buffered_) return "InPlace<Out0>{Out0_}";
    source.source().workspace("sums", 0, "float");
    return "InBuffer<Out0>{Out0_, sums}";
  }

  const Problem& problem_;
  bool raw_, buffered_;
  Emission emission_;
};

Result<Emission> emit_scatter_elements(const Problem& problem) {
  const auto& attrs = problem.attrs<ScatterElementsAttrs>();
  LATHE_ASSIGN(const int64_t axis, normalize_axis(attrs.axis, problem.inputs[0].rank()));
  Expr lines = 1;
  for (size_t d = 0; d < problem.inputs[1].dims.size(); ++d)
    if (static_cast<int64_t>(d) != axis) lines *= problem.inputs[1].dims[d];
  return Scatter(problem, attrs.reduction).emit(fmt::format("scatter_elements<Attributes, {}>", axis), lines);
}

Result<Emission> emit_tensor_scatter(const Problem& problem) {
  const auto& attrs = problem.attrs<TensorScatterAttrs>();
  LATHE_ASSIGN(const int64_t axis, normalize_axis(attrs.axis, problem.inputs[0].rank()));
  Emission emission;
  if (!problem.in_place) {
    OpSource source(kHeader, problem, emission);
    const std::string x = source.input(0, true), out = source.output(0, true);
    source.finish(fmt::format("scatter_begin({}, {}, InPlace<Out0>{{Out0_}});", x, out),
                  volume(problem.outputs[0].dims));
  }
  OpSource source(kHeader, problem, emission);
  const std::string update = source.input(1, true), out = source.output(0, true);
  const std::string first = source.has(2) ? source.contents(2, "First") : source.list("First", {0});
  source.finish(
      fmt::format("tensor_scatter<{}, {}, {}>({}, {}, {});", axis, attrs.circular, source.has(2), update, first, out),
      volume(problem.inputs[1].dims));
  return emission;
}

Expr product(const Shape& dims, int64_t begin, int64_t end) {
  return volume(Shape(dims.begin() + begin, dims.begin() + end));
}

// Without a reduction, where all but the updates stays: few of them, for each is looked for among those behind it.
bool overwrites_few(const Problem& problem) {
  constexpr int64_t kMostTuples = 4096;
  const Dims& indices = problem.inputs[1].opt_dims;
  return problem.in_place &&
         std::accumulate(indices.begin(), indices.end() - 1, int64_t{1}, std::multiplies<>()) <= kMostTuples;
}
Emission emit_overwriting_in_place(const Problem& problem, int64_t depth) {
  constexpr uint32_t kThreads = 128;
  Emission emission;
  OpSource source(kHeader, problem, emission);
  const std::string indices = source.input(1), updates = source.input(2, true), out = source.output(0, true);
  source.finish_blocks(fmt::format("scatter_nd_in_place<{}>({}, {}, {});", depth, indices, updates, out),
                       product(problem.inputs[1].dims, 0, problem.inputs[1].rank() - 1), kThreads, sizeof(int32_t));
  return emission;
}

// Without a reduction: every sub-tensor's last tuple is found first.
Emission emit_overwriting(const Problem& problem, int64_t depth) {
  Emission emission;
  const Shape& dims = problem.outputs[0].dims;
  const Expr subtensors = product(dims, 0, depth);
  emission.workspace = subtensors * static_cast<int64_t>(sizeof(int32_t));
  {
    OpSource source(kHeader, problem, emission);
    const std::string out = source.output(0, true);
    source.source().workspace("winners", 0, "int");
    source.finish(fmt::format("scatter_nd_clear<{}>({}, winners);", depth, out), subtensors);
  }
  {
    OpSource source(kHeader, problem, emission);
    const std::string indices = source.input(1), out = source.output(0, true);
    source.source().workspace("winners", 0, "int");
    source.finish(fmt::format("scatter_nd_claim<{}>({}, {}, winners);", depth, indices, out),
                  product(problem.inputs[1].dims, 0, problem.inputs[1].rank() - 1));
  }
  OpSource source(kHeader, problem, emission);
  const std::string data = source.input(0, true), indices = source.input(1), updates = source.input(2, true);
  const std::string out = source.output(0, true);
  source.source().workspace("winners", 0, "int");
  source.finish(fmt::format("scatter_nd_write<{}>({}, {}, {}, {}, winners);", depth, data, indices, updates, out),
                volume(dims));
  return emission;
}

Result<Emission> emit_scatter_nd(const Problem& problem) {
  LATHE_ASSIGN(const int64_t depth, tuple_depth(problem));
  const ScatterReduction reduction = problem.attrs<ScatterNdAttrs>().reduction;
  if (reduction == ScatterReduction::none)
    return overwrites_few(problem) ? emit_overwriting_in_place(problem, depth) : emit_overwriting(problem, depth);
  const Shape& dims = problem.outputs[0].dims;
  return Scatter(problem, reduction)
      .emit(fmt::format("scatter_nd<Attributes, {}>", depth), product(dims, depth, problem.outputs[0].rank()));
}

}  // namespace

std::span<const GenericOp> indexing_ops() {
  static constexpr GenericOp kOps[] = {
      {OpKind::gather, emit_gather},         {OpKind::gather_elements, emit_gather_elements},
      {OpKind::gather_nd, emit_gather_nd},   {OpKind::scatter_elements, emit_scatter_elements},
      {OpKind::scatter_nd, emit_scatter_nd}, {OpKind::tensor_scatter, emit_tensor_scatter},
  };
  return kOps;
}

}  // namespace lathe::cuda
