// SPDX-License-Identifier: Apache-2.0
#include "conformance_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "NvOnnxParser.h"
#include "failure.h"
#include "model_edit.h"
#include "session.h"

namespace lathe::cli {
namespace {

// ONNX's own.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The library's codes for what it cannot do, as opposed to what went wrong.
[[noreturn]] void fail_or_refuse(const std::string& message) {
  for (const char* name : {"_unsupported:", "shape_unknown:", "no_tactic:"})
    if (message.find(name) != std::string::npos) throw Unsupported(message);
  throw Failure(message);
}

Plan build_case(const std::string& model, const std::string& path, const CaseOptions& options, ConsoleLogger& logger) {
  const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
  if (!builder) throw Failure("no builder: " + logger.take_errors());
  const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
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

// The files <kind>_<number>.pb of a data set, by number. Numbers may be left out.
std::vector<std::string> read_numbered(const std::filesystem::path& folder, const std::string& kind) {
  std::map<int, std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kind + "_") && name.ends_with(".pb"))
      paths[std::atoi(name.c_str() + kind.size() + 1)] = entry.path().string();
  }
  std::vector<std::string> files;
  for (const auto& numbered : paths) files.push_back(read_file(numbered.second));
  return files;
}

// Each with the name it carries, if that is one of `names`, or the one at its place.
std::vector<HostTensor> parse_all(const std::vector<std::string>& files, const std::vector<std::string>& names) {
  std::vector<HostTensor> tensors;
  for (size_t i = 0; i < files.size(); ++i) {
    tensors.push_back(parse_tensor_proto(files[i]));
    std::string& name = tensors.back().name;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (i >= names.size()) throw Failure(fmt::format("the model has {} of what file {} is for", names.size(), i));
    name = names[i];
  }
  return tensors;
}

// Whether operators of the model draw random numbers: those that the case lists are of another generator.
bool draws_numbers(const std::string& model) {
  for (const char* name : {"Bernoulli", "Multinomial", "RandomNormal", "RandomUniform"})
    if (model.find(name) != std::string::npos) return true;
  return false;
}

void compare(const HostTensor& got, const HostTensor& wanted, bool is_random) {
  if (got.type != wanted.type || got.dims != wanted.dims)
    throw Failure(fmt::format("output '{}' is {} {} instead of {} {}", wanted.name, type_name(got.type),
                              to_text(got.dims), type_name(wanted.type), to_text(wanted.dims)));
  if (is_random) return;
  const int64_t count = volume(wanted.dims);
  int64_t wrong = 0, first = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double a = element(got, i), b = element(wanted, i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= kAbsolute + kRelative * std::fabs(b))
      continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong > 0)
    throw Failure(fmt::format("output '{}' {} {}: {} of {} elements wrong, first at {}: {:.9g} instead of {:.9g}",
                              wanted.name, type_name(wanted.type), to_text(wanted.dims), wrong, count, first,
                              element(got, first), element(wanted, first)));
}

const HostTensor* find(const std::vector<HostTensor>& tensors, const std::string& name) {
  for (const HostTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

// What the files of outputs hold. Of a sequence `y`, which the engine has as outputs `y_0`, `y_1` and so on, each
// tensor.
std::vector<HostTensor> parse_outputs(const std::vector<std::string>& files, const std::vector<std::string>& names,
                                      const std::vector<HostTensor>& outputs) {
  std::vector<HostTensor> wanted;
  for (size_t i = 0; i < files.size(); ++i) {
    if (i >= names.size() || find(outputs, names[i]) || !find(outputs, names[i] + "_0")) continue;
    std::vector<HostTensor> elements = parse_sequence_proto(files[i]);
    if (find(outputs, fmt::format("{}_{}", names[i], elements.size())))
      throw Failure(fmt::format("output '{}' has more than {} tensors", names[i], elements.size()));
    for (size_t k = 0; k < elements.size(); ++k) {
      elements[k].name = fmt::format("{}_{}", names[i], k);
      wanted.push_back(std::move(elements[k]));
    }
  }
  if (!wanted.empty() && files.size() > 1) throw Failure("a sequence beside other outputs is not supported here");
  return wanted.empty() ? parse_all(files, names) : wanted;
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
    if (options_.mode != Mode::frozen) load(model_);
    int sets = 0;
    for (; std::filesystem::exists(data_set(sets)); ++sets) run_data_set(data_set(sets));
    if (sets == 0) throw Failure("no test_data_set_0");
  }

 private:
  std::filesystem::path data_set(int index) const { return folder_ / fmt::format("test_data_set_{}", index); }

  void load(const std::string& model) {
    const Plan plan = build_case(model, path_, options_, logger_);
    session_.emplace(Session::load(plan->data(), plan->size(), 1, logger_));
  }

  void run_data_set(const std::filesystem::path& data) {
    setRandomSeed(1);  // for runs that are compared with each other
    const std::vector<std::string> files = read_numbered(data, "input");
    std::vector<HostTensor> inputs;
    if (options_.mode == Mode::frozen)
      freeze(files);
    else
      inputs = parse_all(files, names_.inputs);
    const std::vector<HostTensor> outputs = run_once(*session_, inputs, logger_);
    for (const HostTensor& wanted : parse_outputs(read_numbered(data, "output"), names_.outputs, outputs)) {
      const HostTensor* got = find(outputs, wanted.name);
      if (!got) throw Failure(fmt::format("the engine has no output '{}'", wanted.name));
      compare(*got, wanted, is_random_);
    }
    if (options_.mode == Mode::reload) check_reload(*session_, inputs, outputs, logger_);
  }

  // Strings and sequences cannot be parsed here; the parser tells that the model needs them.
  void freeze(const std::vector<std::string>& files) {
    std::map<std::string, std::string> tensors;
    try {
      const std::vector<HostTensor> parsed = parse_all(files, names_.inputs);
      for (size_t i = 0; i < files.size(); ++i) tensors[parsed[i].name] = files[i];
    } catch (const Failure&) {
      load(model_);
      throw;
    }
    load(freeze_inputs(model_, tensors));
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
