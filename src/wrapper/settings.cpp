// SPDX-License-Identifier: Apache-2.0
#include "wrapper/settings.h"

#include <array>
#include <span>

namespace lathe::wrapper {
namespace {

constexpr std::array<std::string_view, 3> kSpecializations = {"lazy", "eager", "none"};
constexpr std::array<std::string_view, 2> kGraphStrategies = {"disabled", "whole_graph_capture"};

std::string list(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  return text;
}

template <class Strategy>
Result<Strategy> by_name(std::string_view what, std::span<const std::string_view> names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Strategy>(i);
  return fail(ErrorCode::invalid_argument, "there is no {} '{}': say one of {}", what, name, list(names));
}

template <class Strategy>
Result<Strategy> by_number(std::string_view what, std::span<const std::string_view> names, int64_t number) {
  if (number >= 0 && number < static_cast<int64_t>(names.size())) return static_cast<Strategy>(number);
  return fail(ErrorCode::invalid_argument, "there is no {} {}: they are numbered 0 to {}, for {}", what, number,
              names.size() - 1, list(names));
}

constexpr std::string_view kSpecialization = "strategy of specializing kernels for dynamic shapes";
constexpr std::string_view kGraphs = "CUDA graph strategy";

}  // namespace

Result<Specialization> parse_specialization(std::string_view name) {
  return by_name<Specialization>(kSpecialization, kSpecializations, name);
}

Result<EngineSettings> parse_settings(const RuntimeSettings& settings) {
  EngineSettings parsed;
  parsed.cache_path = settings.cachePath;
  LATHE_ASSIGN(parsed.specialization, parse_specialization(settings.specialization));
  LATHE_ASSIGN(parsed.graphs, by_name<GraphStrategy>(kGraphs, kGraphStrategies, settings.cudaGraphs));
  return parsed;
}

RuntimeSettings settings_text(const EngineSettings& settings) {
  return {settings.cache_path, std::string(kSpecializations[static_cast<size_t>(settings.specialization)]),
          std::string(kGraphStrategies[static_cast<size_t>(settings.graphs)])};
}

Result<Specialization> specialization_of(int64_t number) {
  return by_number<Specialization>(kSpecialization, kSpecializations, number);
}

Result<GraphStrategy> graph_strategy_of(int64_t number) {
  return by_number<GraphStrategy>(kGraphs, kGraphStrategies, number);
}

}  // namespace lathe::wrapper
