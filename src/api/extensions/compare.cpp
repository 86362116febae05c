// SPDX-License-Identifier: Apache-2.0
// An engine's outputs against the plain evaluation; see lathe.h.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>

#include "api/convert.h"
#include "api/json_value.h"
#include "api/report_text.h"
#include "api/runtime/execution_context.h"
#include "base/divide.h"
#include "base/own_object.h"
#include "lathe.h"
#include "ops/random_seed.h"
#include "ops/tensor.h"

namespace lathe {
namespace {

namespace nv = nvinfer1;
using api::Json;
using api::json_object;
using api::JsonValue;

struct Options {
  double rtol = 1e-3;
  double atol = 1e-5;
  bool doubles = false;  // the plain evaluation is in f64
};

Result<Options> parse_options(const char* text) {
  Options options;
  if (!text || !*text) return options;
  using Kind = JsonValue::Kind;
  LATHE_ASSIGN(const JsonValue given, JsonValue::parse_object("the options", text));
  for (const auto& [key, value] : given.members()) {
    if (key == "doubles" && value.is(Kind::boolean)) {
      options.doubles = value.truth();
      continue;
    }
    if ((key != "rtol" && key != "atol") || !value.is(Kind::number))
      return fail(ErrorCode::invalid_argument, "option '{}' is unknown, or its value of another type", key);
    if (value.number() < 0) return fail(ErrorCode::invalid_argument, "option '{}' is negative", key);
    (key == "rtol" ? options.rtol : options.atol) = value.number();
  }
  return options;
}

tl::unexpected<Error> failure(const char* what) {
  return fail(ErrorCode::invalid_state, "{} failed: {}", what, std::string(lastError()));
}

// One output's memory, as large as it turns out to be.
class OutputMemory final : public nv::IOutputAllocator {
 public:
  ~OutputMemory() override { std::free(data_); }
  void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t alignment, cudaStream_t) override {
    std::free(data_);
    return data_ = std::aligned_alloc(alignment, round_up(size, alignment));
  }
  void notifyShape(const char*, const nv::Dims& dims) noexcept override { dims_ = dims; }
  void* data() const { return data_; }
  const nv::Dims& dims() const { return dims_; }

