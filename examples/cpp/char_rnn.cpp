// SPDX-License-Identifier: Apache-2.0
// A recurrent network written with the network API: an LSTM in a loop, which says how a sentence goes on.
//   char_rnn weights.txt "the builder" 60
// The loop runs once for each letter of its input. The first run reads the whole beginning; each further run reads one
// letter, the one that was likeliest, and begins with the state that the run before has left.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "logger.h"

namespace {

using namespace nvinfer1;

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> values;
};

// What train.py writes: a line `name rows columns` before the numbers of each matrix.
std::map<std::string, Matrix> read_weights(const char* path) {
  std::map<std::string, Matrix> matrices;
  std::ifstream file(path);
  std::string name;
  for (Matrix matrix; file >> name >> matrix.rows >> matrix.columns; matrices[name] = matrix) {
    matrix.values.resize(static_cast<size_t>(matrix.rows * matrix.columns));
    for (float& value : matrix.values) file >> value;
    if (!file) return {};
  }
  return matrices;
}

// The network's layers, with the few shapes of arguments that an LSTM needs.
class Lstm {
 public:
  Lstm(INetworkDefinition& network, const std::map<std::string, Matrix>& weights)
      : network_(network), weights_(weights), hidden_(weights.at("state").rows) {}

  void define() {
    ITensor* text = network_.addInput("text", DataType::kINT32, Dims{1, {-1}});
    ITensor* first_h = network_.addInput("h", DataType::kFLOAT, Dims2(1, hidden_));
    ITensor* first_c = network_.addInput("c", DataType::kFLOAT, Dims2(1, hidden_));
    // What each letter adds to the gates is a row of a table: gathered for all letters at once, outside of the loop.
    ITensor* letters = network_.addGather(*constant("letter"), *text, 0)->getOutput(0);

    ILoop* loop = network_.addLoop();
    loop->addTripLimit(*length(*text), TripLimit::kCOUNT);
    ITensor* letter = loop->addIterator(*letters)->getOutput(0);
    IRecurrenceLayer* h = loop->addRecurrence(*first_h);
    IRecurrenceLayer* c = loop->addRecurrence(*first_c);
    ITensor* row = reshape(*letter, Dims2(1, 4 * hidden_));
    ITensor* gates = sum(*sum(*row, *constant("gates")), *product(*h->getOutput(0), *constant("state")));
    ITensor* in = activation(*gate(*gates, 0), ActivationType::kSIGMOID);
    ITensor* forget = activation(*gate(*gates, 1), ActivationType::kSIGMOID);
    ITensor* cell = activation(*gate(*gates, 2), ActivationType::kTANH);
    ITensor* out = activation(*gate(*gates, 3), ActivationType::kSIGMOID);
    ITensor* next_c = sum(*times(*forget, *c->getOutput(0)), *times(*in, *cell));
    ITensor* next_h = times(*out, *activation(*next_c, ActivationType::kTANH));
    h->setInput(1, *next_h);
    c->setInput(1, *next_c);

    ITensor* last_h = loop->addLoopOutput(*h->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
    ITensor* last_c = loop->addLoopOutput(*c->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
    mark("logits", *sum(*product(*last_h, *constant("next")), *constant("bias")));
    mark("last_h", *last_h);
    mark("last_c", *last_c);
  }

 private:
  ITensor* constant(const char* name) {
    const Matrix& matrix = weights_.at(name);
    const Weights values{DataType::kFLOAT, matrix.values.data(), static_cast<int64_t>(matrix.values.size())};
    return network_.addConstant(Dims2(matrix.rows, matrix.columns), values)->getOutput(0);
  }
  // A scalar: the only dimension of `x`.
  ITensor* length(ITensor& x) {
    IShuffleLayer* scalar = network_.addShuffle(*network_.addShape(x)->getOutput(0));
    scalar->setReshapeDimensions(Dims{0, {}});
    return scalar->getOutput(0);
  }
  ITensor* reshape(ITensor& x, const Dims& dims) {
    IShuffleLayer* layer = network_.addShuffle(x);
    layer->setReshapeDimensions(dims);
    return layer->getOutput(0);
  }
  ITensor* gate(ITensor& gates, int64_t index) {
    return network_.addSlice(gates, Dims2(0, index * hidden_), Dims2(1, hidden_), Dims2(1, 1))->getOutput(0);
  }
  ITensor* product(ITensor& a, ITensor& b) {
    return network_.addMatrixMultiply(a, MatrixOperation::kNONE, b, MatrixOperation::kNONE)->getOutput(0);
  }
  ITensor* sum(ITensor& a, ITensor& b) {
    return network_.addElementWise(a, b, ElementWiseOperation::kSUM)->getOutput(0);
  }
  ITensor* times(ITensor& a, ITensor& b) {
    return network_.addElementWise(a, b, ElementWiseOperation::kPROD)->getOutput(0);
  }
  ITensor* activation(ITensor& x, ActivationType type) { return network_.addActivation(x, type)->getOutput(0); }
  void mark(const char* name, ITensor& x) {
    x.setName(name);
    network_.markOutput(x);
  }

  INetworkDefinition& network_;
  const std::map<std::string, Matrix>& weights_;
  int64_t hidden_;
};

std::unique_ptr<IHostMemory> build(const std::map<std::string, Matrix>& weights, int64_t longest, ILogger& logger) {
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
  if (!builder) return nullptr;
  std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  Lstm(*network, weights).define();
  std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  IOptimizationProfile* profile = builder->createOptimizationProfile();
  profile->setDimensions("text", OptProfileSelector::kMIN, Dims{1, {1}});
  profile->setDimensions("text", OptProfileSelector::kOPT, Dims{1, {1}});
  profile->setDimensions("text", OptProfileSelector::kMAX, Dims{1, {longest}});
  config->addOptimizationProfile(profile);
  return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

// Runs the engine on one piece of text after another, and keeps the state between them.
class Speaker {
 public:
  Speaker(ICudaEngine& engine, size_t hidden, size_t letters)
      : context_(engine.createExecutionContext()), h_(hidden), c_(hidden), logits_(letters) {}

  // The index of the letter that follows; -1 when the engine has not run.
  int next(const std::vector<int32_t>& text) {
    context_->setInputShape("text", Dims{1, {static_cast<int64_t>(text.size())}});
    std::vector<float> h(h_.size()), c(c_.size());
    context_->setInputTensorAddress("text", text.data());
    context_->setInputTensorAddress("h", h_.data());
    context_->setInputTensorAddress("c", c_.data());
    context_->setTensorAddress("last_h", h.data());
    context_->setTensorAddress("last_c", c.data());
    context_->setTensorAddress("logits", logits_.data());
    if (!context_->enqueueV3(nullptr)) return -1;
    h_ = h, c_ = c;
    return static_cast<int>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
  }

 private:
  std::unique_ptr<IExecutionContext> context_;
  std::vector<float> h_, c_, logits_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s WEIGHTS.txt BEGINNING COUNT\n", argv[0]);
    return 2;
  }
  const std::map<std::string, Matrix> weights = read_weights(argv[1]);
  if (weights.count("letters") == 0) {
    std::fprintf(stderr, "%s: not the weights that train.py writes\n", argv[1]);
    return 1;
  }
  const std::vector<float>& letters = weights.at("letters").values;
  std::vector<int32_t> text;
  for (const char* letter = argv[2]; *letter; ++letter) {
    const auto found = std::find(letters.begin(), letters.end(), static_cast<float>(*letter));
    if (found == letters.end()) {
      std::fprintf(stderr, "the network has not learnt the letter '%c'\n", *letter);
      return 1;
    }
    text.push_back(static_cast<int32_t>(found - letters.begin()));
  }
  Logger logger;
  const std::unique_ptr<IHostMemory> plan =
      build(weights, std::max<int64_t>(static_cast<int64_t>(text.size()), 1), logger);
  if (!plan) return 1;
  std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  if (!engine || text.empty()) return 1;

  Speaker speaker(*engine, static_cast<size_t>(weights.at("state").rows), letters.size());
  std::printf("%s", argv[2]);
  for (int count = std::atoi(argv[3]); count > 0; --count) {
    const int letter = speaker.next(text);
    if (letter < 0) return 1;
    std::putchar(static_cast<int>(letters[static_cast<size_t>(letter)]));
    text = {letter};
  }
  std::putchar('\n');
  return 0;
}
