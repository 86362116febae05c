// SPDX-License-Identifier: Apache-2.0
#include "tactic_sources.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "failure.h"
#include "lathe.h"

namespace lathe::cli {
namespace {

nvinfer1::TacticSource tactic_source(std::string_view name) {
  using nvinfer1::TacticSource;
  constexpr std::pair<std::string_view, TacticSource> kSources[] = {
      {"CUBLAS_LT", kCUBLAS_LT},
      {"CUDNN", kCUDNN},
      {"EDGE_MASK_CONVOLUTIONS", TacticSource::kEDGE_MASK_CONVOLUTIONS},
      {"JIT_CONVOLUTIONS", TacticSource::kJIT_CONVOLUTIONS}};
  for (const auto& [known, source] : kSources)
    if (name == known) return source;
  throw UsageError(fmt::format(
      "--tacticSources: there is no '{}'; CUBLAS_LT, CUDNN, EDGE_MASK_CONVOLUTIONS and JIT_CONVOLUTIONS are known",
      name));
}

}  // namespace

void set_tactic_sources(nvinfer1::IBuilderConfig& config, std::string_view text) {
  nvinfer1::TacticSources sources = config.getTacticSources();
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (part.size() < 2 || (part[0] != '+' && part[0] != '-'))
      throw UsageError(fmt::format("--tacticSources: '{}' is no change: say +NAME or -NAME", part));
    const nvinfer1::TacticSources bit = 1U << static_cast<uint32_t>(tactic_source(part.substr(1)));
    sources = part[0] == '+' ? sources | bit : sources & ~bit;
  }
  if (!config.setTacticSources(sources)) throw UsageError(lastError());
}

}  // namespace lathe::cli
