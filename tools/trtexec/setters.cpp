// SPDX-License-Identifier: Apache-2.0
#include "trtexec/setters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lathe::trtexec::setters {
namespace {

using cli::UsageError;

std::string one_of(std::string_view flag, std::string_view value, const std::vector<const char*>& known) {
  if (std::find(known.begin(), known.end(), value) == known.end())
    throw UsageError(fmt::format("{}: '{}' is none of {}", flag, value, fmt::join(known, ", ")));
  return std::string(value);
}

// Shapes or files that are given twice for one name would have one of them ignored.
template <class Map>
void merge(std::string_view flag, Map& into, Map&& from) {
  for (auto& [name, value] : from)
    if (!into.emplace(name, std::move(value)).second)
      throw UsageError(fmt::format("{}: '{}' is given twice", flag, name));
}

std::map<std::string, std::string> files_of(std::string_view flag, std::string_view value) {
  std::map<std::string, std::string> files;
  for (auto& [name, path] : named_values(flag, value)) merge(flag, files, {{name, path}});
  return files;
}

constexpr int64_t kMostProfiles = 64, kMostPairs = 1024;

}  // namespace

FlagSetter choice(std::string Options::*member, std::initializer_list<const char*> known) {
  return [member, known = std::vector<const char*>(known)](Options& options, std::string_view flag,
                                                           std::string_view value) {
    options.*member = one_of(flag, value, known);
  };
}

FlagSetter ratio(double Options::*member) {
  return [member](Options& options, std::string_view flag, std::string_view value) {
    options.*member = real_number(flag, value);
    if (options.*member < 0 || options.*member > 1)
      throw UsageError(fmt::format("{}: {} is not from 0 to 1", flag, value));
  };
}

FlagSetter bytes(std::optional<int64_t> Options::*member) {
  return [member](Options& options, std::string_view flag, std::string_view value) {
    options.*member = whole_number(flag, value, 0, INT64_MAX);
  };
}

FlagSetter list(std::vector<std::string> Options::*member) {
  return [member](Options& options, std::string_view, std::string_view value) {
    for (std::string& word : words(value)) (options.*member).push_back(std::move(word));
  };
}

FlagSetter add(std::vector<std::string> Options::*member) {
  return
      [member](Options& options, std::string_view, std::string_view value) { (options.*member).emplace_back(value); };
}

FlagSetter named_files(std::map<std::string, std::string> Options::*member) {
  return [member](Options& options, std::string_view flag, std::string_view value) {
    merge(flag, options.*member, files_of(flag, value));
  };
}

FlagSetter formats(std::vector<IoFormat> Options::*member) {
  return [member](Options& options, std::string_view flag, std::string_view value) {
    options.*member = formats_of(flag, value);
  };
}

FlagSetter profile_shapes(cli::ShapeMap cli::ShapeRanges::*member) {
  return [member](Options& options, std::string_view flag, std::string_view value) {
    merge(flag, options.profiles[options.profile].*member, shapes_of(flag, value));
  };
}

FlagSetter pair_files(std::map<std::string, std::string> ReferencePair::*member) {
  return [member](Options& options, std::string_view flag, std::string_view value) {
    merge(flag, options.pairs[options.pair].*member, files_of(flag, value));
  };
}

FlagSetter begin_profile() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    options.profile = static_cast<size_t>(whole_number(flag, value, 0, kMostProfiles - 1));
    options.profiles.resize(std::max(options.profiles.size(), options.profile + 1));
  };
}

FlagSetter begin_pair() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    options.pair = static_cast<size_t>(whole_number(flag, value, 0, kMostPairs - 1));
    options.pairs.resize(std::max(options.pairs.size(), options.pair + 1));
  };
}

FlagSetter shapes() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    merge(flag, options.shapes, shapes_of(flag, value));
  };
}

FlagSetter pools() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    for (const auto& [pool, size] : pools_of(flag, value)) options.pools[pool] = size;
  };
}

FlagSetter workspace() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    options.pools[nvinfer1::MemoryPoolType::kWORKSPACE] = size_of(flag, value);
  };
}

FlagSetter verbosity() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    using nvinfer1::ProfilingVerbosity;
    const std::string word = one_of(flag, value, {"layer_names_only", "detailed", "none", "default", "verbose"});
    options.profiling_verbosity = word == "detailed" || word == "verbose" ? ProfilingVerbosity::kDETAILED
                                  : word == "none"                        ? ProfilingVerbosity::kNONE
                                                                          : ProfilingVerbosity::kLAYER_NAMES_ONLY;
  };
}

FlagSetter best() {
  return [](Options& options, std::string_view, std::string_view) { options.fp16 = options.int8 = true; };
}

FlagSetter runtime() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    options.use_runtime = one_of(flag, value, {"full", "lean", "dispatch"});
  };
}

FlagSetter duration() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    options.seconds = real_number(flag, value);
    if (options.seconds < 0 && options.seconds != -1)
      throw UsageError(fmt::format("{}: {} is negative; -1 runs until it is interrupted", flag, value));
  };
}

FlagSetter percentiles() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    options.percentiles.clear();
    for (const std::string& word : words(value)) {
      const double percent = real_number(flag, word);
      if (percent < 0 || percent > 100) throw UsageError(fmt::format("{}: {} is not from 0 to 100", flag, word));
      options.percentiles.push_back(percent);
    }
  };
}

FlagSetter generation() {
  return [](Options& options, std::string_view flag, std::string_view value) {
    options.generation = static_cast<int>(whole_number(flag, value, 10, 11));
  };
}

}  // namespace lathe::trtexec::setters
