// SPDX-License-Identifier: Apache-2.0
// A plan as JSON; see lathe.h.
#include "api/json.h"
#include "api/report_text.h"
#include "lathe.h"
#include "plan/reader.h"

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

Json describe(const plan::PlanHeader& header, const plan::Plan& plan) {
  Json bindings = Json::array(), steps = Json::array(), metadata = Json::object();
  for (const plan::Binding& binding : plan.bindings) {
    const plan::Tensor& tensor = plan.tensors[binding.tensor];
    bindings.push_back(json_object({{"name", binding.name},
                                    {"input", binding.is_input},
                                    {"dtype", std::string(name_of(tensor.dtype))},
                                    {"dims", dims_of(tensor.dims)},
                                    {"shape_tensor", binding.is_shape_tensor}}));
  }
  for (const plan::Step& step : plan.steps)
    steps.push_back(
        json_object({{"name", step.name}, {"kernel", step.kernel}, {"op", step.op}, {"tactic", step.tactic}}));
  for (const auto& [key, value] : plan.metadata) metadata.add(key, value);
  return json_object({{"name", plan.name},
                      {"version", fmt::format("{}.{}.{}.{}", header.version.major, header.version.minor,
                                              header.version.patch, header.version.build)},
                      {"target", plan.target},
                      {"threads", plan.threads},
                      {"bytes", header.plan_bytes},
                      {"prefix_bytes", header.prefix_bytes},
                      {"weights_bytes", plan.weights.size()},
                      {"profiles", plan.profiles.size()},
                      {"bindings", std::move(bindings)},
                      {"steps", std::move(steps)},
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
    options.version = header.version;
    LATHE_ASSIGN(const plan::LoadedPlan loaded, plan::read_plan(bytes, nullptr, options));
    return describe(header, loaded.plan).indented();
  });
}

}  // namespace lathe
