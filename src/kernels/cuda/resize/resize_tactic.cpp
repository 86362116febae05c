// SPDX-License-Identifier: Apache-2.0
// Separable resizing by tables, in any layout.
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/memory_order.h"
#include "kernels/cuda/source.h"
#include "kernels/resize_tables_tactic.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMaxTaps = 1024;

// The tables of the dimensions that change, as inputs of a source and of a step.
class Samples {
 public:
  // `first`: of the source's inputs. Dimensions are those of `order`.
  Samples(Source& source, size_t first, const std::vector<size_t>& order)
      : source_(source), next_(first), order_(order) {
    taps_.assign(order.size(), 1);
    resized_.assign(order.size(), 0);
  }

  void add(size_t dimension, ResizeTables tables, Emission& emission) {
    size_t at = 0;
    while (order_[at] != dimension) ++at;
    taps_[at] = tables.taps;
    resized_[at] = 1;
    for (Tensor* table : {&tables.index, &tables.weights}) {
      const std::string name = fmt::format("{}{}", table == &tables.index ? "Index" : "Weight", at);
      source_.input(next_++, packed_operand(*table), name);
      members_ += fmt::format("  {} {};\n", name, member_of(name));
      objects_ += objects_.empty() ? name + "_" : ", " + name + "_";
      emission.inputs.push_back({StepInput::packed, emission.packed.size()});
      emission.packed.push_back(std::move(*table));
    }
  }

  void declare() {
    std::string text = "struct Samples {\n" + members_ + dim_function("taps", taps_) +
                       dim_function("is_resized", resized_) + lookup("long source", "Index", "o") +
                       lookup("float weight", "Weight", "1.0f") + "};";
    source_.declare(text);
  }
  std::string object() const { return fmt::format("Samples{{{}}}", objects_); }
  int64_t taps() const {
    int64_t product = 1;
    for (const int64_t taps : taps_) product *= taps;
    return product;
  }

 private:
  static std::string member_of(std::string name) {
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
    return name;
  }
  std::string lookup(std::string_view function, std::string_view table, std::string_view otherwise) const {
    std::string text = fmt::format("  LATHE_DEVICE_MEMBER {}(int i, long o, long t) const {{\n", function);
    for (size_t i = 0; i < taps_.size(); ++i)
      if (resized_[i])
        text += fmt::format("    if (i == {0}) return {1}.data[o * {2}L + t];\n", i,
                            member_of(fmt::format("{}{}", table, i)), taps_[i]);
    return text + fmt::format("    return {};\n  }}\n", otherwise);
  }

  Source& source_;
  size_t next_;
  const std::vector<size_t>& order_;
  std::vector<int64_t> taps_, resized_;
  std::string members_, objects_;
};

// Input elements of one output element, by the filter's reach.
double taps_at_most(const Problem& problem) {
  const auto& attrs = problem.attrs<ResizeAttrs>();
  double taps = 1;
  for (const size_t d : resized_dims(problem)) {
    const double shrink = static_cast<double>(problem.inputs[0].opt_dims[d]) /
                          static_cast<double>(std::max<int64_t>(problem.outputs[0].opt_dims[d], 1));
    const double widening = attrs.antialias ? std::max(1.0, shrink) : 1.0;
    taps *= attrs.mode == ResizeMode::nearest ? 1 : (attrs.mode == ResizeMode::cubic ? 4 : 2) * widening;
  }
  return taps;
}

std::vector<bool> changed_dims(const Problem& problem) {
  std::vector<bool> changed(problem.inputs[0].dims.size());
  for (const size_t d : resized_dims(problem)) changed[d] = true;
  return changed;
}

class ResizeMatch final : public RunMatch {
 public:
  explicit ResizeMatch(const Problem& problem)
      : RunMatch(problem, changed_dims(problem), static_cast<int64_t>(taps_at_most(problem))) {}

  Result<Emission> emit(const Config& config) const override {
    const auto& shape = config.as<RunShape>();
    Emission emission;
    emission.inputs = {{StepInput::input, 0}};
    Source source("resize/resize.cuh");
    source.input(0, x_, "X");
    source.output(0, y_, "Y");
    Samples samples(source, 1, order_);
    for (const size_t d : resized_dims(problem_)) {
      LATHE_ASSIGN(ResizeTables tables, resize_tables(problem_, d));
      samples.add(d, std::move(tables), emission);
    }
    samples.declare();
    declare_epilogue(source, emission);
    const std::string call = fmt::format("resize<Samples, {}, {}, {}>(X_, Y_, {}, fusion_);", samples.taps(),
                                         shape.threads, shape.width, samples.object());
    emission.launches.push_back(finish(source, call, shape));
    return emission;
  }
};

}  // namespace

Matched match_resize(const Problem& problem) {
  if (!problem.is(OpKind::resize)) return refuse("not a resize");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  const DType dtype = problem.inputs[0].dtype;
  if (dtype == DType::f64 || (is_integer(dtype) && size_of(dtype) > 2))
    return refuse(fmt::format("floats do not hold {}", name_of(dtype)));
  if (auto reason = refuse_resize_tables(problem)) return refuse(*std::move(reason));
  if (taps_at_most(problem) > kMaxTaps) return refuse("too many input elements for each output element");
  return std::make_unique<ResizeMatch>(problem);
}

}  // namespace lathe::cuda
