// SPDX-License-Identifier: Apache-2.0
// A network around one layer, and what a row of the table of setters says.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/network/network.h"
#include "ir/interpret.h"
#include "lathe.h"
#include "ops/rules.h"
#include "passes/pass.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nvinfer1::layers {

struct Reports : ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) errors.emplace_back(message);
  }
  std::string text() const {
    std::string all;
    for (const std::string& error : errors) all += error + "\n";
    return all;
  }
  std::vector<std::string> errors;
};

inline Dims dims(std::initializer_list<int64_t> sizes) {
  Dims made{static_cast<int32_t>(sizes.size()), {}};
  std::copy(sizes.begin(), sizes.end(), made.d);
  return made;
}
inline bool same(const Dims& a, const Dims& b) {
  return a.nbDims == b.nbDims && std::equal(a.d, a.d + std::max(a.nbDims, 0), b.d);
}
inline const Dims kRank9{9, {1, 1, 1, 1, 1, 1, 1, 1}};

template <class Enum>
Enum no_such() {
  return static_cast<Enum>(77);
}

struct Net {
  ITensor& input(const Dims& dims, DataType type = DataType::kFLOAT) {
    return *network->addInput(("x" + std::to_string(network->getNbInputs())).c_str(), type, dims);
  }
  // Weights that live as long as the network.
  Weights weights(std::initializer_list<float> values) {
    const auto& kept = floats.emplace_back(values);
    return {DataType::kFLOAT, kept.data(), static_cast<int64_t>(kept.size())};
  }
  ITensor& constant(const Dims& dims, std::initializer_list<float> values) {
    return *network->addConstant(dims, weights(values))->getOutput(0);
  }
  ITensor& numbers(std::initializer_list<int64_t> values) { return shaped(dims({(int64_t)values.size()}), values); }
  ITensor& shaped(const Dims& dims, std::initializer_list<int64_t> values) {
    const auto& kept = integers.emplace_back(values);
    return *network->addConstant(dims, {DataType::kINT64, kept.data(), static_cast<int64_t>(kept.size())})
                ->getOutput(0);
  }

  // What the outputs of `layer` are when the inputs count from -2: type, dims, elements. By the plain evaluation.
  std::string result(const ILayer& layer) {
    for (int32_t i = 0; i < layer.getNbOutputs(); ++i)
      if (!layer.getOutput(i)->isNetworkOutput()) network->markOutput(*layer.getOutput(i));
    auto& definition = static_cast<lathe::api::NetworkDefinition&>(*network);
    if (const auto resolved = definition.resolve_all(); !resolved) return resolved.error().to_string();
    lathe::Result<lathe::ir::Graph> graph = definition.whole_graph();
    lathe::PassContext context;
    if (!graph) return graph.error().to_string();
    if (const auto formed = lathe::run_pass("form_loops", *graph, context); !formed) return formed.error().to_string();
    std::vector<lathe::Tensor> tensors;
    for (const lathe::ir::Value* value : graph->inputs()) {
      tensors.push_back(*lathe::Tensor::allocate(value->dtype(), *lathe::as_constant(value->shape())));
      std::vector<double> counted(static_cast<size_t>(tensors.back().volume()));
      for (size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<double>(i) - 2;
      lathe::from_doubles(counted, tensors.back());
    }
    const auto outputs = lathe::ir::interpret(*graph, tensors);
    if (!outputs) return outputs.error().to_string();
    std::string text;
    for (const lathe::Tensor& output : *outputs) {
      text += fmt::format("{}{}{}:", text.empty() ? "" : "; ", lathe::name_of(output.dtype()),
                          lathe::to_string(lathe::to_shape(output.dims())));
      for (int64_t i = 0; i < output.volume(); ++i) text += fmt::format(" {:.4g}", output.at_double(i));
    }
    return text;
  }
  bool builds() {
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    lathe::setBuildBudget(*config, 0);
    return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config)) != nullptr;
  }

  Reports log;
  std::deque<std::vector<float>> floats;
  std::deque<std::vector<int64_t>> integers;
  std::unique_ptr<IBuilder> builder{createInferBuilder(log)};
  std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
};

// A call of layer l in network n; one of a setter, and whether a getter then shows what was set.
#define CALL(call) [](Net& n, auto& l) { l.call; }
#define DOES(call, shown) [](Net& n, auto& l) { return l.call, shown; }

// What a setter of a layer does.
struct Row {
  std::function<ILayer*(Net&)> make;
  std::function<bool(Net&, ILayer&)> set;  // to another value than before; whether the getter shows it
  const char* result;                      // what the layer gives then; null where nothing of it is computed
  // Arguments that make no sense: refused at once with one report, or by the build, which names the layer.
  std::vector<std::function<void(Net&, ILayer&)>> nonsense;
};
using Table = std::map<std::string, Row>;

template <class L>
struct SetterOf {
  const char* name;
  bool (*set)(Net&, L&);
  const char* result;
  std::vector<void (*)(Net&, L&)> nonsense;
};

template <class L>
void add(Table& table, const std::string& kind, std::function<L*(Net&)> make, std::vector<SetterOf<L>> setters) {
  for (const SetterOf<L>& setter : setters) {
    Row row{
        make, [set = setter.set](Net& n, ILayer& layer) { return set(n, static_cast<L&>(layer)); }, setter.result, {}};
    for (const auto& call : setter.nonsense)
      row.nonsense.push_back([call](Net& n, ILayer& layer) { call(n, static_cast<L&>(layer)); });
    EXPECT_TRUE(table.emplace(kind + "::" + setter.name, std::move(row)).second) << setter.name << " has two rows";
  }
}

}  // namespace nvinfer1::layers
