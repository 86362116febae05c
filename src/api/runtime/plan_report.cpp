// SPDX-License-Identifier: Apache-2.0
// A plan as JSON; see lathe.h.
#include "api/json.h"
#include "api/report_text.h"
#include "base/hex.h"
#include "lathe.h"
#include "plan/arena.h"
#include "plan/blocks.h"
#include "plan/constant_orders.h"
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

// Of the first profile.
std::vector<int64_t> optimum_of(const plan::Plan& plan) {
  std::vector<int64_t> values;
  for (const plan::SymbolProfile& symbol : plan.profiles[0].symbols) values.push_back(symbol.opt);
  return values;
}

const char* name_of(plan::StorageKind storage) {
  switch (storage) {
    case plan::StorageKind::arena:
      return "arena";
    case plan::StorageKind::constant:
      return "constant";
    case plan::StorageKind::binding:
      return "binding";
    case plan::StorageKind::dynamic:
      return "dynamic";
  }
  return "unknown";
}

const char* layout_of(const plan::TensorDesc& tensor) {
  if (tensor.strides.empty()) return "linear";
  return tensor.strides.size() > 2 && tensor.strides[1] == Expr(1) ? "channels-last" : "strided";
}

Json tensors_of(const plan::Plan& plan) {
  const std::vector<int64_t> optimum = optimum_of(plan);
  Json tensors = Json::array();
  for (const plan::TensorDesc& tensor : plan.tensors) {
    Json dims = Json::array();
    for (const Expr& dim : tensor.dims) dims.push_back(dim.evaluate(optimum).value_or(-1));
    tensors.push_back(json_object({{"name", tensor.name},
                                   {"dtype", std::string(name_of(tensor.dtype))},
                                   {"dims", std::move(dims)},
                                   {"layout", layout_of(tensor)},
                                   {"storage", name_of(tensor.storage)},
                                   {"index", tensor.index}}));
  }
  return tensors;
}

Json constants_of(const plan::Plan& plan) {
  Json constants = Json::array();
  for (const plan::Constant& constant : plan.constants)
    constants.push_back(
        json_object({{"name", constant.name}, {"bytes", constant.bytes}, {"digest", to_hex(constant.digest)}}));
  return constants;
}

// As they lie when the first profile's favourite sizes are set; empty where sizes have no limit.
Json buffers_of(plan::Plan plan) {
  Json buffers = Json::array();
  for (size_t i = 0; i < plan.symbols.size(); ++i)
    if (plan::SymbolProfile& symbol = plan.profiles[0].symbols[i]; plan.symbols[i].source != SymbolSource::computed)
      symbol.min = symbol.max = symbol.opt;
  const std::optional<plan::Arena> arena = plan::largest_arena(plan, 0);
  const std::vector<Range> ranges = plan::ranges_of(plan.profiles[0]);
  for (size_t i = 0; arena && i < plan.buffers.size(); ++i) {
    const plan::Buffer& buffer = plan.buffers[i];
    buffers.push_back(json_object({{"offset", arena->offsets[i]},
                                   {"bytes", plan::largest(buffer.bytes, ranges).value_or(0)},
                                   {"first", buffer.first},
                                   {"last", buffer.last}}));
  }
  return buffers;
}

Json operands_of(std::span<const plan::TensorId> ids) {
  Json list = Json::array();
  for (const plan::TensorId id : ids)
    if (id != plan::kNoTensor) list.push_back(id);
  return list;
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

// A plan of any version and machine, whose weights need not be there.
Result<plan::LoadedPlan> read_to_look(std::span<const std::byte> bytes) {
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(bytes));
  plan::ReadOptions options;
  options.check_host = false;
  options.without_weights = options.borrows_weights = true;
  options.version = header.version;
  return plan::read_plan(bytes, nullptr, options);
}

// Constants of a variant that are derived when it is loaded, for the file has them in another order.
struct DerivedConstants {
  uint64_t bytes = 0;
  std::vector<std::string> names;
};

Result<DerivedConstants> derived_of(std::span<const std::byte> bytes, size_t index,
                                    std::span<const std::byte> variant) {
  LATHE_ASSIGN(const std::vector<plan::WeightsWindow> pieces, plan::derived_weights_of(bytes, index));
  DerivedConstants derived;
  if (pieces.empty()) return derived;
  LATHE_ASSIGN(const plan::LoadedPlan loaded, read_to_look(variant));
  for (const plan::WeightsWindow& piece : pieces) {
    derived.bytes += piece.bytes;
    for (const plan::Constant& constant : loaded.plan.constants)
      if (!constant.stripped && constant.offset == piece.offset && constant.bytes == piece.bytes)
        derived.names.push_back(constant.name);
  }
  return derived;
}

// Of a plan that has them; else empty.
Result<Json> variants_of(std::span<const std::byte> bytes, const plan::PlanHeader& header) {
  Json variants = Json::array();
  const size_t count = header.find(plan::kVariants) ? plan::targets_of(header).size() : 0;
  for (size_t i = 0; i < count; ++i) {
    LATHE_ASSIGN(const std::vector<std::byte> variant, plan::take_variant(bytes, i));
    LATHE_ASSIGN(const plan::PlanHeader own, plan::read_header(variant));
    LATHE_ASSIGN(const DerivedConstants derived, derived_of(bytes, i, variant));
    variants.push_back(json_object({{"target", own.target},
                                    {"bytes", own.plan_bytes},
                                    {"derived_bytes", derived.bytes},
                                    {"derived_constants", derived.names},
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
                                 {"tactic", step.tactic},
                                 {"inputs", operands_of(step.inputs)},
                                 {"outputs", operands_of(step.outputs)}}));
  }
  for (const auto& [key, value] : plan.metadata)
    if (key != plan::kOrdersKey) metadata.add(key, value);
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
                      {"tensors", tensors_of(plan)},
                      {"constants", constants_of(plan)},
                      {"buffers", buffers_of(plan)},
                      {"code", code_of(plan)},
                      {"metadata", std::move(metadata)}});
}

}  // namespace

nv::IHostMemory* planJson(const void* plan, std::size_t size) noexcept {
  return api::report_text("planJson", [&]() -> Result<std::string> {
    if (!plan) return fail(ErrorCode::invalid_argument, "the plan is null");
    const std::span bytes(static_cast<const std::byte*>(plan), size);
    LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(bytes));
    std::vector<std::byte> first;
    if (header.find(plan::kVariants)) {
      LATHE_ASSIGN(first, plan::take_variant(bytes, 0));
    }
    const auto one = first.empty() ? bytes.subspan(header.prefix_bytes) : std::span<const std::byte>(first);
    LATHE_ASSIGN(const plan::LoadedPlan loaded, read_to_look(one));
    LATHE_ASSIGN(const Json report, describe(bytes, header, loaded.plan));
    return report.indented();
  });
}

}  // namespace lathe
