// SPDX-License-Identifier: Apache-2.0
#include "api/extensions/artifacts/build.h"

#include <algorithm>
#include <mutex>

#include "NvOnnxParser.h"
#include "api/report.h"
#include "lathe.h"

namespace lathe::api::artifacts {
namespace {

using nvinfer1::OptProfileSelector;

// Passes lines on, and keeps warnings and errors.
class KeepingLogger final : public nv::ILogger {
 public:
  explicit KeepingLogger(nv::ILogger& next) : next_(next) {}
  void log(Severity severity, const char* message) noexcept override {
    next_.log(severity, message);
    if (severity > Severity::kWARNING) return;
    try {
      const std::lock_guard lock(mutex_);
      kept_.push_back(
          json_object({{"severity", severity == Severity::kWARNING ? "warning" : "error"}, {"message", message}}));
    } catch (const std::exception&) {
      return;  // without memory the line is logged all the same
    }
  }
  Json take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(kept_, Json::array());
  }

 private:
  nv::ILogger& next_;
  std::mutex mutex_;
  Json kept_ = Json::array();
};

Error failed(std::string_view what) { return fail(ErrorCode::invalid_state, "{} ({})", what, last_error()).value(); }

// Of sizes that parse_request() has checked.
nv::Dims dims_of(const JsonValue& sizes) {
  nv::Dims dims{};
  for (const JsonValue& size : sizes.elements()) dims.d[dims.nbDims++] = size.integer().value_or(0);
  return dims;
}

Json to_json(const std::vector<int64_t>& sizes) {
  Json array = Json::array();
  for (const int64_t size : sizes) array.push_back(size);
  return array;
}

// Profiles of the request; else one that fixes open first dimensions to the batch.
Result<JsonValue> profiles_of(const ArtifactRequest& request, const nv::INetworkDefinition& network) {
  if (!request.profiles.elements().empty()) return request.profiles;
  Json profile = Json::object();
  bool is_empty = true;
  for (int32_t i = 0; i < network.getNbInputs(); ++i) {
    const nv::ITensor& input = *network.getInput(i);
    const nv::Dims dims = input.getDimensions();
    std::vector<int64_t> sizes(dims.d, dims.d + std::max(dims.nbDims, 0));
    if (std::ranges::find(sizes, -1) == sizes.end()) continue;
    if (sizes[0] == -1) sizes[0] = request.batch;
    if (std::ranges::find(sizes, -1) != sizes.end())
      return fail(ErrorCode::profile_invalid,
                  "input '{}' has open dimensions besides the first: say which sizes are wanted in \"profiles\"",
                  input.getName());
    const Json fixed = to_json(sizes);
    profile.add(input.getName(), json_object({{"min", fixed}, {"opt", fixed}, {"max", fixed}}));
    is_empty = false;
  }
  Json profiles = Json::array();
  if (!is_empty) profiles.push_back(profile);
  return JsonValue::parse(profiles.text());
}

Result<> add_profile(nv::IBuilder& builder, nv::IBuilderConfig& config, const JsonValue& inputs) {
  nv::IOptimizationProfile* const profile = builder.createOptimizationProfile();
  if (!profile) return fail(failed("the profile cannot be made"));
  constexpr std::pair<const char*, OptProfileSelector> kSelectors[] = {
      {"min", OptProfileSelector::kMIN}, {"opt", OptProfileSelector::kOPT}, {"max", OptProfileSelector::kMAX}};
  for (const auto& [name, sizes] : inputs.members())
    for (const auto& [word, select] : kSelectors)
      if (!profile->setDimensions(name.c_str(), select, dims_of(sizes[word])))
        return fail(failed(fmt::format("the profile's sizes of input '{}' are not taken", name)));
  if (config.addOptimizationProfile(profile) < 0) return fail(failed("the profile does not fit the model"));
  return {};
}

Result<> configure(const ArtifactRequest& request, nv::IBuilderConfig& config) {
  const bool is_narrow = request.precision == "fp16" || request.precision == "best";
  const nv::DataType type = is_narrow                     ? nv::DataType::kHALF
                            : request.precision == "bf16" ? nv::DataType::kBF16
                                                          : nv::DataType::kFLOAT;
  const bool is_set = setTarget(config, request.target.c_str()) && setPrecision(config, type) &&
                      setInt8(config, request.precision == "int8" || request.precision == "best") &&
                      setBuildBudget(config, request.budget_seconds) &&
                      setCpuThreads(config, static_cast<int32_t>(request.threads));
  if (!is_set) return fail(failed("the settings of the request are not taken"));
  if (!request.tf32) config.clearFlag(nv::BuilderFlag::kTF32);
  if (request.refit) config.setFlag(nv::BuilderFlag::kREFIT);
  if (request.level >= 0) config.setBuilderOptimizationLevel(static_cast<int32_t>(request.level));
  return {};
}

}  // namespace

Result<> build(const ArtifactRequest& request, nv::ILogger& logger, Built& built) {
  KeepingLogger keeping(logger);
  const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(keeping));
  if (!builder) return fail(failed("the builder cannot be made"));
  for (const std::string& plugin : request.plugins)
    if (!builder->getPluginRegistry().loadLibrary(plugin.c_str()))
      return fail(failed(fmt::format("plugin library '{}' cannot be loaded", plugin)));
  const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
  const std::unique_ptr<nvonnxparser::IParser> parser(network ? nvonnxparser::createParser(*network, keeping)
                                                              : nullptr);
  if (!parser) return fail(failed("the parser cannot be made"));
  (void)keeping.take();
  const bool is_parsed = parser->parseFromFile(request.onnx.c_str(), static_cast<int>(nv::ILogger::Severity::kWARNING));
  built.parser = keeping.take();
  if (!is_parsed) return fail(failed(fmt::format("'{}' cannot be parsed", request.onnx)));
  const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
  if (!config) return fail(failed("the configuration cannot be made"));
  LATHE_TRY(configure(request, *config));
  LATHE_ASSIGN(built.profiles, profiles_of(request, *network));
  for (const JsonValue& profile : built.profiles.elements()) LATHE_TRY(add_profile(*builder, *config, profile));
  built.plan.reset(builder->buildSerializedNetwork(*network, *config));
  if (!built.plan) return fail(failed(fmt::format("the engine of '{}' cannot be built", request.onnx)));
  return {};
}

}  // namespace lathe::api::artifacts
