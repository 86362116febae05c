// SPDX-License-Identifier: Apache-2.0
// Text from a decoder that decoder.py has written, with the public headers only: one engine makes a token in each run
// of its first profile, which kernels are chosen for, and reads the prompt in the second. The caches stay where they
// are, for an output that shares an input's memory (getAliasedInputTensor()) is given its address; the token goes from
// the output to the input on the device, and the whole of a step is one CUDA graph.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../cpp/logger.h"
#include "NvOnnxParser.h"
#include "device.h"
#include "lathe.h"

namespace {

using namespace nvinfer1;

struct Options {
  const char* model = nullptr;
  std::string prompt = "\n", target, plan;
  int tokens = 200, seed = 1, batch = 1;
  float temperature = 0.8f;
  double budget = -1;  // of building, in seconds; negative: the library's own
  bool is_half = false, is_quiet = false;
};

constexpr const char* kUsage =
    "Continues a text with a decoder that examples/llm/decoder.py has written.\n"
    "Usage: %s MODEL.onnx [--prompt=TEXT] [--tokens=200] [--temperature=0.8] [--seed=1]\n"
    "       [--batch=1]     so many texts at once, of which the first is shown\n"
    "       [--target=cpu]  or cuda; unless given, a GPU where there is one\n"
    "       [--fp16]        products may be computed in 16 bits\n"
    "       [--buildBudget=S]  seconds of measuring when the engine is built; 0 trusts the cost model\n"
    "       [--plan=FILE]   keeps the engine there, and uses the one that is there\n"
    "       [--quiet]       shows no text, but how fast it comes\n";

// NaN where it is none.
double number_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return text.empty() || *end != 0 ? std::nan("") : number;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "--prompt")
      options.prompt = value;
    else if (name == "--tokens")
      options.tokens = std::atoi(value.c_str());
    else if (name == "--temperature")
      options.temperature = static_cast<float>(std::atof(value.c_str()));
    else if (name == "--seed")
      options.seed = std::atoi(value.c_str());
    else if (name == "--batch")
      options.batch = std::atoi(value.c_str());
    else if (name == "--target")
      options.target = value;
    else if (name == "--buildBudget")
      options.budget = number_of(value);
    else if (name == "--plan")
      options.plan = value;
    else if (word == "--fp16")
      options.is_half = true;
    else if (word == "--quiet")
      options.is_quiet = true;
    else if (word[0] != '-' && !options.model)
      options.model = argv[i];
    else
      return false;
  }
  return options.model && !options.prompt.empty() && options.tokens > 0 && options.batch > 0 &&
         options.temperature > 0 && !std::isnan(options.budget);
}

// The input's dims with so many texts, of `length` tokens each.
Dims dims_of(const char* name, Dims dims, int64_t batch, int64_t length) {
  if (dims.d[0] < 0) dims.d[0] = batch;
  if (std::strcmp(name, "tokens") == 0) dims.d[1] = length;
  return dims;
}

bool add_profile(IBuilder& builder, const INetworkDefinition& network, IBuilderConfig& config, int64_t batch,
                 int64_t longest) {
  IOptimizationProfile* profile = builder.createOptimizationProfile();
  for (int32_t i = 0; i < network.getNbInputs(); ++i) {
    const ITensor& input = *network.getInput(i);
    const char* name = input.getName();
    const Dims most = dims_of(name, input.getDimensions(), batch, longest);
    if (!profile->setDimensions(name, OptProfileSelector::kMIN, dims_of(name, input.getDimensions(), batch, 1)) ||
        !profile->setDimensions(name, OptProfileSelector::kOPT, most) ||
        !profile->setDimensions(name, OptProfileSelector::kMAX, most))
      return false;
  }
  return config.addOptimizationProfile(profile) >= 0;
}

