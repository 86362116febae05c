// SPDX-License-Identifier: Apache-2.0
// Reports as JSON; see lathe.h.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "api/builder/builder.h"
#include "api/json.h"
#include "api/network/network.h"
#include "api/network/parser.h"
#include "api/report_text.h"
#include "lathe.h"
#include "lathe_onnx.h"
#include "onnx/import.h"
#include "onnx/reader.h"
#include "tuning/backend.h"

namespace lathe {
namespace {

namespace nv = nvinfer1;
using api::Json;
using api::json_object;
using api::report_text;

const char* name_of(onnx::Support support) {
  switch (support) {
    case onnx::Support::native:
      return "native";
    case onnx::Support::generic:
      return "generic";
    case onnx::Support::unsupported:
      return "unsupported";
    case onnx::Support::blocked:
      return "blocked";
  }
  return "";
}

struct OperatorCount {
  int64_t count = 0;
  bool supported = true;
};

Json support_of(const onnx::ImportReport& report) {
  bool all = true;
  std::map<std::pair<std::string, std::string>, OperatorCount> operators;
  Json problems = Json::array(), list = Json::array();
  for (const onnx::NodeSupport& node : report.nodes) {
    OperatorCount& entry = operators[{node.domain, node.op_type}];
    ++entry.count;
    const Json described = json_object({{"node", node.index},
                                        {"name", node.name},
                                        {"op", node.op_type},
                                        {"domain", node.domain},
                                        {"support", name_of(node.support)},
                                        {"message", node.reason}});
    list.push_back(described);
    if (node.support == onnx::Support::native || node.support == onnx::Support::generic) continue;
    all = false;
    if (node.support == onnx::Support::unsupported) entry.supported = false;
    problems.push_back(described);
  }
  Json counts = Json::array();
  for (const auto& [key, entry] : operators)
    counts.push_back(json_object(
        {{"op", key.second}, {"domain", key.first}, {"count", entry.count}, {"supported", entry.supported}}));
  return json_object({{"supported", all},
                      {"nodes", report.nodes.size()},
                      {"operators", std::move(counts)},
                      {"problems", std::move(problems)},
                      {"list", std::move(list)},
                      {"warnings", report.warnings}});
}

// A network of one layer, evaluated: parser, graph and evaluation are there.
Json check_evaluation() {
  ir::Graph graph("doctor");
  const auto run = [&]() -> Result<> {
    LATHE_ASSIGN(ir::Value * x, graph.add_input("x", DType::f32, Dims{2}));
    LATHE_ASSIGN(ir::Value * y, graph.add_value(IdentityAttrs(), {x}));
    graph.add_output(y, "y");
    return ir::verify(graph);
  };
  const Result<> result = run();
  return json_object(
      {{"name", "graph"}, {"ok", result.has_value()}, {"detail", result ? "" : result.error().to_string()}});
}

Json describe(const Survey::Device& device) {
  Json described = json_object({{"name", device.name}, {"product", device.product}, {"target", device.target}});
  for (const Survey::Fact& fact : device.facts)
    described.add(fact.name, std::visit([](const auto& value) { return Json(value); }, fact.value));
  return described;
}

nv::IHostMemory* support_json(const char* model_path, const onnx::ImportOptions& options) noexcept {
  return report_text("supportJson", [&]() -> Result<std::string> {
    LATHE_ASSIGN(const std::string path, api::to_string(model_path, "model path"));
    LATHE_ASSIGN(const onnx::Model model, onnx::read_model_file(path));
    LATHE_ASSIGN(const onnx::ImportReport support, onnx::query_support(model, options));
    return support_of(support).indented();
  });
}

}  // namespace

nv::IHostMemory* networkText(const nv::INetworkDefinition& network) noexcept {
  return report_text("networkText", [&]() -> Result<std::string> {
    auto& definition = const_cast<api::NetworkDefinition&>(static_cast<const api::NetworkDefinition&>(network));
    LATHE_ASSIGN(const api::Exclusive::Turn turn, definition.use().take(api::Exclusive::Call::looks));
    LATHE_TRY(definition.settle());
    return ir::to_text(definition.graph(), 64);
  });
}

nv::IHostMemory* buildReportJson(const nv::IBuilder& builder) noexcept {
  return report_text("buildReportJson", [&]() -> Result<std::string> {
    api::BuilderCore& core = static_cast<const api::Builder&>(builder).core();
    LATHE_ASSIGN(const api::Exclusive::Turn turn, core.use.take(api::Exclusive::Call::looks));
    const std::string& text = core.last_report;
    if (text.empty()) return fail(ErrorCode::invalid_state, "this builder has not built anything yet");
    return text;
  });
}

nv::IHostMemory* supportJson(const char* onnxPath) noexcept { return support_json(onnxPath, {}); }

nv::IHostMemory* supportJson(const nvonnxparser::IParser& parser, const char* onnxPath) noexcept {
  return support_json(onnxPath, static_cast<const api::Parser&>(parser).told());
}

nv::IHostMemory* doctorJson() noexcept {
  return report_text("doctorJson", [&]() -> Result<std::string> {
    utsname system{};
    uname(&system);
    const auto pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    Json devices = Json::array(), checks = Json::array();
    std::vector<std::string> targets;
    checks.push_back(check_evaluation());
    for (const Backend* backend : backends()) {
      const Survey found = backend->survey();
      for (const Survey::Device& device : found.devices) {
        devices.push_back(describe(device));
        if (!device.target.empty() && std::ranges::count(targets, device.target) == 0) targets.push_back(device.target);
      }
      for (const Survey::Check& check : found.checks)
        checks.push_back(json_object(
            {{"name", check.name}, {"ok", check.good}, {"detail", check.detail}, {"remedy", check.remedy}}));
    }
    return json_object({{"version", latheVersion()},
                        {"os", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
                        {"memory_bytes", static_cast<int64_t>(pages) * page_size},
                        {"devices", std::move(devices)},
                        {"targets", targets},
                        {"checks", std::move(checks)}})
        .indented();
  });
}

}  // namespace lathe
