// SPDX-License-Identifier: Apache-2.0
// See lathe_quantize.h.
#include "lathe_quantize.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "api/convert.h"
#include "api/exclusive.h"
#include "api/extensions/quantize/layers.h"
#include "api/extensions/quantize/options.h"
#include "api/host_memory.h"
#include "api/json.h"
#include "api/name_pattern.h"
#include "api/report.h"
#include "onnx/import.h"
#include "onnx/qdq_writer.h"
#include "onnx/reader.h"
#include "ops/rules.h"
#include "quantization/calibration.h"
#include "quantization/quantize_products.h"

namespace lathe {
namespace {

namespace nv = nvinfer1;
using api::Json;
using api::json_object;
using api::quantize::ProductLayer;
using api::quantize::QuantizeOptions;

Result<Tensor> number(double value, DType type) {
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(type, {}));
  from_doubles({&value, 1}, tensor);
  return tensor;
}

Result<> check_finite(const std::string& name, const Tensor& tensor) {
  if (!is_floating(tensor.dtype())) return {};
  const std::vector<double> values = to_doubles(tensor);
  const auto bad = std::ranges::find_if(values, [](double value) { return !std::isfinite(value); });
  if (bad == values.end()) return {};
  return fail(ErrorCode::binding_invalid, "input '{}' holds {} at element {}: no range can be found from it", name,
              *bad, bad - values.begin());
}

// What becomes of a layer.
struct Decision {
  const ProductLayer* layer = nullptr;
  std::string why;   // it stays in floats
  LevelScale scale;  // of its tensor, when there were batches
  bool is_quantized() const { return why.empty(); }
};

class Quantizer final : public IQuantizer {
 public:
  explicit Quantizer(nv::ILogger& logger) : reporter_(&logger) {}

  Result<> load(const std::string& path, int32_t threads);

  bool addBatch(const NamedTensor* inputs, int32_t count) noexcept override {
    return api::guarded(entry(), "IQuantizer::addBatch", [&] { return add(inputs, count); });
  }
  nv::IHostMemory* layersJson(const char* options) noexcept override {
    return report("IQuantizer::layersJson", [&]() -> Result<nv::IHostMemory*> {
      LATHE_ASSIGN(const Json json, layers(options));
      return api::HostMemory::of_text(json.indented());
    });
  }
  nv::IHostMemory* model(const char* options) noexcept override {
    return report("IQuantizer::model", [&]() -> Result<nv::IHostMemory*> {
      LATHE_ASSIGN(const std::string bytes, quantize(options));
      return new api::HostMemory(std::as_bytes(std::span(bytes)));
    });
  }

 private:
  api::Entry entry() { return {reporter_, use_}; }
  template <class Body>
  nv::IHostMemory* report(const char* where, Body&& body) noexcept {
    return api::guarded(entry(), where, static_cast<nv::IHostMemory*>(nullptr), std::forward<Body>(body));
  }
  Result<> add(const NamedTensor* inputs, int32_t count);
  static Result<Tensor> input(const Calibration::Input& expected, const NamedTensor* inputs, int32_t count);
  Result<std::vector<Decision>> decide(const QuantizeOptions& options) const;
  Result<Json> layers(const char* options) const;
  Result<std::string> quantize(const char* options) const;
  Result<> check_opset(const QuantizeOptions& options) const;
  Result<> quantize_layer(onnx::QdqWriter& writer, const Decision& decision, const QuantizeOptions& options) const;

