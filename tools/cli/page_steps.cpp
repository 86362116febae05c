// SPDX-License-Identifier: Apache-2.0
// The network as the engine runs it: a row for each step, and lanes between them for what one writes and others read.
#include <algorithm>
#include <map>
#include <set>

#include "page_parts.h"

namespace lathe::cli {
namespace {

constexpr int kLeast = 56, kMost = 260;  // pixels that lanes take
constexpr int kDot = 12;                 // from the right edge to the dots of steps

// A piece of memory between the steps that write it and those that read it. Rows are counted from 0; -1 is above them.
struct Lane {
  std::string name;
  std::set<int> writers, readers;
  int first = 0, last = 0;
  int column = 0;  // 0 = straight down from one step to the next
};

std::vector<Lane> find_lanes(const Json& engine) {
  std::map<std::pair<std::string, int64_t>, Lane> by_storage;
  const Json& layers = engine["layers"];
  for (size_t i = 0; i < layers.size(); ++i)
    for (const bool writes : {false, true})
      for (const Json& id : layers[i].value(writes ? "OutputTensors" : "InputTensors", Json::array())) {
        const Json& tensor = engine["tensors"].at(id.get<size_t>());
        const std::string storage = text_at(tensor, "storage");
        if (storage == "constant") continue;
        Lane& lane = by_storage[{storage, tensor["index"].get<int64_t>()}];
        if (lane.name.empty()) lane.name = text_at(tensor, "name") + ": " + type_text(tensor);
        (writes ? lane.writers : lane.readers).insert(static_cast<int>(i));
      }
  std::vector<Lane> lanes;
  for (auto& [storage, lane] : by_storage) {
    if (lane.readers.empty()) continue;
    if (lane.writers.empty()) lane.writers.insert(-1);
    lane.first = std::min(*lane.writers.begin(), *lane.readers.begin());
    lane.last = std::max(*lane.writers.rbegin(), *lane.readers.rbegin());
    lanes.push_back(std::move(lane));
  }
  std::stable_sort(lanes.begin(), lanes.end(), [](const Lane& a, const Lane& b) { return a.first < b.first; });
  return lanes;
}

// Lanes that overlap are side by side. Returns how many columns there are besides the straight one.
int arrange(std::vector<Lane>& lanes) {
  std::vector<int> ends;  // by column
  for (Lane& lane : lanes) {
    if (lane.first >= 0 && lane.last <= lane.first + 1) continue;
    const auto free = std::find_if(ends.begin(), ends.end(), [&](int end) { return end <= lane.first; });
    lane.column = static_cast<int>(free - ends.begin()) + 1;
    if (free == ends.end())
      ends.push_back(lane.last);
    else
      *free = lane.last;
  }
  return static_cast<int>(ends.size());
}

int width_for(int columns) { return std::clamp(24 + 10 * columns, kLeast, kMost); }
int middle(int row) { return row * kRowHeight + kRowHeight / 2; }

std::string path_of(const Lane& lane, double x, int dot) {
  constexpr int kBend = kRowHeight / 2;
  if (lane.column == 0) return fmt::format("M{} {}V{}", dot, middle(lane.first), middle(lane.last));
  std::string path;
  for (const int row : lane.writers)
    if (row >= 0)
      path += fmt::format("M{} {}Q{:.1f} {} {:.1f} {}", dot, middle(row), x, middle(row), x, middle(row) + kBend);
  for (const int row : lane.readers)
    path += fmt::format("M{} {}Q{:.1f} {} {:.1f} {}", dot, middle(row), x, middle(row), x, middle(row) - kBend);
  const int top = lane.first < 0 ? 0 : middle(lane.first) + kBend;
  return path + fmt::format("M{:.1f} {}V{}", x, top, std::max(top, middle(lane.last) - kBend));
}

// `longest`: the greatest share that a step has of the time.
std::string row_of(const Json& layer, size_t step, size_t colour, double longest) {
  const double time = number_at(layer, "TimeMilliseconds"), floor = number_at(layer, "FloorMilliseconds");
  const double share = number_at(layer, "Share");
  const std::string origin = origin_text(layer.value("NetworkLayers", Json()));
  std::string result;
  for (const Json& tensor : layer.value("Outputs", Json::array()))
    result += (result.empty() ? "" : ", ") + to_text(tensor["Dimensions"].get<std::vector<int64_t>>());
  return fmt::format(
             R"(<tr id="r{0}" data-step="{0}"><td class=n>{0}<td class=lane><td class=name style="padding-left:{1}px">)"
             R"(<a href="#s{0}" title="{4}"><i class="dot k{2}"></i>{3} <small>{4}</small></a>)",
             step, 6 + 16 * static_cast<int>(number_at(layer, "Depth")), colour, escaped(text_at(layer, "LayerType")),
             escaped(origin.empty() ? text_at(layer, "Name") : origin)) +
         fmt::format("<td class=cut>{}<td class=cut>{}", escaped(result), escaped(text_at(layer, "Precision"))) +
         number_cell("TimeMilliseconds", layer.value("TimeMilliseconds", Json()), time_text(time)) +
         number_cell("Share", layer.value("Share", Json()), share > 0 ? fmt::format("{:.1f} %", 100 * share) : "") +
         fmt::format(R"(<td><i class="share k{}" style="width:{:.2f}%"></i>)", colour,
                     longest > 0 ? 100 * share / longest : 0) +
         number_cell("FloorMilliseconds", layer.value("FloorMilliseconds", Json()), ratio_text(time, floor)) +
         fmt::format("<td>{}</tr>\n", escaped(text_at(layer, "Bound")));
}

}  // namespace

int lanes_width(const Json& engine) {
  std::vector<Lane> lanes = find_lanes(engine);
  return width_for(arrange(lanes));
}

std::string lanes_svg(const Json& engine) {
  std::vector<Lane> lanes = find_lanes(engine);
  const int columns = arrange(lanes), width = width_for(columns), dot = width - kDot;
  const double spacing = columns > 0 ? std::min(10.0, (dot - 12.0) / columns) : 0;
  const auto rows = static_cast<int>(engine["layers"].size());
  std::string svg =
      fmt::format(R"(<svg class=lanes width={0} height={1} viewBox="0 0 {0} {1}">)", width, rows * kRowHeight);
  for (const Lane& lane : lanes) {
    std::string steps = " ";
    for (const std::set<int>* ends : {&lane.writers, &lane.readers})
      for (const int row : *ends) steps += fmt::format("{} ", row);
    svg += fmt::format(R"(<path d="{}" data-steps="{}"><title>{}</title></path>)",
                       path_of(lane, dot - 4 - lane.column * spacing, dot), steps, escaped(lane.name));
  }
  for (int row = 0; row < rows; ++row) svg += fmt::format(R"(<circle cx={} cy={} r=3.5 />)", dot, middle(row));
  return svg + "</svg>";
}

std::string steps_section(const Json& engine, const KernelColours& colours) {
  std::string html = fmt::format(
      "<h2 id=steps>Steps</h2><p class=note>In the order in which they run. A line on the left is memory that one step "
      "writes and others read, from above: inputs of the engine. A step's name opens all that is known of it. Times "
      "are "
      "{}. <label id=search hidden>Find <input type=search placeholder=\"layer, kernel, type\"></label> "
      "<span id=found></span></p>\n"
      "<div class=scroll><div class=steps>{}<table id=steps-table><colgroup><col style=\"width:44px\">"
      "<col style=\"width:{}px\"><col><col style=\"width:130px\"><col style=\"width:110px\"><col style=\"width:84px\">"
      "<col style=\"width:74px\"><col style=\"width:90px\"><col style=\"width:64px\"><col style=\"width:98px\">"
      "</colgroup><tr><th class=n>#<th><th>does the work of<th>result<th>types<th class=n>time<th class=n>share<th>"
      "<th class=n>x floor<th>bound by</tr>\n",
      escaped(text_at(engine, "time_source")), lanes_svg(engine), lanes_width(engine));
  double longest = 0;
  for (const Json& layer : engine["layers"]) longest = std::max(longest, number_at(layer, "Share"));
  for (size_t i = 0; i < engine["layers"].size(); ++i) {
    const Json layer = as_object(engine["layers"][i]);
    html += row_of(layer, i, colours.of(layer), longest);
  }
  return html + "</table></div></div>\n";
}

}  // namespace lathe::cli
