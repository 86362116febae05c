// SPDX-License-Identifier: Apache-2.0
// lathe diff
#include <fmt/core.h>

#include <set>

#include "engine_report.h"
#include "failure.h"

namespace lathe::cli {
namespace {

Json describe(const std::string& file, ConsoleLogger& logger) {
  if (is_model_file(file)) throw UsageError(file + ": diff compares engines; build the model first");
  const BuildSettings settings;
  const BuildRequest request{&settings, {}, false, nullptr};
  Session session = Session::open(file, request, logger, Session::Use::inspect);
  return describe_engine(session, file);
}

// Differences of the whole: "what", "a", "b"; null where an engine has no such.
class Differences {
 public:
  void compare(const std::string& what, const Json& a, const Json& b) {
    if (a != b) list_.push_back({{"what", what}, {"a", a}, {"b", b}});
  }
  void compare(const Json& a, const Json& b, std::initializer_list<const char*> keys) {
    for (const char* key : keys) compare(key, a.value(key, Json()), b.value(key, Json()));
  }
  // Objects by their keys.
  void compare_each(const std::string& what, const Json& a, const Json& b) {
    for (const auto& [key, value] : a.items()) compare(what + " " + key, value, b.value(key, Json()));
    for (const auto& [key, value] : b.items())
      if (!a.contains(key)) compare(what + " " + key, nullptr, value);
  }
  Json take() { return std::move(list_); }

