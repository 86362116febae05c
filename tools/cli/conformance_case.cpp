// SPDX-License-Identifier: Apache-2.0
#include "conformance_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "case_data.h"
#include "failure.h"
#include "lathe_onnx.h"
#include "session.h"

namespace lathe::cli {
namespace {

// ONNX's own.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

struct Unsupported : std::runtime_error {
  [[nodiscard]] explicit Unsupported(const std::string& message) : std::runtime_error(message) {}
};

// The library's codes for what it cannot do, as opposed to what went wrong.
[[noreturn]] void fail_or_refuse(const std::string& message) {
  for (const char* name : {"_unsupported:", "shape_unknown:", "no_tactic:"})
    if (message.find(name) != std::string::npos) throw Unsupported(message);
  throw Failure(message);
}

using ElementsByInput = std::map<std::string, Elements>;

void tell_elements(nvonnxparser::IParser& parser, const ElementsByInput& elements, Mode mode) {
  for (const auto& [input, each] : elements) {
    nvinfer1::Dims dims{};
    dims.nbDims = static_cast<int32_t>(each.dims.size());
    for (size_t d = 0; d < each.dims.size(); ++d) dims.d[d] = mode == Mode::symbolic ? -1 : each.dims[d];
    setInputElements(parser, input.c_str(), each.count, each.has_dims ? &dims : nullptr);
  }
}

Plan build_case(const std::string& model, const std::string& path, const CaseOptions& options,
                const ElementsByInput& elements, ConsoleLogger& logger) {
  const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
  if (!builder) throw Failure("no builder: " + logger.take_errors());
  const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  tell_elements(*parser, elements, options.mode);
  if (!parser->parse(model.data(), model.size(), path.c_str())) {
    bool unsupported = parser->getNbErrors() > 0;
    for (int i = 0; i < parser->getNbErrors(); ++i)
      unsupported &= parser->getError(i)->code() >= nvonnxparser::ErrorCode::kUNSUPPORTED_GRAPH;
    const std::string message = parser->getNbErrors() > 0 ? parser->getError(0)->desc() : logger.take_errors();
    if (unsupported) throw Unsupported(message);
    throw Failure(message);
  }
  const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
  setBuildBudget(*config, 0);
  setCpuThreads(*config, 1);
  if (!options.target.empty() && !setTarget(*config, options.target.c_str())) throw Failure(lastError());
  if (!options.tf32) config->clearFlag(nvinfer1::BuilderFlag::kTF32);
  Plan plan(builder->buildSerializedNetwork(*network, *config));
  if (!plan) fail_or_refuse("build: " + logger.take_errors());
  return plan;
}

// Whether operators of the model draw random numbers: those that the case lists are of another generator.
bool draws_numbers(const std::string& model) {
  for (const char* name : {"Bernoulli", "Multinomial", "RandomNormal", "RandomUniform"})
    if (model.find(name) != std::string::npos) return true;
  return false;
}

// Rows of bytes without the zeros behind them.
std::vector<std::string> strings_of(const HostTensor& tensor) {
  const size_t width = static_cast<size_t>(tensor.dims.back());
  std::vector<std::string> strings;
  for (size_t at = 0; at < tensor.data.size(); at += width) {
    std::string& string = strings.emplace_back(reinterpret_cast<const char*>(tensor.data.data()) + at, width);
    string.resize(string.find_last_not_of('\0') + 1);
  }
  return strings;
}

void compare_strings(const HostTensor& got, const HostTensor& wanted) {
  const auto dims = [](const HostTensor& tensor) {
    return tensor.dims.empty() ? tensor.dims : std::vector(tensor.dims.begin(), tensor.dims.end() - 1);
  };
  if (got.type != wanted.type || got.dims.size() != wanted.dims.size() || dims(got) != dims(wanted))
    throw Failure(fmt::format("output '{}' is {} {} instead of strings {}", wanted.name, type_name(got.type),
                              to_text(got.dims), to_text(dims(wanted))));
  const std::vector<std::string> a = strings_of(got), b = strings_of(wanted);
  for (size_t i = 0; i < b.size(); ++i)
    if (a[i] != b[i])
      throw Failure(fmt::format("output '{}': string {} is '{}' instead of '{}'", wanted.name, i, a[i], b[i]));
}

void compare(const HostTensor& got, const HostTensor& wanted, bool is_random) {
  if (wanted.is_text) return compare_strings(got, wanted);
  if (got.type != wanted.type || got.dims != wanted.dims)
    throw Failure(fmt::format("output '{}' is {} {} instead of {} {}", wanted.name, type_name(got.type),
                              to_text(got.dims), type_name(wanted.type), to_text(wanted.dims)));
  if (is_random) return;
  const int64_t count = volume(wanted.dims);
  int64_t wrong = 0, first = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double a = element(got, i), b = element(wanted, i);
    const bool is_near =
        std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= kAbsolute + kRelative * std::fabs(b);
    if (a == b || (std::isnan(a) && std::isnan(b)) || is_near) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong > 0)
    throw Failure(fmt::format("output '{}' {} {}: {} of {} elements wrong, first at {}: {:.9g} instead of {:.9g}",
                              wanted.name, type_name(wanted.type), to_text(wanted.dims), wrong, count, first,
                              element(got, first), element(wanted, first)));
}

std::vector<HostTensor> run_once(Session& session, const std::vector<HostTensor>& inputs, ConsoleLogger& logger) {
  try {
    Inference inference(session, inputs, logger);
    inference.run();
    return inference.outputs();
  } catch (const Failure& failure) {
    fail_or_refuse(std::string("run: ") + failure.what());
  }
}

void check_reload(Session& session, const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs,
                  ConsoleLogger& logger) {
  const Plan again(session.engine().serialize());
  if (!again) throw Failure("serialize: " + logger.take_errors());
  Session copy = Session::load(again->data(), again->size(), 1, logger);
  const std::vector<HostTensor> others = run_once(copy, inputs, logger);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].data != others.at(i).data || outputs[i].dims != others[i].dims)
      throw Failure(fmt::format("output '{}' differs after reloading", outputs[i].name));
}