std::vector<char> build(const Options& options, ILogger& logger) {
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
  if (!parser->parseFromFile(options.model, static_cast<int>(ILogger::Severity::kWARNING))) return {};
  std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  if (!options.target.empty() && !lathe::setTarget(*config, options.target.c_str())) return {};
  if (options.is_half) lathe::setPrecision(*config, DataType::kHALF);
  if (options.budget >= 0) lathe::setBuildBudget(*config, options.budget);
  const auto prompt = static_cast<int64_t>(options.prompt.size());
  if (!add_profile(*builder, *network, *config, options.batch, 1) ||
      !add_profile(*builder, *network, *config, options.batch, prompt))
    return {};
  std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
  if (!plan) return {};
  const char* bytes = static_cast<const char*>(plan->data());
  return {bytes, bytes + plan->size()};
}

bool runs_on_gpu(const std::vector<char>& plan) {
  std::unique_ptr<IHostMemory> json(lathe::planJson(plan.data(), plan.size()));
  return json && std::string(static_cast<const char*>(json->data()), json->size()).find("\"target\": \"cuda") !=
                     std::string::npos;
}

size_t bytes_of(const Dims& dims, DataType type) {
  size_t bytes = type == DataType::kINT64 ? 8 : type == DataType::kHALF ? 2 : 4;
  for (int32_t d = 0; d < dims.nbDims; ++d) bytes *= static_cast<size_t>(dims.d[d]);
  return bytes;
}

class Decoder {
 public:
  Decoder(ICudaEngine& engine, Device& device, int64_t batch) : engine_(engine), device_(device), batch_(batch) {}

  // Memory for all inputs and outputs; `longest` = tokens of the longest prompt.
  bool prepare(int64_t longest) {
    for (int32_t profile : {kStep, kPrompt}) {
      contexts_[profile].reset(engine_.createExecutionContext());
      if (!contexts_[profile] || !contexts_[profile]->setOptimizationProfileAsync(profile, device_.stream()))
        return false;
    }
    for (int32_t i = 0; i < engine_.getNbIOTensors(); ++i) {
      const char* name = engine_.getIOTensorName(i);
      const char* aliased = engine_.getAliasedInputTensor(name);
      const Dims dims = dims_of(name, engine_.getTensorShape(name), batch_, longest);
      void*& memory = memory_[name];
      memory = aliased ? memory_.at(aliased) : device_.allocate(bytes_of(dims, engine_.getTensorDataType(name)));
      if (!memory) return false;
      for (const auto& context : contexts_) context->setTensorAddress(name, memory);
    }
    for (const auto& [read, written] : kNext) {
      const size_t bytes = static_cast<size_t>(batch_) * sizeof(int64_t);
      next_[0][written] = memory_.at(written), next_[1][written] = device_.allocate(bytes);
      if (!next_[1][written]) return false;
    }
    return set_length(kPrompt, longest) && set_length(kStep, 1);
  }

  template <class T>
  bool put(const char* name, const std::vector<T>& values) {
    return device_.upload(memory_.at(name), values.data(), values.size() * sizeof(T));
  }

  int64_t context_length() const { return engine_.getTensorShape("noise").d[0]; }

  bool read_prompt() { return contexts_[kPrompt]->enqueueV3(device_.stream()); }

  // What the step before has written is what this one reads. Two memories take turns, so that nothing is copied.
  bool step() {
    const size_t turn = steps_++ % 2;
    return device_.repeat(turn, [&] {
      for (const auto& [read, written] : kNext)
        if (!contexts_[kStep]->setTensorAddress(read, next_[turn].at(written)) ||
            !contexts_[kStep]->setTensorAddress(written, next_[1 - turn].at(written)))
          return false;
      return contexts_[kStep]->enqueueV3(device_.stream());
    });
  }

  // Of the first text; waits for it. Negative when the run has failed.
  int64_t token() {
    int64_t token = -1;
    return device_.download(&token, next_[steps_ % 2].at("next"), sizeof(token)) ? token : -1;
  }

