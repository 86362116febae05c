// SPDX-License-Identifier: Apache-2.0
// Copies between tensors of any strides: changes of layout, parts of concatenations, slices, expansions. As a problem:
// a pointwise one with one operand and the identity program. Floats are converted when the types differ.
#include <algorithm>

#include "kernels/cuda/collapse.h"
#include "kernels/cuda/source.h"
#include "kernels/cuda/tiles.h"

namespace lathe::cuda {
namespace {

constexpr uint32_t kThreads = 256;  // kCopyThreads of the header

int access_width(const Operand& operand, int dim) { return unit_dim(operand) == dim ? vector_width(operand) : 1; }

class CopyMatch final : public Match {
 public:
  explicit CopyMatch(const Problem& problem) : target_(problem.target) {
    Operand in = broadcast(problem.operands[0], problem.outputs[0]), out = problem.outputs[0];
    if (in.dtype == out.dtype) in.dtype = out.dtype = raw_type(in.dtype);
    std::vector<Operand> tensors = collapse({out, in});
    bytes_ = opt_bytes(problem.operands[0]) + opt_bytes(problem.outputs[0]);
    out_ = std::move(tensors[0]), in_ = std::move(tensors[1]);
    tiles_ = tiles_for(out_, {&in_, 1});
    width_ = tiles_ ? width_in_tiles() : width_in_rows();
  }

  // The choice: vectors of a thread.
  std::vector<Config> configs() const override {
    const double us = memory_bound_us(target_, bytes_);
    if (tiles_) return {{.text = "tiles", .predicted_us = us, .choice = int64_t{1}}};
    std::vector<Config> configs;
    constexpr double kSmallBytes = 2e6;  // there is no work for more than one vector per thread
    for (const int64_t unroll : {1, 2, 4})
      if (unroll == 1 || bytes_ >= kSmallBytes)
        configs.push_back({.text = fmt::format("unroll={}", unroll), .predicted_us = us, .choice = unroll});
    return configs;
  }

  Result<Emission> emit(const Config& config) const override {
    Emission emission;
    emission.inputs.push_back({StepInput::operand, 0});
    Source source("copy/copy.cuh");
    source.input(0, in_, "In");
    source.output(0, out_, "Out");
    emission.launches.push_back(tiles_ ? by_tiles(source) : by_rows(source, config.as<int64_t>()));
    return emission;
  }

 private:
  // Four bytes at once: what a lane can take from shared memory without waiting for others.
  int width_in_tiles() const {
    const int pack = std::max(1, 4 / static_cast<int>(size_of(in_.dtype)));
    return std::min({pack, vector_width(in_), vector_width(out_)});
  }
  int width_in_rows() const {
    const int last = out_.rank() - 1;
    const int in_width = access_width(in_, last), out_width = access_width(out_, last);
    return in_.strides.back() == Expr(0) ? out_width : std::min(in_width, out_width);
  }

  SourceLaunch by_tiles(Source& source) const {
    return source.finish(fmt::format("copy_tiles<{}, {}, {}>(In_, Out_);", tiles_->size, tiles_->fast, width_),
                         {tiles_->blocks, 1, 1}, Tiles::kThreads, tiles_->bytes(in_.dtype));
  }

  SourceLaunch by_rows(Source& source, int64_t unroll) const {
    Expr vectors = ceildiv(out_.dims.back(), width_);
    for (size_t d = 0; d + 1 < out_.dims.size(); ++d) vectors *= out_.dims[d];
    const std::string call = fmt::format("copy_rows<{}, {}, {}>(In_, Out_);", width_, unroll,
                                         fits_32_bits({in_, out_}) ? "unsigned" : "unsigned long");
    return source.finish(call, {ceildiv(vectors, static_cast<int64_t>(kThreads) * unroll), 1, 1}, kThreads, 0);
  }

  const Target& target_;
  double bytes_ = 0;
  Operand in_, out_;  // collapsed; the output's dims are ordered by its strides
  std::optional<Tiles> tiles_;
  int width_ = 1;  // of vectors
};

}  // namespace

Matched match_copy(const Problem& problem) {
  if (problem.attributes || problem.operands.size() != 1 || !problem.program.is_identity()) return refuse("not a copy");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  const DType from = problem.operands[0].dtype, to = problem.outputs[0].dtype;
  if (from != to && (!is_floating(from) || !is_floating(to)))
    return refuse(fmt::format("does not convert {} to {}", name_of(from), name_of(to)));
  return std::make_unique<CopyMatch>(problem);
}

}  // namespace lathe::cuda
