// SPDX-License-Identifier: Apache-2.0
#include "page.h"

#include <algorithm>
#include <cmath>

#include "page_parts.h"

namespace lathe::cli {
namespace {

std::string card(std::string_view title, const char* key, const Json& value, std::string_view shown) {
  return fmt::format(R"(<div class="card"><span>{}</span><b data-key="{}" data-value="{}">{}</b></div>)", title, key,
                     escaped(value.is_string() ? value.get<std::string>() : value.dump()), escaped(shown));
}

std::string bytes_card(const Json& engine, std::string_view title, const char* key) {
  const double bytes = number_at(engine, key);
  return card(title, key, engine[key], bytes < 0 ? "depends on the sizes" : human_bytes(bytes));
}

std::string cards(const Json& engine) {
  std::string html = R"(<div class="cards">)";
  html += card("target", "target", engine["target"], text_at(engine, "target"));
  html += card(text_at(engine, "target").starts_with("cpu") ? "threads" : "multiprocessors", "threads",
               engine["threads"], text_at(engine, "threads"));
  html += card("built by Lathe", "version", engine["version"], text_at(engine, "version"));
  html += card("steps", "steps", engine["layers"].size(), std::to_string(engine["layers"].size()));
  html += card("all steps, " + text_at(engine, "time_source"), "total_milliseconds", engine["total_milliseconds"],
               time_text(number_at(engine, "total_milliseconds")));
  html += bytes_card(engine, "weights", "weights_bytes");
  html += bytes_card(engine, "scratch memory, at most", "scratch_bytes");
  html += bytes_card(engine, "file", "bytes");
  if (const auto share = engine["metadata"].find("evaluated_share"); share != engine["metadata"].end())
    html += card("without a kernel", "evaluated_share", *share,
                 fmt::format("{:.1f} % of the time", 100 * std::stod(share->get<std::string>())));
  return html + "</div>\n";
}

std::string bindings(const Json& engine) {
  std::string html = "<h2>Inputs and outputs</h2><div class=scroll><table><tr><th>tensor<th>is<th>type<th>shape</tr>\n";
  for (const Json& binding : engine["bindings"])
    html += fmt::format("<tr><td>{}<td>{}<td>{}<td>{}</tr>\n", escaped(text_at(binding, "name")),
                        binding["input"].get<bool>() ? "input" : "output", escaped(text_at(binding, "dtype")),
                        to_text(binding["dims"].get<std::vector<int64_t>>()));
  return html + "</table></div>\n";
}

std::string kernels_section(const KernelColours& colours) {
  std::string bar = R"(<div class="bar">)";
  std::string rows;
  for (size_t i = 0; i < colours.rows().size(); ++i) {
    const KernelColours::Row& row = colours.rows()[i];
    const size_t colour = std::min(i, KernelColours::kColours - 1);
    bar += fmt::format(R"(<i class="k{}" style="width:{:.3f}%" title="{}: {:.1f} %"></i>)", colour, 100 * row.share,
                       escaped(row.kernel), 100 * row.share);
    rows += fmt::format(R"(<tr><td><i class="dot k{}"></i>{})", colour, escaped(row.kernel)) +
            number_cell("steps", row.steps, std::to_string(row.steps)) +
            number_cell("milliseconds", row.milliseconds, time_text(row.milliseconds)) +
            number_cell("share", row.share, fmt::format("{:.1f} %", 100 * row.share)) +
            number_cell("operations", row.operations, count_text(row.operations)) +
            number_cell("bytes", row.bytes, count_text(row.bytes)) +
            number_cell("floor", row.floor, ratio_text(row.milliseconds, row.floor)) + "</tr>\n";
  }
  return "<h2>Where the time goes</h2>" + bar +
         "</div><div class=scroll><table id=kernels><tr><th>kernel<th class=n>steps<th class=n>time<th class=n>share"
         "<th class=n>operations<th class=n>bytes<th class=n>times its floor</tr>\n" +
         rows + "</table></div>\n";
}

std::string precision_section(const Json& engine) {
  std::map<std::string, std::pair<size_t, double>> precisions;
  for (const Json& layer : engine["layers"])
    if (layer.is_object()) {
      auto& [steps, share] = precisions[text_at(layer, "Precision")];
      ++steps;
      share += number_at(layer, "Share");
    }
  std::string html =
      "<h2>Precision</h2><div class=scroll><table id=precisions><tr><th>operands → results<th class=n>steps"
      "<th class=n>share of the time</tr>\n";
  for (const auto& [precision, row] : precisions)
    html += fmt::format("<tr><td>{}", escaped(precision)) + number_cell("steps", row.first, std::to_string(row.first)) +
            number_cell("share", row.second, fmt::format("{:.1f} %", 100 * row.second)) + "</tr>\n";
  return html + "</table></div>\n";
}

}  // namespace

KernelColours::KernelColours(const Json& engine) {
  for (const Json& layer : engine["layers"]) {
    const std::string kernel = text_at(as_object(layer), "LayerType");
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& each) { return each.kernel == kernel; });
    if (row == rows_.end()) row = rows_.insert(row, Row{.kernel = kernel});
    ++row->steps;
    row->milliseconds += number_at(layer, "TimeMilliseconds");
    row->share += number_at(layer, "Share");
    row->operations += number_at(layer, "Operations");
    row->bytes += number_at(layer, "Bytes");
    row->floor += number_at(layer, "FloorMilliseconds");
  }
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const Row& a, const Row& b) { return a.milliseconds > b.milliseconds; });
}

