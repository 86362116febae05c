// SPDX-License-Identifier: Apache-2.0
#include "api/extensions/artifacts/request.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "NvInfer.h"
#include "api/extensions/artifacts/parse_json.h"
#include "device/family.h"

namespace lathe::api::artifacts {
namespace {

using nlohmann::json;

constexpr std::string_view kPrecisions[] = {"fp32", "fp16", "bf16", "int8", "best"};
constexpr std::string_view kSelectors[] = {"min", "opt", "max"};

bool is_dims(const json& value) {
  return value.is_array() && value.size() <= nvinfer1::Dims::MAX_DIMS &&
         std::ranges::all_of(value,
                             [](const json& size) { return size.is_number_integer() && size.get<int64_t>() >= 0; });
}

// [{"x": {"min": [...], "opt": [...], "max": [...]}}]
bool are_profiles(const json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const json& profile) {
           return profile.is_object() && std::ranges::all_of(profile, [](const json& input) {
                    return input.is_object() && input.size() == std::size(kSelectors) &&
                           std::ranges::all_of(kSelectors, [&](std::string_view select) {
                             return input.contains(select) && is_dims(input[std::string(select)]);
                           });
                  });
         });
}

bool are_texts(const json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const json& text) { return text.is_string(); });
}

// Takes a part of the request over; false where its value is of another kind.
using Take = std::function<bool(ArtifactRequest&, const json&)>;
template <class T>
Take taking(T ArtifactRequest::*member, bool (json::*is_kind)() const noexcept) {
  return [=](ArtifactRequest& request, const json& value) {
    if (!(value.*is_kind)()) return false;
    request.*member = value.get<T>();
    return true;
  };
}

const std::map<std::string, Take, std::less<>>& parts() {
  static const std::map<std::string, Take, std::less<>> all = {
      {"onnx", taking(&ArtifactRequest::onnx, &json::is_string)},
      {"directory", taking(&ArtifactRequest::directory, &json::is_string)},
      {"target", taking(&ArtifactRequest::target, &json::is_string)},
      {"framework", taking(&ArtifactRequest::framework, &json::is_string)},
      {"tf32", taking(&ArtifactRequest::tf32, &json::is_boolean)},
      {"level",
       [](ArtifactRequest& request, const json& value) {
         if (!value.is_number_integer()) return false;
         request.level = value.get<int64_t>();
         return request.level >= 0 && request.level <= 5;
       }},
      {"budget_seconds", taking(&ArtifactRequest::budget_seconds, &json::is_number)},
      {"refit", taking(&ArtifactRequest::refit, &json::is_boolean)},
      {"threads",
       [](ArtifactRequest& request, const json& value) {
         if (!value.is_number_unsigned() || value > std::numeric_limits<int32_t>::max()) return false;
         request.threads = value.get<int64_t>();
         return true;
       }},
      {"batch",
       [](ArtifactRequest& request, const json& value) {
         return value.is_number_integer() && (request.batch = value.get<int64_t>()) > 0;
       }},
      {"precision",
       [](ArtifactRequest& request, const json& value) {
         if (!value.is_string()) return false;
         request.precision = value.get<std::string>();
         return std::ranges::find(kPrecisions, request.precision) != std::end(kPrecisions);
       }},
      {"profiles", [](ArtifactRequest& request, const json& value) { return are_profiles(request.profiles = value); }},
      {"plugins", [](ArtifactRequest& request, const json& value) {
         if (!are_texts(value)) return false;
         request.plugins = value.get<std::vector<std::string>>();
         return true;
       }}};
  return all;
}

}  // namespace

Result<ArtifactRequest> parse_request(const char* text) {
  const json given = parse_json(text ? text : "");
  if (!given.is_object())
    return fail(ErrorCode::config_invalid, "the request is not a JSON object: {}", text ? text : "(null)");
  ArtifactRequest request;
  for (const auto& [name, value] : given.items()) {
    const auto part = parts().find(name);
    if (part == parts().end()) return fail(ErrorCode::config_invalid, "a request has no \"{}\"", name);
    if (!part->second(request, value))
      return fail(ErrorCode::config_invalid, "\"{}\" of the request cannot be {}: see lathe_artifacts.h", name,
                  value.dump());
  }
  if (request.onnx.empty()) return fail(ErrorCode::config_invalid, "the request has no \"onnx\", the model's path");
  LATHE_ASSIGN(request.target, resolve_target(request.target.empty() ? default_target().name : request.target));
  return request;
}

std::filesystem::path ArtifactRequest::root() const {
  const std::filesystem::path root =
      directory.empty() ? std::filesystem::path(onnx).parent_path() : std::filesystem::path(directory);
  return root.empty() ? "." : root;
}

std::filesystem::path ArtifactRequest::engine() const {
  const std::filesystem::path model(onnx);
  return root() / precision / fmt::format("bs{}", batch) / (model.stem().string() + ".engine");
}

}  // namespace lathe::api::artifacts
