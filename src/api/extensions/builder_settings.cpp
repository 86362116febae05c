// SPDX-License-Identifier: Apache-2.0
// Lathe's own settings of builds; see lathe.h.
#include <algorithm>

#include "api/builder/builder.h"
#include "api/builder/builder_config.h"
#include "api/builder/plan_output.h"
#include "api/network/network.h"
#include "api/own_settings.h"
#include "api/sharing.h"
#include "device/family.h"
#include "lathe.h"
#include "plan/variants.h"

namespace lathe {
namespace {

namespace nv = nvinfer1;
using api::BuilderConfig;
using api::check_threads;
using api::silent;

api::Entry entry(const nv::IBuilderConfig& config) {
  return {silent(), static_cast<const BuilderConfig&>(config).use()};
}

template <class T>
bool set(nv::IBuilderConfig& config, const char* where, T api::OwnSettings::*setting, T value) noexcept {
  return api::guarded(entry(config), where, [&]() -> Result<> {
    static_cast<BuilderConfig&>(config).*setting = value;
    return {};
  });
}

Result<std::string> layer_pattern(const char* layer) {
  LATHE_ASSIGN(std::string pattern, api::to_string(layer, "layer name"));
  if (std::count(pattern.begin(), pattern.end(), '*') > 1)
    return fail(ErrorCode::config_invalid, "'{}' has more than one '*'", pattern);
  return pattern;
}

}  // namespace

bool buildEngineFile(nv::IBuilder& builder, nv::INetworkDefinition& network, nv::IBuilderConfig& config,
                     const char* path) noexcept {
  const auto& reporter = static_cast<api::NetworkDefinition&>(network).reporter();
  return api::guarded(reporter, "lathe::buildEngineFile", [&]() -> Result<> {
    LATHE_ASSIGN(std::string to, api::to_string(path, "path"));
    if (to.empty()) return fail(ErrorCode::invalid_argument, "the path is empty");
    api::PlanInFile output(std::move(to));
    return static_cast<api::Builder&>(builder).build(network, config, output);
  });
}

bool setBuildBudget(nv::IBuilderConfig& config, double seconds) noexcept {
  return set(config, "setBuildBudget", &api::OwnSettings::budget_seconds, seconds);
}

double getBuildBudget(const nv::IBuilderConfig& config) noexcept {
  return static_cast<const BuilderConfig&>(config).budget_seconds;
}

bool setHostMemoryBudget(nv::IBuilderConfig& config, int64_t bytes) noexcept {
  return api::guarded(entry(config), "setHostMemoryBudget", [&]() -> Result<> {
    if (bytes < 0) return fail(ErrorCode::config_invalid, "{} bytes; 0 means no limit", bytes);
    static_cast<BuilderConfig&>(config).host_budget = bytes;
    return {};
  });
}

int64_t getHostMemoryBudget(const nv::IBuilderConfig& config) noexcept {
  return static_cast<const BuilderConfig&>(config).host_budget;
}

bool setTarget(nv::IBuilderConfig& config, const char* target) noexcept {
  return api::guarded(entry(config), "setTarget", [&]() -> Result<> {
    LATHE_ASSIGN(const std::string wanted, api::to_string(target, "target"));
    LATHE_ASSIGN(std::string name, resolve_target(wanted));
    auto& own = static_cast<BuilderConfig&>(config);
    own.target = {std::move(name), "setTarget() names it"};
    own.more_targets.clear();
    return {};
  });
}

bool setTargets(nv::IBuilderConfig& config, const char* targets) noexcept {
  return api::guarded(entry(config), "setTargets", [&]() -> Result<> {
    LATHE_ASSIGN(const std::string list, api::to_string(targets, "list of targets"));
    std::vector<std::string> names;
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      LATHE_ASSIGN(std::string name, resolve_target(list.substr(begin, end - begin)));
      if (std::ranges::count(names, name) > 0)
        return fail(ErrorCode::config_invalid, "target '{}' is named twice", name);
      names.push_back(std::move(name));
      begin = end + 1;
    }
    if (names.size() > plan::kMaxVariants)
      return fail(ErrorCode::config_invalid, "{} targets; a plan has at most {}", names.size(), plan::kMaxVariants);
    auto& own = static_cast<BuilderConfig&>(config);
    own.target = {names.front(), "setTargets() names it"};
    own.more_targets.assign(names.begin() + 1, names.end());
    return {};
  });
}

bool setVariantWeights(nv::IBuilderConfig& config, VariantWeights weights) noexcept {
  return api::guarded(entry(config), "setVariantWeights", [&]() -> Result<> {
    LATHE_ASSIGN(static_cast<BuilderConfig&>(config).sharing, api::sharing_of(weights));
    return {};
  });
}

bool setPrecision(nv::IBuilderConfig& config, nv::DataType type) noexcept {
  return api::guarded(entry(config), "setPrecision", [&]() -> Result<> {
    LATHE_ASSIGN(const DType dtype, api::to_dtype(type));
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
      return fail(ErrorCode::config_invalid, "{} is no type that float32 is narrowed to: take kHALF or kBF16",
                  name_of(dtype));
    static_cast<BuilderConfig&>(config).precision = dtype;
    return {};
  });
}

