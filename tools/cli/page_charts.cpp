// SPDX-License-Identifier: Apache-2.0
// Pictures: the roofline of all steps, and the arena from step to step.
#include <algorithm>
#include <cmath>

#include "page_parts.h"

namespace lathe::cli {
namespace {

// A logarithmic axis of whole decades.
struct Axis {
  double from = 0, to = 1;    // decimal logarithms
  double begin = 0, end = 1;  // pixels

  double at(double value) const { return begin + (std::log10(value) - from) / (to - from) * (end - begin); }
};

Axis axis_over(double least, double most, double begin, double end) {
  Axis axis{std::floor(std::log10(least)), std::ceil(std::log10(most)), begin, end};
  if (axis.to <= axis.from) axis.to = axis.from + 1;
  return axis;
}

struct Point {
  size_t step = 0, colour = 0;
  double intensity = 0;  // operations for each byte
  double rate = 0;       // operations in a microsecond
  double share = 0;
  std::string name;
};

std::vector<Point> points_of(const Json& engine, const KernelColours& colours) {
  std::vector<Point> points;
  for (size_t i = 0; i < engine["layers"].size(); ++i) {
    const Json& layer = engine["layers"][i];
    const double operations = number_at(layer, "Operations"), bytes = number_at(layer, "Bytes");
    const double us = 1000 * number_at(layer, "TimeMilliseconds");
    if (operations <= 0 || bytes <= 0 || us <= 0) continue;
    points.push_back({i, colours.of(layer), operations / bytes, operations / us, number_at(layer, "Share"),
                      fmt::format("{}: {}", i, origin_text(layer.value("NetworkLayers", Json())))});
  }
  return points;
}

class Roofline {
 public:
  Roofline(const Json& device, std::vector<Point> points) : device_(device), points_(std::move(points)) {
    double least = 0.1, most = 100, slow = 1e3, fast = 1e5;
    for (const Point& point : points_) {
      least = std::min(least, point.intensity);
      most = std::max(most, point.intensity);
      slow = std::min(slow, point.rate);
      fast = std::max(fast, point.rate);
    }
    for (const auto& [type, rate] : device_["operations_per_us"].items()) {
      fast = std::max(fast, rate.get<double>());
      most = std::max(most, 2 * rate.get<double>() / memory());
    }
    x_ = axis_over(least, most, kLeft, kWidth - 24);
    y_ = axis_over(slow, fast, kHeight - kBottom, 14);
  }

  std::string svg() const {
    return fmt::format(R"(<svg class=chart id=roofline viewBox="0 0 {0} {1}">)", kWidth, kHeight) + grid() + roofs() +
           dots() + "</svg>\n";
  }

 private:
  static constexpr double kWidth = 900, kHeight = 400, kLeft = 64, kBottom = 40;
  double memory() const { return number_at(device_, "memory_bytes_per_us"); }

  std::string grid() const {
    std::string svg;
    for (double decade = x_.from; decade <= x_.to; ++decade) {
      const double value = std::pow(10, decade), x = x_.at(value);
      svg += fmt::format(
          R"(<line class=grid x1={0:.1f} x2={0:.1f} y1={1} y2={2} /><text x={0:.1f} y={3} class=mid>{4:g}</text>)", x,
          y_.end, y_.begin, kHeight - 24, value);
    }
    for (double decade = y_.from; decade <= y_.to; ++decade) {
      const double value = std::pow(10, decade), y = y_.at(value);
      svg += fmt::format(
          R"(<line class=grid x1={0} x2={1} y1={2:.1f} y2={2:.1f} /><text x={3} y={4:.1f} class=end>{5}</text>)",
          x_.begin, x_.end, y, x_.begin - 6, y + 4, count_text(value * 1e6));
    }
    return svg + fmt::format(
                     R"(<text x={} y={} class=mid>operations for each byte</text>)"
                     R"svg(<text class=mid transform="translate(12 {}) rotate(-90)">operations in a second</text>)svg",
                     kWidth / 2, kHeight - 6, kHeight / 2);
  }

  // What comes from memory (or caches) rises to the horizontal line of each type.
  std::string roofs() const {
    double most = 0;
    std::map<double, std::string> types;  // those that are equally fast, together
    for (const auto& [type, rate] : device_["operations_per_us"].items()) {
      std::string& names = types[rate.get<double>()];
      names += (names.empty() ? "" : ", ") + type;
      most = std::max(most, rate.get<double>());
    }
    std::string svg = slope(memory(), most, "memory") + slope(number_at(device_, "cache_bytes_per_us"), most, "caches");
    for (const auto& [rate, names] : types)
      svg += fmt::format(
          R"(<line class=roof x1={:.1f} x2={:.1f} y1={:.1f} y2={:.1f} /><text class=end x={} y={:.1f}>{}</text>)",
          x_.at(std::max(rate / memory(), std::pow(10, x_.from))), x_.end, y_.at(rate), y_.at(rate), x_.end - 4,
          y_.at(rate) - 5, escaped(names));
    return svg;
  }