  api::Reporter reporter_;
  api::Exclusive use_{"quantizer"};
  std::shared_ptr<const MappedFile> file_;
  onnx::Model model_;
  ir::Graph network_;
  std::vector<ProductLayer> layers_;
  std::unique_ptr<Calibration> calibration_;
  int64_t batches_ = 0;
};

Result<> Quantizer::load(const std::string& path, int32_t threads) {
  if (threads < 0) return fail(ErrorCode::invalid_argument, "{} threads; 0 means all", threads);
  LATHE_ASSIGN(file_, MappedFile::open(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  LATHE_ASSIGN(model_, onnx::read_model(file_, {.directory = folder.empty() ? "." : folder}));
  LATHE_TRY(onnx::import_model(model_, network_));
  if (is_quantized(network_))
    return fail(ErrorCode::invalid_argument,
                "'{}' is quantised already: it has quantize or dequantize layers, or inputs of int8", path);
  LATHE_ASSIGN(layers_, api::quantize::find_layers(model_, network_));
  std::set<std::string> tensors;
  for (const ProductLayer& layer : layers_)
    if (layer.why.empty()) tensors.insert(layer.tensor);
  LATHE_ASSIGN(calibration_, Calibration::create(network_, nullptr,
                                                 std::vector<std::string>(tensors.begin(), tensors.end()), threads));
  return {};
}

Result<Tensor> Quantizer::input(const Calibration::Input& expected, const NamedTensor* inputs, int32_t count) {
  const NamedTensor* given = nullptr;
  for (int32_t i = 0; i < count; ++i)
    if (inputs[i].name && expected.name == inputs[i].name) given = &inputs[i];
  if (!given) return fail(ErrorCode::binding_missing, "input '{}' is not given", expected.name);
  LATHE_ASSIGN(const DType type, api::to_dtype(given->type));
  LATHE_ASSIGN(Dims dims, api::to_dims(given->dims));
  if (type != expected.dtype)
    return fail(ErrorCode::binding_invalid, "input '{}' is {}, and {} was given", expected.name,
                name_of(expected.dtype), name_of(type));
  bool fits = dims.size() == expected.dims.size();
  for (size_t d = 0; fits && d < dims.size(); ++d)
    fits = dims[d] >= 0 && (expected.dims[d] < 0 || dims[d] == expected.dims[d]);
  const std::optional<int64_t> volume = checked_volume(dims);
  if (!fits || !volume)
    return fail(ErrorCode::binding_invalid, "input '{}' has dims [{}], and [{}] were given", expected.name,
                fmt::join(expected.dims, ", "), fmt::join(dims, ", "));
  if (*volume > 0 && !given->data) return fail(ErrorCode::binding_invalid, "input '{}' has no data", expected.name);
  if (*volume == 0) return Tensor::allocate(type, std::move(dims));
  Tensor tensor = Tensor::view(type, std::move(dims), given->data, nullptr);
  LATHE_TRY(check_finite(expected.name, tensor));
  return tensor;
}

Result<> Quantizer::add(const NamedTensor* inputs, int32_t count) {
  if (count < 0 || (count > 0 && !inputs)) return fail(ErrorCode::invalid_argument, "inputs are null");
  const std::vector<Calibration::Input>& expected = calibration_->inputs();
  for (int32_t i = 0; i < count; ++i)
    if (!inputs[i].name ||
        std::ranges::none_of(expected, [&](const auto& each) { return each.name == inputs[i].name; }))
      return fail(ErrorCode::binding_invalid, "the model has no input '{}'",
                  inputs[i].name ? inputs[i].name : "(null)");
  std::vector<Tensor> batch;
  for (const Calibration::Input& each : expected) {
    LATHE_ASSIGN(Tensor tensor, input(each, inputs, count));
    batch.push_back(std::move(tensor));
  }
  LATHE_TRY(calibration_->add(batch));
  ++batches_;
  return {};
}

Result<std::vector<Decision>> Quantizer::decide(const QuantizeOptions& options) const {
  std::vector<Decision> decisions;
  std::set<std::string_view> unused(options.exclude.begin(), options.exclude.end());
  for (const ProductLayer& layer : layers_) {
    Decision& decision = decisions.emplace_back(Decision{&layer, layer.why, {}});
    for (const std::string& pattern : options.exclude) {
      if (!api::matches(pattern, layer.name) && !api::matches(pattern, layer.op)) continue;
      unused.erase(pattern);
      if (decision.is_quantized()) decision.why = fmt::format("'{}' is excluded", pattern);
    }
    if (is_factor_float8(options.weights) && layer.op == "Conv" && decision.is_quantized())
      decision.why = "targets multiply 8-bit floats in matrix products alone";
    if (layer.tensor.empty() || batches_ == 0) continue;
    const Histogram& histogram = calibration_->histograms().at(layer.tensor);
    decision.scale = scale_of(histogram, options.activations);
    if (histogram.non_finite() > 0 && decision.is_quantized())
      decision.why = fmt::format("'{}' holds infinities or NaNs in batches", layer.tensor);
  }
  if (unused.empty()) return decisions;
  return fail(ErrorCode::invalid_argument, "no layer that multiplies is called '{}', nor is that the operator of one",
              fmt::join(unused, "', '"));
}

Result<Json> Quantizer::layers(const char* text) const {
  LATHE_ASSIGN(const QuantizeOptions options, api::quantize::parse_options(text));
  LATHE_ASSIGN(const std::vector<Decision> decisions, decide(options));
  Json rows = Json::array();
  for (const Decision& decision : decisions) {
    const bool is_known = batches_ > 0 && !decision.layer->tensor.empty();
    const auto known = [&](double value) { return is_known ? Json(value) : Json(nullptr); };
    rows.push_back(json_object({{"name", decision.layer->name},
                                {"op", decision.layer->op},
                                {"tensor", decision.layer->tensor},
                                {"quantized", decision.is_quantized()},
                                {"why", decision.why},
                                {"low", known(decision.scale.low)},
                                {"high", known(decision.scale.high)},
                                {"scale", known(decision.scale.scale)},
                                {"zero_point", known(static_cast<double>(decision.scale.zero_point))}}));
  }
  return json_object({{"batches", batches_}, {"layers", std::move(rows)}});
}

Result<> Quantizer::check_opset(const QuantizeOptions& options) const {
  const bool is_float = is_factor_float8(options.weights);
  const int64_t needed = is_float ? 19 : options.per_channel ? 13 : 10;
  for (const onnx::OpsetImport& opset : model_.opset_imports)
    if (onnx::normal_domain(opset.domain).empty() && opset.version < needed)
      return fail(ErrorCode::opset_unsupported,
                  "the model is of operator set {}, and {} need {} or later: convert it (onnx.version_converter){}",
                  opset.version,
                  is_float              ? "levels that are 8-bit floats"
                  : options.per_channel ? "scales of channels"
                                        : "levels",
                  needed, !is_float && opset.version >= 10 ? ", or have one scale for all channels" : "");
  return {};
}

// Where levels of 32 bits hold it, a bias becomes levels of the sums' scale, as kernels of integers take it.
Result<std::optional<Tensor>> bias_levels(const Tensor& bias, const std::vector<double>& scales) {
  std::vector<double> levels = to_doubles(bias);
  for (size_t i = 0; i < levels.size(); ++i) {
    levels[i] = std::nearbyint(levels[i] / scales[scales.size() == 1 ? 0 : i]);
    if (!(std::fabs(levels[i]) < 0x1p31)) return std::optional<Tensor>();
  }
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(DType::i32, bias.dims()));
  from_doubles(levels, tensor);
  return std::optional(std::move(tensor));
}

Result<> Quantizer::quantize_layer(onnx::QdqWriter& writer, const Decision& decision,
                                   const QuantizeOptions& options) const {
  const ProductLayer& layer = *decision.layer;
  std::optional<size_t> channels;
  if (options.per_channel) channels = layer.channels;
  LATHE_ASSIGN(const WeightLevels weights, levels_of_weights(layer.weights, channels, options.weights));
  const auto zero = static_cast<double>(middle_level(options.weights));
  const auto axis = channels ? std::optional<int64_t>(*channels) : std::nullopt;
  LATHE_TRY(writer.replace(layer.node, 1, weights.levels, weights.scales, zero, axis));
  if (!layer.bias || is_factor_float8(options.weights)) return {};  // sums of floats are floats
  std::vector<double> scales = to_doubles(weights.scales);
  for (double& scale : scales) scale = static_cast<double>(static_cast<float>(scale * decision.scale.scale));
  LATHE_ASSIGN(const std::optional<Tensor> bias, bias_levels(*layer.bias, scales));
  if (!bias) return {};
  LATHE_ASSIGN(Tensor steps, Tensor::allocate(DType::f32, {static_cast<int64_t>(scales.size())}));
  from_doubles(scales, steps);
  return writer.replace(layer.node, 2, *bias, steps, 0, channels ? std::optional<int64_t>(0) : std::nullopt);
}

Result<std::string> Quantizer::quantize(const char* text) const {
  LATHE_ASSIGN(const QuantizeOptions options, api::quantize::parse_options(text));
  LATHE_ASSIGN(const std::vector<Decision> decisions, decide(options));
  if (batches_ == 0)
    return fail(ErrorCode::invalid_state, "no batch was added: what tensors hold is not known (IQuantizer::addBatch)");
  LATHE_TRY(check_opset(options));
  onnx::QdqWriter writer(model_);
  std::map<std::string_view, LevelScale> tensors;
  std::set<size_t> floats;
  for (const Decision& decision : decisions) {
    if (!decision.is_quantized()) {
      floats.insert(decision.layer->node);
      continue;
    }
    tensors.emplace(model_.graph.nodes[decision.layer->node].inputs[0], decision.scale);
  }
  if (tensors.empty())
    return fail(ErrorCode::invalid_argument,
                "nothing is to be quantised: of {} convolutions and matrix products all stay in floats",
                decisions.size());
  for (const auto& [tensor, scale] : tensors) {
    LATHE_ASSIGN(const Tensor step, number(scale.scale, DType::f32));
    LATHE_ASSIGN(const Tensor zero, number(static_cast<double>(scale.zero_point), options.activations.type));
    LATHE_TRY(writer.round(tensor, step, zero, floats));
  }
  for (const Decision& decision : decisions)
    if (decision.is_quantized()) LATHE_TRY(quantize_layer(writer, decision, options));
  return onnx::write_model(file_->bytes(), model_, writer.take());
}

}  // namespace

IQuantizer* createQuantizer(const char* onnxPath, int32_t threads, nv::ILogger& logger) noexcept {
  const api::Reporter reporter(&logger);
  return api::guarded(reporter, "lathe::createQuantizer", static_cast<IQuantizer*>(nullptr),
                      [&]() -> Result<IQuantizer*> {
                        LATHE_ASSIGN(const std::string path, api::to_string(onnxPath, "model path"));
                        auto quantizer = std::make_unique<Quantizer>(logger);
                        LATHE_TRY(quantizer->load(path, threads));
                        return quantizer.release();
                      });
}

}  // namespace lathe
