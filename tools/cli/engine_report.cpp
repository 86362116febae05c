// SPDX-License-Identifier: Apache-2.0
#include "engine_report.h"

#include <algorithm>

#include "failure.h"
#include "file_view.h"

namespace lathe::cli {
namespace {

constexpr const char* kCostsKey = "lathe.costs";  // of a plan's metadata; see planJson()

// Of the tensors with these numbers, each type once.
std::string types_of(const Json& engine, const Json& ids) {
  std::vector<std::string> types;
  for (const Json& id : ids) {
    const std::string type = text_at(engine["tensors"].at(id.get<size_t>()), "dtype");
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  std::string text;
  for (const std::string& type : types) text += (text.empty() ? "" : ", ") + type;
  return text;
}

std::string precision_of(const Json& engine, const Json& step) {
  const std::string from = types_of(engine, step["inputs"]), to = types_of(engine, step["outputs"]);
  return from.empty() || from == to ? to : from + " → " + to;
}

// The key of the device's rate of operations for what the step's first operand is; "" when it has none.
std::string rate_key(const Json& engine, const Json& ids) {
  if (ids.empty()) return "";
  const std::string type = text_at(engine["tensors"].at(ids[0].get<size_t>()), "dtype");
  if (type == "f64") return "f64";
  if (type == "f16" || type == "bf16") return "f16";
  return type == "i8" || type == "u8" || type.starts_with("f8") ? "i8" : "f32";
}

void set_floor(const Json& engine, Json& layer) {
  const Json& device = engine["device"];
  if (!device.is_object()) return;
  const std::string key = rate_key(engine, layer["InputTensors"]);
  const double rate = number_at(device["operations_per_us"], key.c_str());
  const double computing = rate > 0 ? number_at(layer, "Operations") / rate : 0;
  const double moving = number_at(layer, "Bytes") / number_at(device, "memory_bytes_per_us");
  const double floor = std::max(computing, moving);
  layer["FloorMilliseconds"] = floor / 1000;
  layer["Bound"] = floor < number_at(device, "launch_us") ? "launch" : computing > moving ? "computing" : "memory";
}

// `costs`: what the plan says of its steps; null where it does not.
void describe_layer(const Json& engine, const Json& step, const Json& costs, Json& layer) {
  layer["InputTensors"] = step["inputs"];
  layer["OutputTensors"] = step["outputs"];
  layer["Precision"] = precision_of(engine, step);
  layer["PredictedMilliseconds"] = costs.is_array() ? costs.at(0) : Json();
  layer["Operations"] = costs.is_array() ? costs.at(1) : Json();
  layer["Bytes"] = costs.is_array() ? costs.at(2) : Json();
  layer["FloorMilliseconds"] = nullptr;
  layer["Bound"] = nullptr;
  if (costs.is_array()) set_floor(engine, layer);
}

// Whether costs are as the builder writes them: three numbers, or null where sizes have no limit, for each step.
bool are_costs(const Json& costs, size_t steps) {
  const auto at = [](const Json& json, const char* key) { return json.is_object() ? json.value(key, Json()) : Json(); };
  const Json device = at(costs, "device"), rates = at(device, "operations_per_us"), list = at(costs, "steps");
  const auto is_number = [](const Json& value) { return value.is_number() || value.is_null(); };
  const auto is_cost = [&](const Json& step) {
    return step.is_array() && step.size() == 3 && std::ranges::all_of(step, is_number);
  };
  return rates.is_object() && std::ranges::all_of(rates, [](const Json& rate) { return rate.is_number(); }) &&
         number_at(device, "memory_bytes_per_us") > 0 && list.is_array() && list.size() == steps &&
         std::ranges::all_of(list, is_cost);
}

// Takes the costs out of the metadata; null where there are none, or what a file that nobody checked has instead.
Json take_costs(Json& engine) {
  Json& metadata = engine["metadata"];
  const auto found = metadata.find(kCostsKey);
  if (found == metadata.end()) return nullptr;
  constexpr bool kThrows = false;
  Json costs = Json::parse(found->get<std::string>(), nullptr, kThrows);
  metadata.erase(found);
  return are_costs(costs, engine["steps"].size()) ? costs : Json();
}

// Measured in a run, else while the engine was built, else predicted.
double time_of(const Json& layer) {
  for (const char* key : {"MeasuredMilliseconds", "Milliseconds", "PredictedMilliseconds"})
    if (const double time = number_at(layer, key); time > 0) return time;
  return 0;
}

}  // namespace

std::string text_at(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || it->is_null()) return "";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

double number_at(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number() ? it->get<double>() : 0;
}

std::string origin_text(const Json& origin) {
  if (!origin.is_array()) return origin.is_string() ? origin.get<std::string>() : "";
  std::string text;
  for (const Json& node : origin) text += (text.empty() ? "" : " + ") + node.get<std::string>();
  return text;
}

Json describe_engine(Session& session, const std::string& file) {
  const bool is_model = is_model_file(file);
  Json json;
  if (!is_model) {
    const FileView whole(file);
    json = Json::parse(take_text(planJson(whole.data(), whole.size())));
  }
  if (is_model || !json["variants"].empty()) {  // the engine may be another variant than the first
    const Json whole = std::move(json);
    const Plan plan(session.engine().serialize());
    if (!plan) throw Failure(lastError());
    json = Json::parse(take_text(planJson(plan->data(), plan->size())));
    if (!is_model)
      for (const char* key : {"variants", "signed_by"}) json[key] = whole[key];
  }
  const std::unique_ptr<nvinfer1::IEngineInspector> inspector(session.engine().createEngineInspector());
  if (!inspector) throw Failure(lastError());
  const Json layers = Json::parse(inspector->getEngineInformation(nvinfer1::LayerInformationFormat::kJSON));
  json["file"] = file;
  json["scratch_bytes"] = session.engine().getDeviceMemorySizeV2();
  const Json costs = take_costs(json);
  json["device"] = costs.is_object() ? costs["device"] : Json();
  json["layers"] = layers["Layers"];
  for (size_t i = 0; i < json["layers"].size(); ++i) {
    Json& layer = json["layers"][i];
    if (!layer.is_object()) continue;
    layer["Step"] = i;
    describe_layer(json, json["steps"].at(i), costs.is_object() ? costs["steps"].at(i) : Json(), layer);
  }
  json.erase("steps");
  set_times(json, {});
  return json;
}

void set_times(Json& engine, const std::vector<double>& measured) {
  double total = 0;
  const auto for_each = [&](auto&& change) {
    for (size_t i = 0; i < engine["layers"].size(); ++i)
      if (Json& layer = engine["layers"][i]; layer.is_object()) change(layer, i);
  };
  bool is_tuned = false;
  for_each([&](Json& layer, size_t i) {
    layer["MeasuredMilliseconds"] = i < measured.size() && measured[i] >= 0 ? Json(measured[i]) : Json();
    layer["TimeMilliseconds"] = time_of(layer);
    total += time_of(layer);
    is_tuned |= number_at(layer, "Milliseconds") > 0;
  });
  for_each([&](Json& layer, size_t) { layer["Share"] = total > 0 ? time_of(layer) / total : 0; });
  engine["total_milliseconds"] = total;
  engine["time_source"] = !measured.empty() ? "measured in a run"
                          : is_tuned        ? "measured while building where it was, else predicted"
                                            : "predicted";
}

void add_build_report(Json& engine, const Json& report) {
  std::map<std::string, std::string> why;
  for (const Json& tensor : report["tensors"]) why[text_at(tensor, "name")] = text_at(tensor, "why");
  for (size_t i = 0; i < engine["layers"].size() && engine["layers"].size() == report["layers"].size(); ++i) {
    Json& layer = engine["layers"][i];
    if (!layer.is_object()) continue;
    layer["Candidates"] = report["layers"][i]["candidates"];
    layer["Refusals"] = report["layers"][i]["refusals"];
    layer["Why"] = Json::array();
    for (const Json& id : layer["OutputTensors"]) {
      const std::string name = text_at(engine["tensors"].at(id.get<size_t>()), "name");
      if (const auto found = why.find(name); found != why.end())
        layer["Why"].push_back({{"tensor", name}, {"why", found->second}});
    }
  }
}

}  // namespace lathe::cli