  std::string slope(double bytes, double most, std::string_view name) const {
    if (bytes <= 0) return "";
    const double low = std::max(std::pow(10, x_.from), std::pow(10, y_.from) / bytes);
    const double high = std::min(most / bytes, std::pow(10, x_.to));
    if (high <= low) return "";
    const double x = x_.at(low), y = y_.at(low * bytes);
    return fmt::format(
        R"(<line class=roof x1={:.1f} y1={:.1f} x2={:.1f} y2={:.1f} /><text x={:.1f} y={:.1f}>{}</text>)", x, y,
        x_.at(high), y_.at(high * bytes), x + 8, y - 12, name);
  }

  std::string dots() const {
    std::string svg;
    for (const Point& point : points_)
      svg += fmt::format(
          R"(<a href="#s{0}"><circle data-step="{0}" class="k{1}" cx={2:.1f} cy={3:.1f} r={4:.1f}><title>{5}: {6} operations/s, {7:.2f} for each byte, {8:.1f} % of the time</title></circle></a>)",
          point.step, point.colour, x_.at(point.intensity), y_.at(point.rate), 3 + 12 * std::sqrt(point.share),
          escaped(point.name), count_text(point.rate * 1e6), point.intensity, 100 * point.share);
    return svg;
  }

  const Json& device_;
  std::vector<Point> points_;
  Axis x_, y_;
};

}  // namespace

std::string roofline_section(const Json& engine, const KernelColours& colours) {
  if (!engine["device"].is_object())
    return "<h2>Roofline</h2><p class=note>The engine keeps no rates of its target: build it with detailed profiling "
           "verbosity.</p>\n";
  std::vector<Point> points = points_of(engine, colours);
  const size_t others = engine["layers"].size() - points.size();
  std::string html =
      "<h2>Roofline</h2><p class=note>Each step by what it computes for each byte that it moves, and how "
      "fast; the size is its share of the time. Lines are the rates of the target that the cost model "
      "reckons with. Steps above the line of the memory find their operands in caches.";
  if (others > 0) html += fmt::format(" Steps of which no operations are counted are left out: {}.", others);
  return html + "</p>\n" + Roofline(engine["device"], std::move(points)).svg();
}

std::string memory_section(const Json& engine) {
  constexpr double kWidth = 900, kHeight = 260, kLeft = 64, kBottom = 22;
  double most = 0;
  for (const Json& buffer : engine["buffers"])
    most = std::max(most, number_at(buffer, "offset") + number_at(buffer, "bytes"));
  if (most <= 0) return "<h2>Memory</h2><p class=note>No memory between steps, or its sizes have no limit.</p>\n";
  const auto steps = std::max<double>(1, static_cast<double>(engine["layers"].size()));
  const double across = (kWidth - kLeft - 8) / steps, up = (kHeight - kBottom - 8) / most;
  std::string svg = fmt::format(
      "<h2>Memory</h2><p class=note>Pieces of the arena, from the step that first writes them to the last that reads "
      "them, "
      "at the sizes that were tuned for: <span data-key=\"arena_bytes\" data-value=\"{0:.0f}\">{1}</span> in all, "
      "besides "
      "weights.</p>\n<svg class=chart id=memory viewBox=\"0 0 {2} {3}\">"
      "<line class=grid x1={4} x2={4} y1=8 y2={5} /><line class=grid x1={4} x2={6} y1={5} y2={5} />"
      "<text class=end x={7} y=16>{1}</text><text class=end x={7} y={5}>0</text>"
      "<text x={4} y={8}>step 0</text><text class=end x={6} y={8}>step {9}</text>",
      most, human_bytes(most), kWidth, kHeight, kLeft, kHeight - kBottom, kWidth - 8, kLeft - 6, kHeight - 6,
      steps - 1);
  for (size_t i = 0; i < engine["buffers"].size(); ++i) {
    const Json& buffer = engine["buffers"][i];
    const double bytes = number_at(buffer, "bytes"), offset = number_at(buffer, "offset");
    const double first = number_at(buffer, "first"), last = number_at(buffer, "last");
    svg += fmt::format(
        R"(<rect data-buffer="{}" data-bytes="{}" data-offset="{}" class="k{}" x={:.2f} y={:.2f} width={:.2f} height={:.2f}><title>{} at {}, steps {} to {}</title></rect>)",
        i, buffer["bytes"].dump(), buffer["offset"].dump(), i % (KernelColours::kColours - 1), kLeft + first * across,
        kHeight - kBottom - (offset + bytes) * up, (last - first + 1) * across, bytes * up, human_bytes(bytes),
        buffer["offset"].dump(), first, last);
  }
  return svg + "</svg>\n";
}

}  // namespace lathe::cli
