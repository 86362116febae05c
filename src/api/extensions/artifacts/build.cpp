// SPDX-License-Identifier: Apache-2.0
#include "api/extensions/artifacts/build.h"

#include <mutex>

#include "NvOnnxParser.h"
#include "api/report.h"
#include "lathe.h"

namespace lathe::api::artifacts {
namespace {

using nlohmann::json;
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
      kept_.push_back({{"severity", severity == Severity::kWARNING ? "warning" : "error"}, {"message", message}});
    } catch (const std::exception&) {
      return;  // without memory the line is logged all the same
    }
  }
  json take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(kept_, json::array());
  }

 private:
  nv::ILogger& next_;
  std::mutex mutex_;
  json kept_ = json::array();
};

Error failed(std::string_view what) { return fail(ErrorCode::invalid_state, "{} ({})", what, last_error()).value(); }

// Of sizes that parse_request() has checked.
nv::Dims dims_of(const json& sizes) {
  nv::Dims dims{};
  dims.nbDims = static_cast<int32_t>(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) dims.d[i] = sizes[i].get<int64_t>();
  return dims;
}

// Profiles of the request; else one that fixes open first dimensions to the batch.
Result<json> profiles_of(const ArtifactRequest& request, const nv::INetworkDefinition& network) {
  if (!request.profiles.empty()) return request.profiles;
  json profile = json::object();
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
    profile[input.getName()] = {{"min", sizes}, {"opt", sizes}, {"max", sizes}};
  }
  return profile.empty() ? json::array() : json::array({profile});
}

Result<> add_profile(nv::IBuilder& builder, nv::IBuilderConfig& config, const json& inputs) {
  nv::IOptimizationProfile* const profile = builder.createOptimizationProfile();
  if (!profile) return fail(failed("the profile cannot be made"));
  constexpr std::pair<const char*, OptProfileSelector> kSelectors[] = {
      {"min", OptProfileSelector::kMIN}, {"opt", OptProfileSelector::kOPT}, {"max", OptProfileSelector::kMAX}};
  for (const auto& [name, sizes] : inputs.items())
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
  for (const json& profile : built.profiles) LATHE_TRY(add_profile(*builder, *config, profile));
  built.plan.reset(builder->buildSerializedNetwork(*network, *config));
  if (!built.plan) return fail(failed(fmt::format("the engine of '{}' cannot be built", request.onnx)));
  return {};
}

}  // namespace lathe::api::artifacts
