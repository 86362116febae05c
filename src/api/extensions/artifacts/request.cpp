// SPDX-License-Identifier: Apache-2.0
#include "api/extensions/artifacts/request.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "NvInfer.h"
#include "device/family.h"

namespace lathe::api::artifacts {
namespace {

using Kind = JsonValue::Kind;

constexpr std::string_view kPrecisions[] = {"fp32", "fp16", "bf16", "int8", "best"};
constexpr std::string_view kSelectors[] = {"min", "opt", "max"};

bool is_integer(const JsonValue& value, int64_t least, int64_t most) {
  const std::optional<int64_t> integer = value.integer();
  return integer && *integer >= least && *integer <= most;
}

bool is_dims(const JsonValue& value) {
  return value.is(Kind::array) && value.elements().size() <= nvinfer1::Dims::MAX_DIMS &&
         std::ranges::all_of(value.elements(), [](const JsonValue& size) { return is_integer(size, 0, INT64_MAX); });
}

bool are_sizes(const JsonValue& input) {
  return input.is(Kind::object) && input.members().size() == std::size(kSelectors) &&
         std::ranges::all_of(kSelectors, [&](std::string_view select) { return is_dims(input[select]); });
}

// [{"x": {"min": [...], "opt": [...], "max": [...]}}]
bool are_profiles(const JsonValue& value) {
  return value.is(Kind::array) && std::ranges::all_of(value.elements(), [](const JsonValue& profile) {
           return profile.is(Kind::object) &&
                  std::ranges::all_of(profile.members(), are_sizes, &JsonValue::Member::value);
         });
}

// Takes a part of the request over; false where its value is of another kind.
using Take = std::function<bool(ArtifactRequest&, const JsonValue&)>;

Take text(std::string ArtifactRequest::*member) {
  return [=](ArtifactRequest& request, const JsonValue& value) {
    request.*member = value.text();
    return value.is(Kind::text);
  };
}

Take truth(bool ArtifactRequest::*member) {
  return [=](ArtifactRequest& request, const JsonValue& value) {
    request.*member = value.truth();
    return value.is(Kind::boolean);
  };
}

Take integer(int64_t ArtifactRequest::*member, int64_t least, int64_t most) {
  return [=](ArtifactRequest& request, const JsonValue& value) {
    request.*member = value.integer().value_or(least);
    return is_integer(value, least, most);
  };
}

const std::map<std::string, Take, std::less<>>& parts() {
  static const std::map<std::string, Take, std::less<>> all = {
      {"onnx", text(&ArtifactRequest::onnx)},
      {"directory", text(&ArtifactRequest::directory)},
      {"target", text(&ArtifactRequest::target)},
      {"framework", text(&ArtifactRequest::framework)},
      {"tf32", truth(&ArtifactRequest::tf32)},
      {"refit", truth(&ArtifactRequest::refit)},
      {"level", integer(&ArtifactRequest::level, 0, 5)},
      {"threads", integer(&ArtifactRequest::threads, 0, INT32_MAX)},
      {"batch", integer(&ArtifactRequest::batch, 1, INT64_MAX)},
      {"budget_seconds",
       [](ArtifactRequest& request, const JsonValue& value) {
         request.budget_seconds = value.number();
         return value.is(Kind::number);
       }},
      {"precision",
       [](ArtifactRequest& request, const JsonValue& value) {
         request.precision = value.text();
         return value.is(Kind::text) && std::ranges::find(kPrecisions, request.precision) != std::end(kPrecisions);
       }},
      {"profiles",
       [](ArtifactRequest& request, const JsonValue& value) { return are_profiles(request.profiles = value); }},
      {"plugins", [](ArtifactRequest& request, const JsonValue& value) {
         for (const JsonValue& plugin : value.elements()) request.plugins.push_back(plugin.text());
         return value.is(Kind::array) &&
                std::ranges::all_of(value.elements(), [](const JsonValue& plugin) { return plugin.is(Kind::text); });
       }}};
  return all;
}

}  // namespace

Result<ArtifactRequest> parse_request(const char* text) {
  const Result<JsonValue> given = JsonValue::parse_object("the request", text ? text : "(null)");
  if (!given) return fail(ErrorCode::config_invalid, "{}", given.error().message);
  ArtifactRequest request;
  for (const auto& [name, value] : given->members()) {
    const auto part = parts().find(name);
    if (part == parts().end()) return fail(ErrorCode::config_invalid, "a request has no \"{}\"", name);
    if (!part->second(request, value))
      return fail(ErrorCode::config_invalid, "\"{}\" of the request cannot be {}: see lathe_artifacts.h", name,
                  value.json().text());
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
