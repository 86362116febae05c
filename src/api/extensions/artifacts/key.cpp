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

using Kind = JsonValue::Kind;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json detail_of(const JsonValue& checks, std::string_view name) {
  for (const JsonValue& check : checks.elements())
    if (check["name"].text() == name && check["ok"].truth()) return check["detail"].json();
  return nullptr;
}

// The machine's device that the target names, by what `lathe doctor` finds; null where it is elsewhere.
const JsonValue& find_device(const JsonValue& devices, const std::string& target) {
  static const JsonValue kNone;
  for (const JsonValue& device : devices.elements())
    if (device["name"].text() == target || device["target"].text() == target) return device;
  for (const JsonValue& device : devices.elements())
    if (device["name"].text().starts_with(target)) return device;
  return kNone;
}

Result<> add_machine(const std::string& target, Json& key) {
  const std::unique_ptr<nvinfer1::IHostMemory> report(doctorJson());
  if (!report) return fail(ErrorCode::internal, "this machine's report cannot be made: {}", lastError());
  LATHE_ASSIGN(const JsonValue found, JsonValue::parse(static_cast<const char*>(report->data())));
  const JsonValue& device = find_device(found["devices"], target);
  const bool is_host = target.starts_with("cpu");
  key.add("os", found["os"].json());
  key.add("gpu", text_or_null(device["product"].text()));
  key.add("compute_capability", text_or_null(device["compute_capability"].text()));
  key.add("driver", is_host ? Json(nullptr) : detail_of(found["checks"], "CUDA driver"));
  key.add("cuda", is_host ? Json(nullptr) : detail_of(found["checks"], "NVRTC"));
  return {};
}

// The model's file, and those of external data, by content, for they may be moved.
Result<> add_model(const std::string& path, Json& key) {
  LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  key.add("onnx_md5", to_hex(md5_of(file->bytes())));
  key.add("onnx_bytes", file->bytes().size());
  LATHE_ASSIGN(const onnx::Model model, onnx::read_model_file(path));
  const std::string own = to_hex(digest_of(file->bytes()));
  std::set<std::string> external;
  for (const auto& mapped : model.files) external.insert(to_hex(digest_of(mapped->bytes())));
  external.erase(own);
  key.add("external_data", std::vector(external.begin(), external.end()));
  return {};
}

}  // namespace

Result<JsonValue> key_of(const ArtifactRequest& request) {
  Json plugins = Json::object();
  for (const std::string& plugin : std::set(request.plugins.begin(), request.plugins.end())) {
    LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(plugin));
    plugins.add(plugin, to_hex(digest_of(file->bytes())));
  }
  Json key = json_object({{"library", library_version().to_string()},
                          {"interface", NV_TENSORRT_MAJOR},
                          {"framework", text_or_null(request.framework)},
                          {"target", request.target},
                          {"precision", request.precision},
                          {"batch", request.batch},
                          {"profiles", request.profiles.json()},
                          {"tf32", request.tf32},
                          {"level", request.level < 0 ? Json(nullptr) : Json(request.level)},
                          {"threads", request.threads == 0 ? Json(nullptr) : Json(request.threads)},
                          {"refit", request.refit},
                          {"plugins", plugins}});
  LATHE_TRY(add_machine(request.target, key));
  LATHE_TRY(add_model(request.onnx, key));
  return JsonValue::parse(key.text());
}

std::vector<Difference> differences(const JsonValue& then, const JsonValue& now) {
  std::set<std::string> parts;
  for (const JsonValue* key : {&then, &now})
    for (const JsonValue::Member& part : key->members()) parts.insert(part.name);
  std::vector<Difference> found;
  for (const std::string& part : parts)
    if (const JsonValue& before = then[part], &after = now[part]; !then.has(part) || before != after)
      found.push_back({part, before, after});
  return found;
}

}  // namespace lathe::api::artifacts