bool setInt8(nv::IBuilderConfig& config, bool expected) noexcept {
  return set(config, "setInt8", &api::OwnSettings::int8, expected);
}

bool setForcedSparsity(nv::IBuilderConfig& config, bool forced) noexcept {
  return set(config, "setForcedSparsity", &api::OwnSettings::forces_sparsity, forced);
}

bool setCalibrationCache(nv::IBuilderConfig& config, const char* text, size_t size) noexcept {
  return api::guarded(entry(config), "setCalibrationCache", [&]() -> Result<> {
    CalibrationCache cache;
    if (text && size > 0) {
      LATHE_ASSIGN(cache, parse_calibration_cache({text, size}));
    }
    static_cast<BuilderConfig&>(config).calibration = std::move(cache.scales);
    return {};
  });
}

bool setPrecisionConstraints(nv::IBuilderConfig& config, PrecisionConstraints constraints) noexcept {
  return api::guarded(entry(config), "setPrecisionConstraints", [&]() -> Result<> {
    if (constraints < PrecisionConstraints::kNONE || constraints > PrecisionConstraints::kOBEY)
      return fail(ErrorCode::config_invalid, "constraints {} do not exist", static_cast<int>(constraints));
    static_cast<BuilderConfig&>(config).constraints = constraints;
    return {};
  });
}

bool setLayerPrecision(nv::IBuilderConfig& config, const char* layer, nv::DataType type) noexcept {
  return api::guarded(entry(config), "setLayerPrecision", [&]() -> Result<> {
    LATHE_ASSIGN(std::string pattern, layer_pattern(layer));
    LATHE_ASSIGN(const DType dtype, api::to_dtype(type));
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::i8)
      return fail(ErrorCode::config_invalid, "no layer computes in {}: take kFLOAT, kHALF, kBF16 or kINT8",
                  name_of(dtype));
    static_cast<BuilderConfig&>(config).layer_types.push_back({std::move(pattern), dtype, {}});
    return {};
  });
}

bool setLayerOutputType(nv::IBuilderConfig& config, const char* layer, int32_t output, nv::DataType type) noexcept {
  return api::guarded(entry(config), "setLayerOutputType", [&]() -> Result<> {
    LATHE_ASSIGN(std::string pattern, layer_pattern(layer));
    LATHE_ASSIGN(const DType dtype, api::to_dtype(type));
    if (output < 0) return fail(ErrorCode::invalid_argument, "output {} does not exist", output);
    static_cast<BuilderConfig&>(config).layer_types.push_back(
        {std::move(pattern), std::nullopt, {{static_cast<size_t>(output), dtype}}});
    return {};
  });
}

bool setCompiler(nv::IBuilderConfig& config, const char* program) noexcept {
  return api::guarded(silent(), "setCompiler", [&]() -> Result<> {
    std::optional<std::string> path;
    if (program) path = program;
    static_cast<BuilderConfig&>(config).toolchain.program = std::move(path);
    return {};
  });
}

bool setCompilerLimits(nv::IBuilderConfig& config, double seconds, int64_t mebibytes) noexcept {
  return api::guarded(silent(), "setCompilerLimits", [&]() -> Result<> {
    constexpr int64_t kMost = int64_t{1} << 40;
    if (!(seconds > 0) || mebibytes <= 0 || mebibytes > kMost)
      return fail(ErrorCode::config_invalid, "{} s and {} MiB are no limits for a kernel's compilation", seconds,
                  mebibytes);
    CompilerOptions& toolchain = static_cast<BuilderConfig&>(config).toolchain;
    toolchain.seconds = seconds;
    toolchain.memory = static_cast<size_t>(mebibytes) << 20;
    return {};
  });
}

bool setPassDump(nv::IBuilderConfig& config, const char* directory) noexcept {
  return api::guarded(entry(config), "setPassDump", [&]() -> Result<> {
    static_cast<BuilderConfig&>(config).pass_dump = directory ? directory : "";
    return {};
  });
}

bool setPassSkipped(nv::IBuilderConfig& config, const char* pass, bool skipped) noexcept {
  return api::guarded(entry(config), "setPassSkipped", [&]() -> Result<> {
    LATHE_ASSIGN(std::string name, api::to_string(pass, "pass"));
    LATHE_TRY(check_pass_name(name));
    std::vector<std::string>& passes = static_cast<BuilderConfig&>(config).skipped_passes;
    std::erase(passes, name);
    if (skipped) passes.push_back(std::move(name));
    return {};
  });
}

const char* getTarget(const nv::IBuilderConfig& config) noexcept {
  return static_cast<const BuilderConfig&>(config).target.name.c_str();
}

bool setCpuThreads(nv::IBuilderConfig& config, int32_t threads) noexcept {
  return check_threads(threads) && set(config, "setCpuThreads", &api::OwnSettings::cpu_threads, threads);
}

}  // namespace lathe