 private:
  void* data_ = nullptr;
  nv::Dims dims_ = api::invalid_dims();
};

Result<Tensor> view(const NamedTensor& tensor) {
  LATHE_ASSIGN(const std::string name, api::to_string(tensor.name, "tensor's name"));
  LATHE_ASSIGN(const DType dtype, api::to_dtype(tensor.type));
  LATHE_ASSIGN(Dims dims, api::to_dims(tensor.dims));
  const std::optional<int64_t> volume = checked_volume(dims);
  if (!volume || (*volume > 0 && !tensor.data))
    return fail(ErrorCode::binding_invalid, "tensor '{}' has no data, or a negative dim", name);
  return Tensor::view(dtype, std::move(dims), tensor.data, nullptr);
}

struct Comparison {
  bool passed = false;
  Json json = nullptr;
};

Comparison compare_tensor(const std::string& name, const Tensor& want, const Tensor& have, const Options& options) {
  // What is a float may have been narrowed.
  const bool same_type = have.dtype() == want.dtype() || (is_floating(have.dtype()) && is_floating(want.dtype()));
  if (have.dims() != want.dims() || !same_type) {
    const std::string message =
        fmt::format("type or shape differs: {}{} instead of {}{}", name_of(have.dtype()),
                    to_string(to_shape(have.dims())), name_of(want.dtype()), to_string(to_shape(want.dims())));
    return {false, json_object({{"name", name}, {"passed", false}, {"elements", want.volume()}, {"message", message}})};
  }
  double max_abs = 0, max_rel = 0, squares = 0, product = 0, of_have = 0, of_want = 0;
  int64_t mismatches = 0;
  for (int64_t i = 0; i < want.volume(); ++i) {
    const double a = have.at_double(i), b = want.at_double(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    product += a * b;
    of_have += a * a;
    of_want += b * b;
    if (a == b) continue;
    const double difference = std::isnan(a - b) ? HUGE_VAL : std::fabs(a - b);
    squares += difference * difference;
    if (!std::isfinite(difference) || difference > options.atol + options.rtol * std::fabs(b)) ++mismatches;
    max_abs = std::max(max_abs, difference);
    if (b != 0) max_rel = std::max(max_rel, difference / std::fabs(b));
  }
  const bool passed = mismatches == 0;
  const double lengths = std::sqrt(of_have) * std::sqrt(of_want);
  return {passed, json_object({{"name", name},
                               {"passed", passed},
                               {"elements", want.volume()},
                               {"max_abs", max_abs},
                               {"max_rel", max_rel},
                               {"rms", std::sqrt(squares / std::max<double>(static_cast<double>(want.volume()), 1))},
                               {"cosine", lengths > 0          ? product / lengths
                                          : of_have == of_want ? 1
                                                               : 0},
                               {"mismatches", mismatches}})};
}

// Compares what an engine computes on its way, each under the name that it has in the model.
class InnerTensors {
 public:
  InnerTensors(std::span<const NamedTensor> wanted, const Options& options) : options_(options) {
    for (const NamedTensor& tensor : wanted) wanted_[tensor.name] = &tensor;
  }

  void see(const plan::TensorDesc& tensor, const Tensor& content) {
    const auto it = wanted_.find(tensor.name);
    if (it == wanted_.end()) return;
    const Result<Comparison> compared = compare(*it->second, content);
    if (compared) reports_.push_back(compared->json);
  }
  Json take_reports() { return std::move(reports_); }

 private:
  Result<Comparison> compare(const NamedTensor& wanted, const Tensor& content) const {
    LATHE_ASSIGN(const Tensor want, view(wanted));
    // Steps may see another shape of the same elements, such as the one before a flattening.
    const Tensor have = content.volume() == want.volume() ? content.reshaped(want.dims()) : content;
    return compare_tensor(wanted.name, want, have, options_);
  }

  const Options& options_;
  std::map<std::string, const NamedTensor*> wanted_;
  Json reports_ = Json::array();
};

// Both sides draw the same random numbers.
class OneSeed {
 public:
  OneSeed() : before_(set_random_seed(1)) {}
  ~OneSeed() { set_random_seed(before_); }
  OneSeed(const OneSeed&) = delete;
  OneSeed& operator=(const OneSeed&) = delete;

 private:
  std::optional<uint64_t> before_;
};

Result<Json> compare_with(nv::ICudaEngine& engine, std::span<const NamedTensor> inputs,
                          std::span<const NamedTensor> wanted, const Options& options) {
  const std::unique_ptr<nv::IExecutionContext> context(engine.createExecutionContext());
  if (!context) return failure("making a context");
  for (const NamedTensor& input : inputs)
    if (!context->setInputShape(input.name, input.dims) || !context->setInputTensorAddress(input.name, input.data))
      return failure("setting an input");
  std::map<std::string, OutputMemory> outputs;
  for (int32_t i = 0; i < engine.getNbIOTensors(); ++i)
    if (const char* name = engine.getIOTensorName(i); engine.getTensorIOMode(name) == nv::TensorIOMode::kOUTPUT)
      context->setOutputAllocator(name, &outputs[name]);
  InnerTensors inner(wanted, options);
  LATHE_ASSIGN(api::ExecutionContext* const own, own_object<api::ExecutionContext>(*context));
  own->inner().hooks.observer = [&](const plan::TensorDesc& tensor, const Tensor& content) -> Result<> {
    if (!outputs.contains(tensor.name)) inner.see(tensor, content);
    return {};
  };
  if (!context->enqueueV3(nullptr)) return failure("running");
  bool passed = true;
  Json reports = Json::array();
  for (const NamedTensor& tensor : wanted) {
    const auto output = outputs.find(tensor.name);
    if (output == outputs.end()) continue;
    const NamedTensor got{tensor.name, engine.getTensorDataType(tensor.name), output->second.dims(),
                          output->second.data()};
    LATHE_ASSIGN(const Tensor want, view(tensor));
    LATHE_ASSIGN(const Tensor have, view(got));
    const Comparison compared = compare_tensor(tensor.name, want, have, options);
    reports.push_back(compared.json);
    passed &= compared.passed;
  }
  return json_object({{"passed", passed}, {"tensors", inner.take_reports()}, {"outputs", std::move(reports)}});
}

Result<Json> compare(nv::ICudaEngine& engine, const char* path, std::span<const NamedTensor> inputs,
                     const Options& options) {
  const OneSeed seed;
  const auto count = static_cast<int32_t>(inputs.size());
  const std::unique_ptr<ITensorList> list(options.doubles ? evaluateInDoubles(path, inputs.data(), count, true)
                                                          : evaluate(path, inputs.data(), count, true));
  if (!list) return failure("the plain evaluation");
  std::vector<NamedTensor> wanted;
  for (int32_t i = 0; i < list->size(); ++i) wanted.push_back(*list->get(i));
  return compare_with(engine, inputs, wanted, options);
}

Result<std::span<const NamedTensor>> named(const NamedTensor* tensors, int32_t count, std::string_view what) {
  for (int32_t i = 0; i < count; ++i)
    if (!tensors || !tensors[i].name) return fail(ErrorCode::invalid_argument, "{} has no name", what);
  return std::span(tensors, static_cast<size_t>(std::max(count, 0)));
}

}  // namespace

nv::IHostMemory* compareTensorsJson(const NamedTensor& have, const NamedTensor& want,
                                    const char* optionsJson) noexcept {
  return api::report_text("compareTensorsJson", [&]() -> Result<std::string> {
    LATHE_ASSIGN(const Options options, parse_options(optionsJson));
    LATHE_ASSIGN(const Tensor wanted, view(want));
    LATHE_ASSIGN(const Tensor given, view(have));
    return compare_tensor(want.name, wanted, given, options).json.indented();
  });
}

nv::IHostMemory* compareJson(nv::ICudaEngine& engine, const char* onnxPath, const NamedTensor* inputs, int32_t nbInputs,
                             const char* optionsJson) noexcept {
  return api::report_text("compareJson", [&]() -> Result<std::string> {
    LATHE_ASSIGN(const std::string path, api::to_string(onnxPath, "model path"));
    LATHE_ASSIGN(const std::span<const NamedTensor> given, named(inputs, nbInputs, "an input"));
    LATHE_ASSIGN(const Options options, parse_options(optionsJson));
    LATHE_ASSIGN(const Json json, compare(engine, path.c_str(), given, options));
    return json.indented();
  });
}

nv::IHostMemory* compareWithTensorsJson(nv::ICudaEngine& engine, const NamedTensor* inputs, int32_t nbInputs,
                                        const NamedTensor* wanted, int32_t nbWanted, const char* optionsJson) noexcept {
  return api::report_text("compareWithTensorsJson", [&]() -> Result<std::string> {
    LATHE_ASSIGN(const std::span<const NamedTensor> given, named(inputs, nbInputs, "an input"));
    LATHE_ASSIGN(const std::span<const NamedTensor> others, named(wanted, nbWanted, "a tensor to compare with"));
    for (const NamedTensor& other : others) LATHE_TRY(view(other));
    LATHE_ASSIGN(const Options options, parse_options(optionsJson));
    if (options.doubles) return fail(ErrorCode::invalid_argument, "option 'doubles' is of compareJson() alone");
    const OneSeed seed;
    LATHE_ASSIGN(const Json json, compare_with(engine, given, others, options));
    return json.indented();
  });
}

}  // namespace lathe