 private:
  Json list_ = Json::array();
};

Json by_name(const Json& list) {
  Json named = Json::object();
  for (const Json& each : list) named[text_at(each, "name")] = each;
  return named;
}

// Names of "constants" that are in one engine alone, or hold other bytes.
Json compare_weights(const Json& a, const Json& b) {
  const Json of_a = by_name(a["constants"]), of_b = by_name(b["constants"]);
  Json removed = Json::array(), added = Json::array(), changed = Json::array();
  for (const auto& [name, constant] : of_a.items()) {
    if (!of_b.contains(name))
      removed.push_back(name);
    else if (constant["digest"] != of_b[name]["digest"])
      changed.push_back(name);
  }
  for (const auto& [name, constant] : of_b.items())
    if (!of_a.contains(name)) added.push_back(name);
  return {{"removed", removed}, {"added", added}, {"changed", changed}};
}

// What is compared of a step. Times that were measured differ from build to build, and are left out.
Json facts_of(const Json& engine, const Json& layer) {
  if (!layer.is_object()) return {{"name", layer}};
  Json results = Json::array();
  for (const Json& id : layer["OutputTensors"]) {
    const Json& tensor = engine["tensors"].at(id.get<size_t>());
    results.push_back(fmt::format("{} {} {}", text_at(tensor, "dtype"),
                                  to_text(tensor["dims"].get<std::vector<int64_t>>()), text_at(tensor, "layout")));
  }
  return {{"name", layer["Name"]},
          {"kernel", layer["LayerType"]},
          {"tactic", layer["TacticName"]},
          {"precision", layer["Precision"]},
          {"results", results},
          {"program", layer["Program"]},
          {"predicted_milliseconds", layer["PredictedMilliseconds"]}};
}

// By name; the second of a name is "name (2)".
std::vector<std::pair<std::string, Json>> steps_of(const Json& engine) {
  std::vector<std::pair<std::string, Json>> steps;
  std::map<std::string, int> seen;
  for (const Json& layer : engine["layers"]) {
    Json facts = facts_of(engine, layer);
    std::string name = text_at(facts, "name");
    if (const int count = ++seen[name]; count > 1) name += fmt::format(" ({})", count);
    steps.emplace_back(std::move(name), std::move(facts));
  }
  return steps;
}

Json compare_steps(const Json& a, const Json& b) {
  const auto of_a = steps_of(a), of_b = steps_of(b);
  const std::map<std::string, Json> in_a(of_a.begin(), of_a.end()), in_b(of_b.begin(), of_b.end());
  Json removed = Json::array(), added = Json::array(), changed = Json::array();
  for (const auto& [name, facts] : of_a) {
    const auto other = in_b.find(name);
    if (other == in_b.end()) {
      removed.push_back(facts);
      continue;
    }
    Json fields = Json::object();
    for (const auto& [key, value] : facts.items())
      if (value != other->second.value(key, Json()))
        fields[key] = {{"a", value}, {"b", other->second.value(key, Json())}};
    if (!fields.empty()) changed.push_back({{"name", name}, {"fields", fields}});
  }
  std::vector<std::string> shared_a, shared_b;
  for (const auto& [name, facts] : of_a)
    if (in_b.contains(name)) shared_a.push_back(name);
  for (const auto& [name, facts] : of_b) {
    if (in_a.contains(name))
      shared_b.push_back(name);
    else
      added.push_back(facts);
  }
  return {{"removed", removed}, {"added", added}, {"changed", changed}, {"same_order", shared_a == shared_b}};
}

// Null where an engine keeps no predictions.
Json predicted(const Json& engine) {
  double total = 0;
  for (const Json& layer : engine["layers"]) {
    if (!layer.is_object() || !layer["PredictedMilliseconds"].is_number()) return nullptr;
    total += number_at(layer, "PredictedMilliseconds");
  }
  return total;
}

bool is_empty(const Json& lists) {
  return lists["removed"].empty() && lists["added"].empty() && lists["changed"].empty() &&
         lists.value("same_order", true);
}

Json compare(const Json& a, const Json& b) {
  Differences whole;
  whole.compare(a, b,
                {"name", "version", "target", "hardware_compatibility", "variants", "threads", "tuned_on", "format",
                 "version_compatible", "metadata_format", "record_format", "signed_by", "profiles", "weights_file",
                 "weights_bytes", "scratch_bytes", "code"});
  whole.compare_each("metadata", a["metadata"], b["metadata"]);
  whole.compare_each("binding", by_name(a["bindings"]), by_name(b["bindings"]));
  if (a["device"].is_object() && b["device"].is_object())
    whole.compare_each("device", a["device"], b["device"]);
  else
    whole.compare("device", a["device"], b["device"]);
  whole.compare("steps", a["layers"].size(), b["layers"].size());
  whole.compare("predicted_milliseconds", predicted(a), predicted(b));
  Json json = {{"same", false}, {"a", a["file"]}, {"b", b["file"]}, {"differences", whole.take()}};
  json["weights"] = compare_weights(a, b);
  json["steps"] = compare_steps(a, b);
  json["same"] = json["differences"].empty() && is_empty(json["weights"]) && is_empty(json["steps"]);
  return json;
}

std::string value_text(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump();
}

void show_step(char mark, const Json& facts) {
  fmt::print("{} {}: {} {}, {}\n", mark, shorten(text_at(facts, "name"), 80), text_at(facts, "kernel"),
             text_at(facts, "tactic"), text_at(facts, "precision"));
}

void show(const Json& json) {
  if (json["same"].get<bool>()) {
    fmt::print("the engines are the same\n");
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"what", "A", "B"}};
  for (const Json& each : json["differences"])
    rows.push_back({text_at(each, "what"), shorten(value_text(each["a"]), 60), shorten(value_text(each["b"]), 60)});
  if (rows.size() > 1) fmt::print("{}\n", table(rows));
  const Json &weights = json["weights"], &steps = json["steps"];
  if (!is_empty(weights))
    fmt::print("weights: {} removed, {} added, {} with other contents\n\n", weights["removed"].size(),
               weights["added"].size(), weights["changed"].size());
  for (const Json& facts : steps["removed"]) show_step('-', facts);
  for (const Json& facts : steps["added"]) show_step('+', facts);
  for (const Json& step : steps["changed"]) {
    fmt::print("~ {}\n", shorten(text_at(step, "name"), 80));
    for (const auto& [key, values] : step["fields"].items())
      fmt::print("    {}: {} -> {}\n", key, value_text(values["a"]), value_text(values["b"]));
  }
  if (!steps["same_order"].get<bool>()) fmt::print("steps run in another order\n");
  fmt::print("{} steps removed, {} added, {} changed\n", steps["removed"].size(), steps["added"].size(),
             steps["changed"].size());
}

}  // namespace

int diff(const DiffCommand& command) {
  constexpr int kSame = 0, kDifferent = 1, kError = 2;
  try {
    ConsoleLogger logger;
    const Json json = compare(describe(command.a, logger), describe(command.b, logger));
    show(json);
    if (!command.json.empty()) write_file(command.json, json.dump(2) + "\n");
    return json["same"].get<bool>() ? kSame : kDifferent;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lathe: {}\n", error.what());
    return kError;
  }
}

}  // namespace lathe::cli
