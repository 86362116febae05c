// SPDX-License-Identifier: Apache-2.0
// Group normalisation of channels that lie side by side at each position.
#include <algorithm>

#include "base/divide.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/normalization/normalization.h"
#include "kernels/cuda/row_input.h"
#include "kernels/cuda/row_shapes.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kHeader = "group_normalization/group_normalization.cuh";
constexpr int64_t kStateBytes = 12, kPartBytes = 8, kFactorsBytes = 8;

struct Groups {
  Normalization normalization;  // by channel
  int64_t channels, groups;

  const IndexSpace& space() const { return normalization.space; }
  int64_t width() const { return chunk_width(space()); }
  int64_t across() const { return channels / width(); }  // threads of a position
  Expr batch() const {
    Expr batch = 1;
    for (int i = 0; i + 1 < space().kept(); ++i) batch *= space().extent(i);
    return batch;
  }
};

// The choice.
struct Blocks {
  int64_t rows;    // positions that a block reads at once
  int64_t splits;  // blocks of an image
};

int64_t threads_of(const Groups& groups, const Blocks& blocks) { return round_up(groups.across() * blocks.rows, 32); }

std::vector<Config> configs(const Problem& problem, const Groups& groups) {
  constexpr int64_t kMostShared = 64 * 1024, kOfThread = 4;  // positions of a thread, which it loads at once
  constexpr double kMemoryShare = 0.625, kPasses = 2.5, kWorse = 1.05;
  const Target& target = problem.target;
  const int64_t positions = std::max<int64_t>(groups.space().opt_length(), 1);
  const int64_t batch = std::max<int64_t>(groups.space().opt_rows() / groups.channels, 1);
  const double bytes =
      static_cast<double>(positions * batch * groups.channels) * static_cast<double>(size_of(problem.inputs[0].dtype));
  double us = 2 * target.launch_us + kPasses * bytes / (kMemoryShare * target.memory_rate);
  std::vector<Config> all;
  for (const int64_t threads : {640, 320}) {
    const int64_t most = std::min(threads / groups.across(), kMostShared / kStateBytes / groups.channels);
    const int64_t rows = std::clamp<int64_t>(ceil_div(positions, kOfThread), 1, std::max<int64_t>(most, 1));
    const int64_t least = ceil_div(positions * batch, 2 * target.cores);
    const Blocks blocks{rows, ceil_div(positions, round_up(std::max(rows * kOfThread, least), rows))};
    Config config{.text = fmt::format("{} positions splits={}", blocks.rows, blocks.splits),
                  .predicted_us = us,
                  .choice = blocks};
    if (all.empty() || all.back().text != config.text) all.push_back(std::move(config));
    us *= kWorse;
  }
  return all;
}

Result<Emission> emit(const Problem& problem, const Groups& groups, const Config& config) {
  const auto& blocks = config.as<Blocks>();
  const Normalization& normalization = groups.normalization;
  const IndexSpace& space = groups.space();
  const std::string shape =
      fmt::format("group_normalization::Shape<{}, {}, {}, {}, {}, {}>", space.kept(), groups.width(), groups.across(),
                  blocks.rows, groups.channels / groups.groups, blocks.splits);
  const std::string moments = fmt::format("Moments{{{}}}", normalization.statistic.members);
  const std::array<Expr, 3> grid{groups.batch(), blocks.splits, 1};
  const auto threads = static_cast<uint32_t>(threads_of(groups, blocks));
  Emission emission = inputs_of(problem, normalization);

  Source summary(kHeader);
  const std::string x = declare_row_input(summary, problem, space);
  summary.workspace("states", 0, "group_normalization::PartState");
  emission.launches.push_back(
      summary.finish(fmt::format("group_normalization::summarize_groups<{}>({}, states, {});", shape, x, moments), grid,
                     threads, static_cast<uint32_t>(blocks.rows * groups.channels * kStateBytes)));

  Source source(kHeader);
  const NormalizedText text = declare_normalized(source, problem, normalization);
  source.workspace("states", 0, "group_normalization::PartState");
  emission.launches.push_back(
      source.finish(fmt::format("group_normalization::normalize_groups<{}>({}, states, {}, {}, fusion_, {});", shape,
                                text.x, moments, text.affine, text.results),
                    grid, threads, static_cast<uint32_t>(groups.groups * kFactorsBytes)));
  emission.workspace = groups.batch() * Expr(groups.groups * blocks.splits * kPartBytes);
  return emission;
}

}  // namespace

Matched match_group_normalization(const Problem& problem) {
  constexpr int64_t kMostAcross = 512;
  std::optional<RowNormalization> rows = row_normalization(problem);
  if (!rows || rows->groups == 0) return refuse("not a group normalization");
  if (auto reason = refuse_row_problem(problem, {.further_program_results = true})) return refuse(*std::move(reason));
  if (auto reason = refuse_types(problem)) return refuse(*std::move(reason));
  const std::optional<int64_t> channels = problem.inputs[0].dims[1].as_constant();
  if (!channels || *channels == 0) return refuse("channels whose number is not known");
  const int64_t count = std::exchange(rows->groups, 0);
  Groups groups{normalization_of(problem, *rows), *channels, count};
  const IndexSpace& space = groups.space();
  if (!has_columns(space) || space.opt_extent(space.kept() - 1) != *channels || groups.width() == 1)
    return refuse("channels that do not lie side by side in whole vectors");
  if (groups.across() > kMostAcross) return refuse(fmt::format("{} channels", *channels));
  return match_form(problem, std::move(groups), configs, emit);
}

}  // namespace lathe::cuda
