// SPDX-License-Identifier: Apache-2.0
// All that is known of a step, on a panel which its link in the table opens.
#include "page_parts.h"

namespace lathe::cli {
namespace {

std::string field(std::string_view title, std::string_view html) {
  return html.empty() ? "" : fmt::format("<dt>{}<dd>{}", title, html);
}

std::string list_of(const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string html = "<ul>";
  for (const std::string& item : items) html += "<li>" + escaped(item);
  return html + "</ul>";
}

std::string texts(const Json& layer, const char* key) {
  std::vector<std::string> items;
  for (const Json& item : layer.value(key, Json::array())) items.push_back(item.get<std::string>());
  return list_of(items);
}

std::string tensors(const Json& engine, const Json& layer, const char* key) {
  std::vector<std::string> items;
  for (const Json& id : layer.value(key, Json::array())) {
    const Json& tensor = engine["tensors"].at(id.get<size_t>());
    items.push_back(fmt::format("{}: {}, {}", text_at(tensor, "name"), type_text(tensor), text_at(tensor, "storage")));
  }
  return list_of(items);
}

std::string times(const Json& layer) {
  std::string html;
  for (const auto& [key, words] :
       {std::pair("MeasuredMilliseconds", "in a run"), std::pair("Milliseconds", "while building"),
        std::pair("PredictedMilliseconds", "predicted"), std::pair("FloorMilliseconds", "floor")})
    if (const double time = number_at(layer, key); time > 0)
      html += fmt::format(R"({}<span data-key="{}" data-value="{}">{}</span> {})", html.empty() ? "" : ", ", key,
                          layer[key].dump(), human_time(time), words);
  return html;
}

std::string work(const Json& layer) {
  if (!layer.contains("Operations") || layer["Operations"].is_null()) return "";
  const double operations = number_at(layer, "Operations"), bytes = number_at(layer, "Bytes");
  return fmt::format(R"(<span data-key="Operations" data-value="{}">{}</span> operations, )"
                     R"(<span data-key="Bytes" data-value="{}">{}</span> bytes{})",
                     layer["Operations"].dump(), count_text(operations), layer["Bytes"].dump(), count_text(bytes),
                     bytes > 0 ? fmt::format(": {:.2f} for each byte", operations / bytes) : "");
}

std::string candidates(const Json& layer) {
  const Json list = layer.value("Candidates", Json::array());
  if (list.empty()) return "";
  std::string html = "<table><tr><th>tactic<th class=n>measured<th class=n>predicted</tr>";
  for (const Json& each : list)
    html +=
        fmt::format("<tr><td class=wrap>{}<td class=n>{}<td class=n>{}</tr>", escaped(text_at(each, "tactic")),
                    time_text(number_at(each, "milliseconds")), time_text(number_at(each, "predicted_milliseconds")));
  return html + "</table>";
}

std::string why(const Json& layer) {
  std::string html;
  for (const Json& each : layer.value("Why", Json::array()))
    html +=
        fmt::format("<p><b>{}</b></p><pre>{}</pre>", escaped(text_at(each, "tensor")), escaped(text_at(each, "why")));
  return html;
}

}  // namespace

std::string panels(const Json& engine) {
  std::string html;
  for (size_t i = 0; i < engine["layers"].size(); ++i) {
    const Json layer = as_object(engine["layers"][i]);
    html += fmt::format(R"(<aside id="s{0}"><a class=close href="#r{0}" title="close">×</a><h3>Step {0}: {1}</h3><dl>)",
                        i, escaped(text_at(layer, "LayerType")));
    html += field("name", escaped(text_at(layer, "Name"))) + field("does the work of", texts(layer, "NetworkLayers")) +
            field("tactic", escaped(text_at(layer, "TacticName"))) + field("time", times(layer)) +
            field("work", work(layer)) + field("bound by", escaped(text_at(layer, "Bound"))) +
            field("types", escaped(text_at(layer, "Precision"))) +
            field("reads", tensors(engine, layer, "InputTensors")) +
            field("writes", tensors(engine, layer, "OutputTensors")) +
            field("computes of each element", escaped(text_at(layer, "Program"))) +
            field("candidates", candidates(layer)) + field("tactics that refused", texts(layer, "Refusals")) +
            field("why its results lie where they do", why(layer));
    html += "</dl></aside>\n";
  }
  return html;
}

std::string copies_section(const Json& engine) {
  std::string rows;
  for (size_t i = 0; i < engine["layers"].size(); ++i) {
    const Json layer = as_object(engine["layers"][i]);
    if (text_at(layer, "LayerType") != "copy") continue;
    std::string reasons = why(layer);
    if (reasons.empty())
      reasons = layer.contains("Why") ? "" : "the engine does not say: inspect the model (.onnx) instead";
    rows += fmt::format(R"(<tr data-step="{0}"><td class=wrap><a href="#s{0}">{0}: {1}</a>)", i,
                        escaped(text_at(layer, "Name"))) +
            fmt::format("<td>{}", escaped(text_at(layer, "Precision"))) +
            number_cell("Bytes", layer.value("Bytes", Json()), count_text(number_at(layer, "Bytes"))) +
            number_cell("TimeMilliseconds", layer.value("TimeMilliseconds", Json()),
                        time_text(number_at(layer, "TimeMilliseconds"))) +
            fmt::format("<td class=wrap>{}<td class=wrap>{}</tr>\n", escaped(text_at(layer, "TacticName")), reasons);
  }
  if (rows.empty()) return "<h2>Copies</h2><p class=note>No step only copies or converts.</p>\n";
  return "<h2>Copies</h2><div class=scroll><table id=copies><tr><th>step<th>types<th class=n>bytes<th "
         "class=n>time<th>tactic<th>why</tr>\n" +
         rows + "</table></div>\n";
}

std::string attention_section(const Json& engine) {
  const Json lost = engine.value("lost_attentions", Json::array());
  if (lost.empty()) return "";
  std::string rows;
  for (const Json& each : lost)
    rows += fmt::format("<tr><td class=wrap>{}<td class=wrap>{}</tr>\n", escaped(text_at(each, "tensor")),
                        escaped(text_at(each, "why")));
  return "<h2>Softmaxes between products</h2><div class=scroll><table id=lost_attentions><tr><th>softmax<th>is part "
         "of no attention, for</tr>\n" +
         rows + "</table></div>\n";
}

}  // namespace lathe::cli