 private:
  static constexpr int32_t kStep = 0, kPrompt = 1;  // profiles
  // Inputs, and the outputs that are these in the next step.
  static constexpr std::pair<const char*, const char*> kNext[] = {{"tokens", "next"}, {"place", "place_after"}};

  bool set_length(int32_t profile, int64_t length) {
    for (int32_t i = 0; i < engine_.getNbIOTensors(); ++i) {
      const char* name = engine_.getIOTensorName(i);
      if (engine_.getTensorIOMode(name) == TensorIOMode::kINPUT &&
          !contexts_[profile]->setInputShape(name, dims_of(name, engine_.getTensorShape(name), batch_, length)))
        return false;
    }
    return true;
  }

  ICudaEngine& engine_;
  Device& device_;
  const int64_t batch_;
  std::unique_ptr<IExecutionContext> contexts_[2];
  std::map<std::string, void*> memory_;
  std::map<std::string, void*> next_[2];  // of kNext's outputs; the prompt writes the first
  size_t steps_ = 0;
};

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void show(int64_t token, const Options& options) {
  if (options.is_quiet) return;
  std::putchar(token < 256 ? static_cast<int>(token) : '?');
  std::fflush(stdout);
}

bool tell(Decoder& decoder, const Options& options) {
  const auto length = static_cast<int64_t>(options.prompt.size());
  if (length + options.tokens > decoder.context_length() + 1) {
    std::fprintf(stderr, "%lld tokens of prompt and %d more exceed the context of %lld: ask for fewer with --tokens\n",
                 static_cast<long long>(length), options.tokens, static_cast<long long>(decoder.context_length()));
    return false;
  }
  std::vector<int64_t> tokens;
  for (int i = 0; i < options.batch; ++i)
    for (const char letter : options.prompt) tokens.push_back(static_cast<unsigned char>(letter));
  std::mt19937 random(static_cast<uint32_t>(options.seed));
  std::vector<float> noise(static_cast<size_t>(decoder.context_length()));
  for (float& number : noise) number = static_cast<float>(random() >> 8) / (1 << 24);
  if (!decoder.prepare(length) || !decoder.put("tokens", tokens) || !decoder.put("noise", noise) ||
      !decoder.put("temperature", std::vector<float>{options.temperature}))
    return false;

  if (!options.is_quiet) std::printf("%s", options.prompt.c_str());
  Clock::time_point start = Clock::now();
  if (!decoder.read_prompt()) return false;
  show(decoder.token(), options);
  const double prompt = seconds_since(start);
  int timed = 0;
  for (int i = 1; i < options.tokens; ++i) {
    if (i == 3) start = Clock::now();  // the steps before load and capture
    timed += i >= 3;
    if (!decoder.step()) return false;
    // A token that nobody sees is not waited for: the next step takes it on the device.
    const bool is_wanted = !options.is_quiet || i < 3 || i + 1 == options.tokens;
    const int64_t token = is_wanted ? decoder.token() : 0;
    if (token < 0) return false;
    show(token, options);
  }
  std::printf("\n");
  if (timed > 0)
    std::fprintf(stderr, "prompt of %lld tokens: %.1f ms; then %.1f tokens/s\n", static_cast<long long>(length),
                 prompt * 1e3, options.batch * timed / seconds_since(start));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, kUsage, argv[0]);
    return 2;
  }
  Logger logger;
  std::ifstream file(options.plan, std::ios::binary);
  std::vector<char> plan{std::istreambuf_iterator<char>(file), {}};
  if (plan.empty()) {
    plan = build(options, logger);
    if (!options.plan.empty())
      std::ofstream(options.plan, std::ios::binary).write(plan.data(), static_cast<std::streamsize>(plan.size()));
  }
  if (plan.empty()) return 1;
  std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  const std::unique_ptr<Device> device = runs_on_gpu(plan) ? make_gpu() : make_host();
  if (!engine || !device) return 1;
  Decoder decoder(*engine, *device, options.batch);
  return tell(decoder, options) ? 0 : 1;
}