class Case {
 public:
  Case(std::filesystem::path folder, const CaseOptions& options)
      : folder_(std::move(folder)),
        options_(options),
        path_((folder_ / "model.onnx").string()),
        model_(read_file(path_)) {
    names_ = names_of(model_);
    is_random_ = draws_numbers(model_);
    if (options.mode == Mode::symbolic) model_ = open_shapes(model_);
  }

  void run() {
    const bool needs_data = std::ranges::any_of(names_.kinds, [](InputKind kind) { return kind != InputKind::tensor; });
    if (options_.mode != Mode::frozen)
      load(model_, needs_data ? parse_inputs(read_numbered(data_set(0), "input"), names_).elements : ElementsByInput());
    int sets = 0;
    for (; std::filesystem::exists(data_set(sets)); ++sets) run_data_set(data_set(sets));
    if (sets == 0) throw Failure("no test_data_set_0");
  }

 private:
  std::filesystem::path data_set(int index) const { return folder_ / fmt::format("test_data_set_{}", index); }

  void load(const std::string& model, const ElementsByInput& elements) {
    const Plan plan = build_case(model, path_, options_, elements, logger_);
    session_.emplace(Session::load(plan->data(), plan->size(), 1, logger_));
  }

  void run_data_set(const std::filesystem::path& data) {
    setRandomSeed(1);  // for runs that are compared with each other
    const std::vector<std::string> files = read_numbered(data, "input");
    const std::vector<HostTensor> inputs =
        options_.mode == Mode::frozen ? freeze(files) : parse_inputs(files, names_).tensors;
    const std::vector<HostTensor> outputs = run_once(*session_, inputs, logger_);
    for (const HostTensor& wanted : parse_outputs(read_numbered(data, "output"), names_, outputs)) {
      const HostTensor* got = find(outputs, wanted.name);
      if (!got) throw Failure(fmt::format("the engine has no output '{}'", wanted.name));
      compare(*got, wanted, is_random_);
    }
    if (options_.mode == Mode::reload) check_reload(*session_, inputs, outputs, logger_);
  }

  // Those of the engine whose inputs that are tensors are constants.
  std::vector<HostTensor> freeze(const std::vector<std::string>& files) {
    CaseInputs inputs = parse_inputs(files, names_);
    load(freeze_inputs(model_, inputs.files), inputs.elements);
    std::erase_if(inputs.tensors, [&](const HostTensor& tensor) { return inputs.files.contains(tensor.name); });
    return std::move(inputs.tensors);
  }

  std::filesystem::path folder_;
  CaseOptions options_;
  std::string path_, model_;
  ModelNames names_;
  bool is_random_ = false;
  ConsoleLogger logger_{nvinfer1::ILogger::Severity::kERROR};
  std::optional<Session> session_;
};

}  // namespace

CaseResult run_case(const std::string& folder, const CaseOptions& options) {
  try {
    Case(folder, options).run();
    return {Verdict::passed, ""};
  } catch (const Unsupported& reason) {
    return {Verdict::unsupported, reason.what()};
  } catch (const std::exception& reason) {
    return {Verdict::failed, reason.what()};
  }
}

}  // namespace lathe::cli
