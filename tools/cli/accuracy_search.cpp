// SPDX-License-Identifier: Apache-2.0
#include "accuracy_search.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "failure.h"

namespace lathe::cli {
namespace {

// Layers whose fate is open are wide in each trial. They are in the order of the network, and so is what is kept.
class Narrowing {
 public:
  explicit Narrowing(const AccuracySearch& search) : search_(search) {}

  AccuracyResult run() {
    result_.error = result_.error_narrow = try_with({});
    if (result_.error_narrow <= search_.budget) return result_;
    const std::vector<std::string>& all = search_.layers;
    result_.error = try_with(all);
    if (result_.error > search_.budget)
      throw Failure(
          fmt::format("--accuracyBudget: with all layers in float32 the error is {:.3g}, above {:g}: no choice "
                      "of layers helps",
                      result_.error, search_.budget));
    result_.wide = all;
    halve(0, all.size());
    return result_;
  }

 private:
  // Of layers [begin, end), which cannot all be narrow.
  void halve(size_t begin, size_t end) {
    if (end - begin <= 1) return decide(end);
    const size_t middle = begin + (end - begin) / 2;
    narrow(begin, middle);
    narrow(middle, end);
  }

  void narrow(size_t begin, size_t end) {
    std::vector<std::string> wide;
    for (const std::string& layer : result_.wide)
      if (std::find(search_.layers.begin() + at(begin), search_.layers.begin() + at(end), layer) ==
          search_.layers.begin() + at(end))
        wide.push_back(layer);
    const double error = try_with(wide);
    if (error > search_.budget) return halve(begin, end);
    result_.wide = std::move(wide);
    result_.error = error;
    decide(end);
  }

  static ptrdiff_t at(size_t index) { return static_cast<ptrdiff_t>(index); }

  double try_with(const std::vector<std::string>& wide) {
    const double error = search_.error_of(wide);
    ++result_.builds;
    fmt::print(stderr, "engine {}: {} of {} layers in float32, error {:.3g}{}\n", result_.builds, wide.size(),
               search_.layers.size(), error, error <= search_.budget ? "" : ", too great");
    return error;
  }

  // Layers before this one are settled. What is left is taken to need as long for each layer.
  void decide(size_t end) {
    const double seconds = seconds_since(start_), left = static_cast<double>(search_.layers.size() - end);
    fmt::print(stderr, "{} of {} layers are settled, {:.0f} s so far, about {:.0f} s to go\n", end,
               search_.layers.size(), seconds, seconds / static_cast<double>(end) * left);
  }

  const AccuracySearch& search_;
  AccuracyResult result_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

double relative_error(const HostTensor& have, const NamedTensor& want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (have.dims != to_vector(want.dims)) return kInfinite;
  double most = 0, largest = 0;
  const auto* wanted = static_cast<const std::byte*>(want.data);
  for (int64_t i = 0; i < volume(have.dims); ++i) {
    const double a = element(have, i), b = element(want.type, wanted, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(b)) largest = std::max(largest, std::fabs(b));
      continue;
    }
    if (!std::isfinite(a - b)) return kInfinite;
    most = std::max(most, std::fabs(a - b));
    largest = std::max(largest, std::fabs(b));
  }
  return largest > 0 ? most / largest : most;
}

AccuracyResult find_wide_layers(const AccuracySearch& search) { return Narrowing(search).run(); }

std::string layer_precisions(const std::vector<std::string>& wide) {
  std::string text;
  for (const std::string& layer : wide) text += (text.empty() ? "" : ",") + layer + ":fp32";
  return text;
}

std::string layer_arguments(const std::vector<std::string>& wide) {
  if (wide.empty()) return "";
  std::string quoted;  // a quote ends the quoted text, stands by itself, and begins another
  for (const char c : layer_precisions(wide)) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return "--precisionConstraints=prefer '--layerPrecisions=" + quoted + "'";
}

}  // namespace lathe::cli
