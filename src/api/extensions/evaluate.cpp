// SPDX-License-Identifier: Apache-2.0
// Plain evaluation of ONNX models; see lathe.h.
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "api/convert.h"
#include "api/own_settings.h"
#include "ir/interpret.h"
#include "lathe.h"
#include "onnx/import.h"
#include "onnx/reader.h"

namespace lathe {
namespace {

using api::silent;

class TensorList final : public ITensorList {
 public:
  void add(std::string name, Tensor tensor) {
    names_.push_back(std::move(name));
    tensors_.push_back(std::move(tensor));
    const Tensor& kept = tensors_.back();
    views_.push_back({names_.back().c_str(), api::to_nv(kept.dtype()), api::to_nv(kept.dims()), kept.data()});
  }
  int32_t size() const noexcept override { return static_cast<int32_t>(views_.size()); }
  const NamedTensor* get(int32_t index) const noexcept override {
    return api::guarded(
        silent(), "ITensorList::get", static_cast<const NamedTensor*>(nullptr), [&]() -> Result<const NamedTensor*> {
          if (index < 0 || index >= size())
            return fail(ErrorCode::invalid_argument, "there is no tensor {}: the list has {}", index, size());
          return &views_[static_cast<size_t>(index)];
        });
  }

 private:
  std::deque<std::string> names_;
  std::vector<Tensor> tensors_;
  std::vector<NamedTensor> views_;
};

// The application's tensors in the order of the graph's inputs. They are viewed, not copied.
Result<std::vector<Tensor>> arrange(const ir::Graph& graph, const NamedTensor* inputs, int32_t count) {
  std::vector<Tensor> tensors;
  for (const ir::Value* value : graph.inputs()) {
    const NamedTensor* found = nullptr;
    for (int32_t i = 0; i < count; ++i)
      if (inputs[i].name && value->name() == inputs[i].name) found = &inputs[i];
    if (!found) return fail(ErrorCode::binding_missing, "input '{}' is not given", value->name());
    LATHE_ASSIGN(const DType dtype, api::to_dtype(found->type));
    LATHE_ASSIGN(Dims dims, api::to_dims(found->dims));
    const std::optional<int64_t> volume = checked_volume(dims);
    if (!volume || (*volume > 0 && !found->data))
      return fail(ErrorCode::binding_invalid, "input '{}' has no data, or a negative dim", value->name());
    if (*volume == 0) {
      LATHE_ASSIGN(Tensor empty, Tensor::allocate(dtype, std::move(dims)));
      tensors.push_back(std::move(empty));
    } else {
      tensors.push_back(Tensor::view(dtype, std::move(dims), found->data, nullptr));
    }
  }
  return tensors;
}

// The dims that all of the tensors have, -1 where they differ; nullopt where they have not as many.
std::optional<Dims> common_dims(std::span<const Dims> tensors) {
  Dims common = tensors[0];
  for (const Dims& dims : tensors) {
    if (dims.size() != common.size()) return std::nullopt;
    for (size_t d = 0; d < common.size(); ++d)
      if (dims[d] != common[d]) common[d] = -1;
  }
  return common;
}

// Of the model's inputs that are sequences, as many tensors as are given; of those that are optionals, whether one is.
Result<std::map<std::string, onnx::InputElements>> elements_of(const onnx::Model& model, const NamedTensor* inputs,
                                                               int32_t count) {
  std::map<std::string, const nvinfer1::Dims*> given;
  for (int32_t i = 0; i < count; ++i)
    if (inputs[i].name) given.emplace(inputs[i].name, &inputs[i].dims);
  std::map<std::string, onnx::InputElements> elements;
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    const std::string name(input.name);
    const bool is_optional = input.type.kind == onnx::TypeKind::optional && !input.type.inner.empty();
    const onnx::TypeProto& type = is_optional ? input.type.inner[0] : input.type;
    std::vector<Dims> tensors;
    if (type.kind == onnx::TypeKind::sequence)
      for (auto it = given.end(); (it = given.find(fmt::format("{}_{}", name, tensors.size()))) != given.end();) {
        LATHE_ASSIGN(tensors.emplace_back(), api::to_dims(*it->second));
      }
    else if (!is_optional || given.contains(name))
      continue;
    onnx::InputElements& told = elements[name];
    told.count = is_optional && tensors.empty() ? onnx::InputElements::kNone : static_cast<int64_t>(tensors.size());
    if (!tensors.empty()) told.dims = common_dims(tensors);
  }
  return elements;
}

ITensorList* evaluate_in(ir::Floats floats, const char* where, const char* onnxPath, const NamedTensor* inputs,
                         int32_t nbInputs, bool allValues) noexcept {
  return api::guarded(silent(), where, static_cast<ITensorList*>(nullptr), [&]() -> Result<ITensorList*> {
    LATHE_ASSIGN(const std::string path, api::to_string(onnxPath, "model path"));
    if (nbInputs < 0 || (nbInputs > 0 && !inputs)) return fail(ErrorCode::invalid_argument, "inputs are null");
    LATHE_ASSIGN(const onnx::Model model, onnx::read_model_file(path));
    ir::Graph graph;
    onnx::ImportOptions options;
    LATHE_ASSIGN(options.input_elements, elements_of(model, inputs, nbInputs));
    LATHE_TRY(onnx::import_model(model, graph, options));
    LATHE_ASSIGN(const std::vector<Tensor> tensors, arrange(graph, inputs, nbInputs));
    auto list = std::make_unique<TensorList>();
    ir::Observer observer;
    std::vector<std::pair<std::string, Tensor>> inner;
    if (allValues)
      observer = [&](const ir::Value& value, const Tensor& tensor) -> Result<> {
        if (value.producer() && !value.constant() && !value.is_graph_output()) inner.emplace_back(value.name(), tensor);
        return {};
      };
    LATHE_ASSIGN(std::vector<Tensor> outputs, ir::interpret(graph, tensors, observer, floats));
    for (size_t i = 0; i < outputs.size(); ++i) list->add(graph.outputs()[i].name, std::move(outputs[i]));
    for (auto& [name, tensor] : inner) list->add(std::move(name), std::move(tensor));
    return list.release();
  });
}

}  // namespace

ITensorList* evaluate(const char* onnxPath, const NamedTensor* inputs, int32_t nbInputs, bool allValues) noexcept {
  return evaluate_in(ir::Floats::as_declared, "evaluate", onnxPath, inputs, nbInputs, allValues);
}

ITensorList* evaluateInDoubles(const char* onnxPath, const NamedTensor* inputs, int32_t nbInputs,
                               bool allValues) noexcept {
  return evaluate_in(ir::Floats::doubles, "evaluateInDoubles", onnxPath, inputs, nbInputs, allValues);
}

}  // namespace lathe