size_t KernelColours::of(const Json& layer) const {
  const std::string kernel = text_at(layer, "LayerType");
  const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& each) { return each.kernel == kernel; });
  return std::min(static_cast<size_t>(row - rows_.begin()), kColours - 1);
}

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  return html;
}

std::string time_text(double milliseconds) { return milliseconds > 0 ? human_time(milliseconds) : ""; }

std::string count_text(double number) {
  if (number <= 0) return "0";
  constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P"};
  size_t prefix = 0;
  for (; number >= 1000 && prefix + 1 < std::size(kPrefixes); ++prefix) number /= 1000;
  return fmt::format("{:.{}f}{}", number, prefix == 0 ? 0 : number < 10 ? 2 : number < 100 ? 1 : 0, kPrefixes[prefix]);
}

std::string ratio_text(double number, double of) {
  constexpr double kMost = 1000;  // whose digits say something, and have room
  if (number <= 0 || of <= 0) return "";
  return number < kMost * of ? fmt::format("{:.1f}", number / of) : count_text(number / of);
}

std::string type_text(const Json& tensor) {
  const std::string layout = text_at(tensor, "layout");
  return text_at(tensor, "dtype") + " " + to_text(tensor["dims"].get<std::vector<int64_t>>()) +
         (layout == "linear" ? "" : ", " + layout);
}

std::string number_cell(const char* key, const Json& number, std::string_view shown) {
  return fmt::format(R"(<td class=n data-key="{}" data-value="{}">{})", key, number.dump(), escaped(shown));
}

Json as_object(const Json& layer) { return layer.is_object() ? layer : Json{{"Name", layer}}; }

std::string page_of(const Json& engine) {
  const KernelColours colours(engine);
  const std::string name = escaped(text_at(engine, "name")), file = escaped(text_at(engine, "file"));
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>"
             "<meta name=viewport content=\"width=device-width\"><title>{} - Lathe</title>\n<style>{}</style>\n"
             "<header><h1>{}</h1><p>{}</p><button id=theme type=button hidden>dark or "
             "light</button></header>\n<main>\n",
             file, kPageStyle, name.empty() ? file : name, file) +
         cards(engine) + kernels_section(colours) + steps_section(engine, colours) + roofline_section(engine, colours) +
         memory_section(engine) + copies_section(engine) + attention_section(engine) + precision_section(engine) +
         bindings(engine) + "</main>\n" + panels(engine) + fmt::format("<script>{}</script>\n</html>\n", kPageScript);
}

}  // namespace lathe::cli
