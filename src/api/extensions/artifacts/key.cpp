// SPDX-License-Identifier: Apache-2.0
#include "api/extensions/artifacts/key.h"

#include <algorithm>
#include <memory>
#include <set>

#include "base/hash.h"
#include "base/hex.h"
#include "base/md5.h"
#include "base/version.h"
#include "lathe.h"
#include "onnx/reader.h"

namespace lathe::api::artifacts {
namespace {

using nlohmann::json;

json text_or_null(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() || found->get<std::string>().empty() ? json() : *found;
}

json detail_of(const json& checks, std::string_view name) {
  for (const json& check : checks)
    if (check["name"] == name && check["ok"] == true) return check["detail"];
  return {};
}

// The machine's device that the target names, by what `lathe doctor` finds; null where it is elsewhere.
json find_device(const json& devices, const std::string& target) {
  for (const json& device : devices)
    if (device["name"] == target || device["target"] == target) return device;
  for (const json& device : devices)
    if (device["name"].get<std::string>().starts_with(target)) return device;
  return json::object();
}

Result<> add_machine(const std::string& target, json& key) {
  const std::unique_ptr<nvinfer1::IHostMemory> report(doctorJson());
  const json found = report ? json::parse(static_cast<const char*>(report->data()), nullptr, false) : json();
  if (!found.is_object()) return fail(ErrorCode::internal, "the report of this machine is no JSON");
  const json device = find_device(found["devices"], target);
  const bool is_host = target.starts_with("cpu");
  key["os"] = found["os"];
  key["gpu"] = text_or_null(device, "product");
  key["compute_capability"] = text_or_null(device, "compute_capability");
  key["driver"] = is_host ? json() : detail_of(found["checks"], "CUDA driver");
  key["cuda"] = is_host ? json() : detail_of(found["checks"], "NVRTC");
  return {};
}

// The model's file, and those of external data, by content, for they may be moved.
Result<> add_model(const std::string& path, json& key) {
  LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  key["onnx_md5"] = to_hex(md5_of(file->bytes()));
  key["onnx_bytes"] = file->bytes().size();
  LATHE_ASSIGN(const onnx::Model model, onnx::read_model_file(path));
  const std::string own = to_hex(digest_of(file->bytes()));
  std::set<std::string> external;
  for (const auto& mapped : model.files) external.insert(to_hex(digest_of(mapped->bytes())));
  external.erase(own);
  key["external_data"] = external;
  return {};
}

}  // namespace

Result<json> key_of(const ArtifactRequest& request) {
  json key = {{"library", library_version().to_string()},
              {"interface", NV_TENSORRT_MAJOR},
              {"framework", request.framework.empty() ? json() : json(request.framework)},
              {"target", request.target},
              {"precision", request.precision},
              {"batch", request.batch},
              {"profiles", request.profiles},
              {"tf32", request.tf32},
              {"level", request.level < 0 ? json() : json(request.level)},
              {"threads", request.threads == 0 ? json() : json(request.threads)},
              {"refit", request.refit},
              {"plugins", json::object()}};
  LATHE_TRY(add_machine(request.target, key));
  LATHE_TRY(add_model(request.onnx, key));
  for (const std::string& plugin : request.plugins) {
    LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(plugin));
    key["plugins"][plugin] = to_hex(digest_of(file->bytes()));
  }
  return key;
}

json differences(const json& then, const json& now) {
  std::set<std::string> parts;
  for (const json* key : {&then, &now})
    if (key->is_object())
      for (const auto& [name, value] : key->items()) parts.insert(name);
  json found = json::array();
  for (const std::string& part : parts) {
    const json before = then.is_object() ? then.value(part, json()) : json(), after = now.value(part, json());
    const bool is_new = !then.is_object() || !then.contains(part);
    if (before != after || is_new) found.push_back({{"part", part}, {"then", before}, {"now", after}});
  }
  return found;
}

}  // namespace lathe::api::artifacts
