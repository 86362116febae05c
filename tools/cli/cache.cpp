// SPDX-License-Identifier: Apache-2.0
// lathe cache
#include <fmt/core.h>

#include "engine_report.h"
#include "failure.h"
#include "lathe_artifacts.h"

namespace lathe::cli {
namespace {

std::string request_of(const CacheCommand& command) {
  Json request = {{"onnx", command.path}, {"precision", command.precision}, {"batch", command.batch}};
  if (!command.directory.empty()) request["directory"] = command.directory;
  if (!command.target.empty()) request["target"] = command.target;
  const BuildSettings& settings = command.settings;
  if (settings.budget >= 0) request["budget_seconds"] = settings.budget;
  const ShapeRanges ranges = parse_ranges(settings.min_shapes, settings.opt_shapes, settings.max_shapes);
  Json profile = Json::object();
  for (const auto& [name, dims] : ranges.min)
    profile[name] = {{"min", dims}, {"opt", ranges.opt.at(name)}, {"max", ranges.max.at(name)}};
  if (!profile.empty()) request["profiles"] = Json::array({profile});
  return request.dump();
}

// Of details, those of artifacts alone: which one is used, or why it is built.
class ArtifactLogger final : public nvinfer1::ILogger {
 public:
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kWARNING || std::string_view(message).starts_with("artifact '"))
      console_.log(severity, message);
  }

 private:
  ConsoleLogger console_{Severity::kINFO};
};

Json artifacts_of(const CacheCommand& command, bool verify) {
  return Json::parse(take_text(artifactsJson(command.path.c_str(), verify)));
}

}  // namespace

int list_artifacts(const CacheCommand& command) {
  constexpr bool kVerifies = false;
  for (const Json& artifact : artifacts_of(command, kVerifies)) {
    const std::string target = text_at(artifact["key"], "target"), problem = text_at(artifact, "problem");
    fmt::print("{}  {}  {}\n", text_at(artifact, "engine"), human_bytes(number_at(artifact, "bytes")),
               problem.empty() ? "for " + (target.empty() ? "an unknown target" : target) : problem);
  }
  return 0;
}

int verify_artifacts(const CacheCommand& command) {
  constexpr bool kVerifies = true;
  int damaged = 0;
  const Json all = artifacts_of(command, kVerifies);
  for (const Json& artifact : all) {
    if (artifact["problem"].is_null()) continue;
    ++damaged;
    fmt::print("{}: {}\n", artifact["engine"].get<std::string>(), artifact["problem"].get<std::string>());
  }
  fmt::print("{} engines, {} of no use\n", all.size(), damaged);
  return damaged > 0 ? 1 : 0;
}

int prune_artifacts(const CacheCommand& command) {
  const int64_t freed = pruneArtifacts(command.path.c_str(), command.most_bytes);
  if (freed < 0) throw Failure(lastError());
  fmt::print("{} freed\n", human_bytes(static_cast<double>(freed)));
  return 0;
}

int explain_artifact(const CacheCommand& command) {
  const Json report = Json::parse(take_text(artifactExplainJson(request_of(command).c_str())));
  if (report["hit"] == true) {
    fmt::print("{}: would be used\n", report["engine"].get<std::string>());
    return 0;
  }
  fmt::print("{}: would be built\n", report["engine"].get<std::string>());
  for (const Json& change : report["differences"]) {
    if (change["part"] == "files")
      fmt::print("  {}\n", text_at(change, "then"));
    else
      fmt::print("  {}: was {}, and is {}\n", text_at(change, "part"), change["then"].dump(), change["now"].dump());
  }
  return 1;
}

int get_artifact(const CacheCommand& command) {
  ArtifactLogger logger;
  const Plan plan(artifactPlan(request_of(command).c_str(), logger, command.most_bytes));
  if (!plan) throw Failure(lastError());
  if (!command.output.empty()) write_file(command.output, text_of(*plan));
  return 0;
}

}  // namespace lathe::cli
