// SPDX-License-Identifier: Apache-2.0
// A plan as JSON; see lathe.h.
#include "api/json.h"
#include "api/report_text.h"
#include "base/hex.h"
#include "lathe.h"
#include "plan/blocks.h"
#include "plan/reader.h"
#include "plan/signature.h"
#include "plan/variants.h"

namespace lathe {
namespace {

namespace nv = nvinfer1;
using api::Json;
using api::json_object;

Json dims_of(const Shape& shape) {
  Json dims = Json::array();
  for (const Expr& dim : shape) dims.push_back(dim.as_constant().value_or(-1));
  return dims;
}

const char* trust_of(const plan::Section& section) {
  switch (section.trust) {
    case plan::TrustClass::data:
      return "data";
    case plan::TrustClass::device_code:
      return "device code";
    case plan::TrustClass::host_code:
      return "host code";
  }
  return "unknown";
}

Json sections_of(const plan::PlanHeader& header) {
  Json sections = Json::array();
  for (const plan::Section& section : header.sections) {
    sections.push_back(json_object({{"name", section.name},
                                    {"bytes", section.bytes},
                                    {"digest", to_hex(section.digest)},
                                    {"trust", trust_of(section)},
                                    {"in_file", !section.detached}}));
  }
  return sections;
}

Json code_of(const plan::Plan& plan) {
  Json code = Json::array();
  for (const CodeModule& module : plan.codes) {
    Json images = Json::array();
    for (const CodeImage& image : module.images)
      images.push_back(json_object(
          {{"form", std::string(name_of(image.form))}, {"target", image.target}, {"bytes", image.bytes.size()}}));
    code.push_back(images);
  }
  return code;
}

// Of a plan that has them; else empty.
Result<Json> variants_of(std::span<const std::byte> bytes, const plan::PlanHeader& header) {
  Json variants = Json::array();
  const size_t count = header.find(plan::kVariants) ? plan::targets_of(header).size() : 0;
  for (size_t i = 0; i < count; ++i) {
    LATHE_ASSIGN(const std::vector<std::byte> variant, plan::take_variant(bytes, i));
    LATHE_ASSIGN(const plan::PlanHeader own, plan::read_header(variant));
    variants.push_back(json_object({{"target", own.target},
                                    {"bytes", own.plan_bytes},
                                    {"hardware_compatibility", static_cast<int64_t>(own.hardware_compatibility)}}));
  }
  return variants;
}

Result<Json> describe(std::span<const std::byte> bytes, const plan::PlanHeader& header, const plan::Plan& plan) {
  Json bindings = Json::array(), steps = Json::array(), metadata = Json::object();
  for (const plan::Binding& binding : plan.bindings) {
    const plan::TensorDesc& tensor = plan.tensors[binding.tensor];
    bindings.push_back(json_object({{"name", binding.name},
                                    {"input", binding.is_input},
                                    {"dtype", std::string(name_of(tensor.dtype))},
                                    {"dims", dims_of(tensor.dims)},
                                    {"shape_tensor", binding.is_shape_tensor}}));
  }
  LATHE_ASSIGN(const std::vector<plan::StepPlace> places, plan::find_places(plan.steps));
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    steps.push_back(json_object({{"name", step.name},
                                 {"kind", std::string(step.kind())},
                                 {"depth", places[i].depth},
                                 {"kernel", std::string(step.kernel())},
                                 {"op", step.op},
                                 {"tactic", step.tactic}}));
  }
  for (const auto& [key, value] : plan.metadata) metadata.add(key, value);
  LATHE_ASSIGN(Json variants, variants_of(bytes, header));
  LATHE_ASSIGN(const auto signature, plan::signature_of(bytes.subspan(header.prefix_bytes), header));
  return json_object({{"name", plan.name},
                      {"version", fmt::format("{}.{}.{}.{}", header.version.major, header.version.minor,
                                              header.version.patch, header.version.build)},
                      {"target", header.target},
                      {"hardware_compatibility", static_cast<int64_t>(header.hardware_compatibility)},
                      {"variants", std::move(variants)},
                      {"threads", plan.threads},
                      {"tuned_on", plan.tuned_on},
                      {"bytes", header.plan_bytes},
                      {"prefix_bytes", header.prefix_bytes},
                      {"format", header.format},
                      {"version_compatible", header.compatibility == plan::Compatibility::later_versions},
                      {"metadata_format", header.metadata_format},
                      {"record_format", header.record_format},
                      {"sections", sections_of(header)},
                      {"signed_by", signature ? Json(plan::to_text(signature->key)) : Json(nullptr)},
                      {"weights_bytes", plan.weights_bytes() + plan.stripped_bytes()},
                      {"weights_file", plan.weights_file},
                      {"profiles", plan.profiles.size()},
                      {"bindings", std::move(bindings)},
                      {"steps", std::move(steps)},
                      {"code", code_of(plan)},
                      {"metadata", std::move(metadata)}});
}

}  // namespace

nv::IHostMemory* planJson(const void* plan, std::size_t size) noexcept {
  return api::report_text("planJson", [&]() -> Result<std::string> {
    if (!plan) return fail(ErrorCode::invalid_argument, "the plan is null");
    const std::span bytes(static_cast<const std::byte*>(plan), size);
    LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(bytes));
    plan::ReadOptions options;
    options.check_host = false;
    options.without_weights = true;
    options.version = header.version;
    LATHE_ASSIGN(const std::vector<std::byte> first, plan::take_variant(bytes, 0));
    LATHE_ASSIGN(const plan::LoadedPlan loaded, plan::read_plan(first, nullptr, options));
    LATHE_ASSIGN(const Json report, describe(bytes, header, loaded.plan));
    return report.indented();
  });
}

}  // namespace lathe
