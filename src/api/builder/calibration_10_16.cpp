// SPDX-License-Identifier: Apache-2.0
#include "api/builder/calibration.h"

#include <cmath>

#include "api/builder/profile_shapes.h"
#include "quantization/calibration.h"
#include "quantization/thresholds.h"

namespace lathe::api {
namespace {

using nv::CalibrationAlgoType;

constexpr int kVersion = NV_TENSORRT_MAJOR * 10000 + NV_TENSORRT_MINOR * 100 + NV_TENSORRT_PATCH;

// As the first line of caches has it; null = there is no such method.
const char* name_of(CalibrationAlgoType method) {
  switch (method) {
    case CalibrationAlgoType::kLEGACY_CALIBRATION:
      return "LegacyCalibration";
    case CalibrationAlgoType::kENTROPY_CALIBRATION:
      return "EntropyCalibration";
    case CalibrationAlgoType::kENTROPY_CALIBRATION_2:
      return "EntropyCalibration2";
    case CalibrationAlgoType::kMINMAX_CALIBRATION:
      return "MinMaxCalibration";
  }
  return nullptr;
}

// One use of the application's calibrator, whose callbacks are declared noexcept.
class CalibratorRun {
 public:
  CalibratorRun(nv::IInt8Calibrator& calibrator, const BuilderConfig& settings, const BuildOptions& options)
      : calibrator_(calibrator), method_(calibrator.getAlgorithm()), settings_(settings), options_(options) {}

  // Scales of `tensors`, of the cache if the application has one of this method.
  Result<TensorScales> find(const ir::Graph& graph, std::span<const std::string> tensors) {
    if (!name_of(method_))
      return fail(ErrorCode::config_invalid, "IInt8Calibrator::getAlgorithm gave {}, which is no CalibrationAlgoType",
                  static_cast<int>(method_));
    LATHE_ASSIGN(std::optional<TensorScales> scales, read_cache());
    if (scales) return *std::move(scales);
    LATHE_ASSIGN(const Histograms histograms, collect(graph, tensors));
    CalibrationCache cache{name_of(method_), {}};
    for (const auto& [tensor, histogram] : histograms) {
      LATHE_ASSIGN(cache.scales[tensor], scale_of(tensor, histogram));
    }
    const std::string text = to_text(cache, kVersion);
    calibrator_.writeCalibrationCache(text.data(), text.size());
    return std::move(cache.scales);
  }

 private:
  using Histograms = std::map<std::string, Histogram>;

  nv::IInt8LegacyCalibrator* legacy() const {
    return method_ == CalibrationAlgoType::kLEGACY_CALIBRATION ? static_cast<nv::IInt8LegacyCalibrator*>(&calibrator_)
                                                               : nullptr;
  }

  Result<std::optional<TensorScales>> read_cache() {
    size_t length = 0;
    const void* text = calibrator_.readCalibrationCache(length);
    if (!text || length == 0) return std::nullopt;
    LATHE_ASSIGN(CalibrationCache cache, parse_calibration_cache({static_cast<const char*>(text), length}));
    if (cache.method == name_of(method_)) {
      options_.log->print(Severity::info, "{} scales come from the calibration cache", cache.scales.size());
      return std::move(cache.scales);
    }
    options_.log->print(Severity::warning,
                        "the calibration cache is of {}, and the calibrator is of {}: the network is calibrated anew",
                        cache.method, name_of(method_));
    return std::nullopt;
  }

  // Of a legacy calibrator, those that it kept, which a run over other quantiles can use again.
  Result<Histograms> collect(const ir::Graph& graph, std::span<const std::string> tensors) {
    if (!legacy()) return run(graph, tensors);
    size_t length = 0;
    const void* kept = legacy()->readHistogramCache(length);
    if (kept && length > 0) return parse_histograms({static_cast<const char*>(kept), length});
    LATHE_ASSIGN(Histograms histograms, run(graph, tensors));
    std::string text;
    for (const auto& [tensor, histogram] : histograms) text += fmt::format("{}: {}\n", tensor, histogram.to_text());
    legacy()->writeHistogramCache(text.data(), text.size());
    return histograms;
  }

  static Result<Histograms> parse_histograms(std::string_view text) {
    Histograms histograms;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      const size_t colon = line.rfind(": ");
      if (colon == std::string_view::npos)
        return fail(ErrorCode::invalid_argument, "the histogram cache has a line without a colon: '{}'",
                    line.substr(0, 60));
      LATHE_ASSIGN(Histogram histogram, Histogram::parse(line.substr(colon + 2)));
      histograms.insert_or_assign(std::string(line.substr(0, colon)), std::move(histogram));
    }
    return histograms;
  }

  Result<Histograms> run(const ir::Graph& graph, std::span<const std::string> tensors) {
    ProfileShapes sizes;
    if (const nv::IOptimizationProfile* profile = settings_.calibration_profile()) {
      LATHE_ASSIGN(sizes, shapes_of(static_cast<const OptimizationProfile&>(*profile)));
    } else if (!options_.profiles.empty()) {
      sizes = options_.profiles.front();
    }
    LATHE_ASSIGN(const auto calibration, Calibration::create(graph, &sizes, tensors, settings_.cpu_threads));
    int batches = 0;
    for (;; ++batches) {
      if (options_.progress && !options_.progress("calibrating", 0))
        return fail(ErrorCode::cancelled, "the build was cancelled while calibrating");
      LATHE_ASSIGN(const std::vector<Tensor> batch, next_batch(calibration->inputs()));
      if (batch.empty()) break;
      LATHE_TRY(calibration->add(batch));
    }
    if (batches == 0)
      return fail(ErrorCode::config_invalid,
                  "the calibrator gives no batch (IInt8Calibrator::getBatch) and has no calibration cache");
    options_.log->print(Severity::info, "calibrated {} tensors with {} batches", tensors.size(), batches);
    return calibration->histograms();
  }

  // Empty = there are no more.
  Result<std::vector<Tensor>> next_batch(std::span<const Calibration::Input> inputs) {
    std::vector<const char*> names;
    for (const Calibration::Input& input : inputs) names.push_back(input.name.c_str());
    std::vector<void*> addresses(inputs.size());
    std::vector<Tensor> batch;
    if (!calibrator_.getBatch(addresses.data(), names.data(), static_cast<int32_t>(inputs.size()))) return batch;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!addresses[i])
        return fail(ErrorCode::binding_missing, "IInt8Calibrator::getBatch gave no address for input '{}'", names[i]);
      LATHE_ASSIGN(const void* readable, on_host(addresses[i], inputs[i]));
      batch.push_back(Tensor::view(inputs[i].dtype, inputs[i].dims, readable, nullptr));
    }
    return batch;
  }

  // Calibrators of programs for GPUs hand out memory of the device.
  Result<const void*> on_host(const void* address, const Calibration::Input& input) {
    if (!is_device_memory(address)) return address;
    const std::shared_ptr<Device>& device = options_.tuner.device;
    if (!device || device->is_host())
      return fail(ErrorCode::binding_invalid,
                  "IInt8Calibrator::getBatch gave device memory for input '{}', and the build is for {}: give memory "
                  "of the host",
                  input.name, options_.target);
    LATHE_ASSIGN(Tensor copy, Tensor::allocate(input.dtype, input.dims));
    LATHE_ASSIGN(const std::unique_ptr<Queue> queue, device->make_queue());
    LATHE_TRY(device->download(copy.mutable_data(), address, copy.bytes(), *queue));
    const Tensor& kept = copies_.insert_or_assign(input.name, std::move(copy)).first->second;
    return kept.data();
  }

  Result<float> scale_of(const std::string& tensor, const Histogram& histogram) {
    if (histogram.non_finite() > 0) {
      options_.log->print(Severity::warning, "tensor '{}' holds infinities or NaNs in calibration batches: no range",
                          tensor);
      return 0.0f;
    }
    double threshold = histogram.largest();
    if (nv::IInt8LegacyCalibrator* const own = legacy()) {
      const double quantile = own->getQuantile();
      if (!(quantile >= 0 && quantile <= 1))
        return fail(ErrorCode::config_invalid, "IInt8LegacyCalibrator::getQuantile gave {}, which is not in [0, 1]",
                    quantile);
      threshold = quantile_threshold(histogram, quantile);
    } else if (method_ != CalibrationAlgoType::kMINMAX_CALIBRATION) {
      threshold = entropy_threshold(histogram);
    }
    return static_cast<float>(threshold / kLargestLevel);
  }

  nv::IInt8Calibrator& calibrator_;
  const CalibrationAlgoType method_;
  const BuilderConfig& settings_;
  const BuildOptions& options_;
  std::map<std::string, Tensor> copies_;  // of a batch in the device's memory
};

}  // namespace

TensorScales given_scales(const nv::INetworkDefinition& network) {
  TensorScales scales;
  const auto note = [&](const nv::ITensor* tensor) {
    if (tensor && tensor->dynamicRangeIsSet())
      scales[tensor->getName()] = static_cast<float>(
          std::max(std::fabs(tensor->getDynamicRangeMin()), std::fabs(tensor->getDynamicRangeMax())) / kLargestLevel);
  };
  for (int32_t i = 0; i < network.getNbInputs(); ++i) note(network.getInput(i));
  for (int32_t l = 0; l < network.getNbLayers(); ++l)
    for (int32_t i = 0; i < network.getLayer(l)->getNbOutputs(); ++i) note(network.getLayer(l)->getOutput(i));
  return scales;
}

bool has_calibrator(const BuilderConfig& settings) { return settings.getInt8Calibrator() != nullptr; }

Result<TensorScales> calibrated_scales(const BuilderConfig& settings, const ir::Graph& graph,
                                       std::span<const std::string> tensors, const BuildOptions& options) {
  if (tensors.empty()) return TensorScales();
  return CalibratorRun(*settings.getInt8Calibrator(), settings, options).find(graph, tensors);
}

}  // namespace lathe::api
