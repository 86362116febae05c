// SPDX-License-Identifier: Apache-2.0
#include "onnx/node_context.h"

#include <algorithm>
#include <cstring>

#include "ops/rules.h"

namespace lathe::onnx {

Result<Tensor> to_tensor(const TensorData& data) {
  const std::optional<DType> dtype = to_dtype(data.type);
  if (!dtype)
    return fail(ErrorCode::dtype_unsupported, "tensor '{}' has element type {}, which Lathe cannot compute with",
                data.name, name_of(data.type));
  const auto address = reinterpret_cast<uintptr_t>(data.bytes.data());
  const bool clean = *dtype != DType::boolean ||
                     std::all_of(data.bytes.begin(), data.bytes.end(), [](std::byte b) { return b <= std::byte{1}; });
  if (!data.bytes.empty() && address % size_of(*dtype) == 0 && clean)
    return Tensor::view(*dtype, data.dims, data.bytes.data(), data.owner).with_clear_end();
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(*dtype, data.dims));
  if (!data.bytes.empty()) std::memcpy(tensor.mutable_data(), data.bytes.data(), data.bytes.size());
  if (!clean)
    for (size_t i = 0; i < data.bytes.size(); ++i) tensor.mutable_as<uint8_t>()[i] = data.bytes[i] != std::byte{0};
  return tensor;
}

// Inputs and outputs

ir::Value* NodeContext::failed_value() {
  static ir::Value placeholder;
  return &placeholder;
}

ir::Value* NodeContext::require(size_t i) {
  if (has(i)) return inputs_[i];
  invalid("input {} is required, but the node has {}", i,
          i < inputs_.size() ? "left it out" : fmt::format("{} inputs", inputs_.size()));
  return failed_value();
}

void NodeContext::set_output(size_t i, ir::Value* value) {
  if (i < outputs_.size()) outputs_[i] = value;
}

void NodeContext::set_outputs(ir::Node* node) {
  if (!node) return;
  for (size_t i = 0; i < node->num_outputs(); ++i) set_output(i, node->output(i));
}

// Attributes

const Attribute* NodeContext::find(std::string_view name, AttributeKind kind) {
  read_.insert(name);
  const Attribute* attribute = node_.find(name);
  if (attribute && !attribute->reference.empty()) {
    const auto bound = call_ ? call_->find(attribute->reference) : CallAttributes::const_iterator();
    attribute = call_ && bound != call_->end() ? bound->second : nullptr;
  }
  if (attribute && kind != AttributeKind::undefined && attribute->kind != kind) {
    invalid("attribute '{}' has the wrong type", name);
    return nullptr;
  }
  return attribute;
}

bool NodeContext::has_attribute(std::string_view name) { return find(name, AttributeKind::undefined) != nullptr; }

int64_t NodeContext::integer(std::string_view name, int64_t fallback) {
  const Attribute* attribute = find(name, AttributeKind::integer);
  return attribute ? attribute->integer : fallback;
}

int64_t NodeContext::require_integer(std::string_view name) {
  if (!has_attribute(name)) invalid("attribute '{}' is required", name);
  return integer(name, 0);
}

double NodeContext::real(std::string_view name, double fallback) {
  const Attribute* attribute = find(name, AttributeKind::real);
  return attribute ? static_cast<double>(attribute->real) : fallback;
}

std::string NodeContext::string(std::string_view name, std::string_view fallback) {
  const Attribute* attribute = find(name, AttributeKind::string);
  return std::string(attribute ? attribute->string : fallback);
}

Ints NodeContext::integers(std::string_view name, Ints fallback) {
  const Attribute* attribute = find(name, AttributeKind::integers);
  return attribute ? attribute->integers : fallback;
}

std::vector<double> NodeContext::reals(std::string_view name) {
  const Attribute* attribute = find(name, AttributeKind::reals);
  return attribute ? std::vector<double>(attribute->reals.begin(), attribute->reals.end()) : std::vector<double>();
}

std::vector<std::string> NodeContext::strings(std::string_view name) {
  const Attribute* attribute = find(name, AttributeKind::strings);
  return attribute ? std::vector<std::string>(attribute->strings.begin(), attribute->strings.end())
                   : std::vector<std::string>();
}

const TensorData* NodeContext::tensor(std::string_view name) {
  const Attribute* attribute = find(name, AttributeKind::tensor);
  return attribute && !attribute->tensors.empty() ? &attribute->tensors[0] : nullptr;
}

const GraphProto* NodeContext::graph(std::string_view name) {
  const Attribute* attribute = find(name, AttributeKind::graph);
  if (attribute && !attribute->graphs.empty()) return &attribute->graphs[0];
  invalid("attribute '{}' is required", name);
  return nullptr;
}

std::vector<ir::Value*> NodeContext::run_graph(const GraphProto* body, const std::vector<ir::Value*>& inputs) {
  if (!body) return {};
  if (!failed()) {
    if (inputs.size() != body->inputs.size()) {
      invalid("its graph has {} inputs, expected {}", body->inputs.size(), inputs.size());
    } else if (auto outputs = inline_graph_(*body, inputs)) {
      ++num_added_;
      return *outputs;
    } else {
      failed_inside_ = true;
    }
  }
  return std::vector<ir::Value*>(body->outputs.size(), failed_value());
}

void NodeContext::ignore(std::initializer_list<std::string_view> names) { read_.insert(names.begin(), names.end()); }

std::vector<std::string_view> NodeContext::unread_attributes() const {
  std::vector<std::string_view> unread;
  for (const Attribute& attribute : node_.attributes)
    if (!read_.contains(attribute.name)) unread.push_back(attribute.name);
  return unread;
}

// Builders

ir::Node* NodeContext::add_node(const Attributes& attributes, std::vector<ir::Value*> inputs, size_t num_outputs) {
  if (failed()) return nullptr;
  // Helper constants leave the plain name to the op that does the work.
  const bool helper = attributes.kind() == OpKind::constant && op() != "Constant";
  ir::NodeName name{helper ? name_ + ".constant" : name_, {name_}, {}};
  Result<ir::Node*> node = graph_.add(attributes, std::move(inputs), std::move(name), num_outputs);
  if (!node) {
    error_ = std::move(node).error();
    return nullptr;
  }
  if ((*node)->kind() != OpKind::constant) ++num_added_;
  return *node;
}

ir::Value* NodeContext::add(const Attributes& attributes, std::vector<ir::Value*> inputs) {
  ir::Node* node = add_node(attributes, std::move(inputs), 1);
  return node ? node->output() : failed_value();
}

ir::Value* NodeContext::constant(Tensor tensor) {
  ConstantAttrs attributes;
  attributes.value = std::move(tensor);
  return add(attributes, {});
}

ir::Value* NodeContext::constant(const TensorData& data) {
  Result<Tensor> tensor = to_tensor(data);
  if (tensor) return constant(std::move(*tensor));
  set_error(std::move(tensor).error());
  return failed_value();
}

ir::Value* NodeContext::ints(const Ints& values) {
  return constant(Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values));
}

ir::Value* NodeContext::integer_scalar(int64_t value) { return constant(Tensor::of<int64_t>({}, {value})); }

ir::Value* NodeContext::scalar(double value, DType dtype) {
  Result<Tensor> tensor = Tensor::allocate(dtype, {});
  if (!tensor) {
    set_error(std::move(tensor).error());
    return failed_value();
  }
  from_doubles({&value, 1}, *tensor);
  return constant(std::move(*tensor));
}

ir::Value* NodeContext::unary(UnaryOp op, ir::Value* x) {
  UnaryAttrs attributes;
  attributes.op = op;
  return add(attributes, {x});
}

ir::Value* NodeContext::activation(ActivationOp op, ir::Value* x, double alpha, double beta) {
  ActivationAttrs attributes;
  attributes.op = op;
  attributes.alpha = alpha;
  attributes.beta = beta;
  return add(attributes, {x});
}

ir::Value* NodeContext::binary(ElementwiseOp op, ir::Value* a, ir::Value* b) {
  ElementwiseAttrs attributes;
  attributes.op = op;
  return add(attributes, {a, b});
}

ir::Value* NodeContext::cast(ir::Value* x, DType to) {
  if (x->dtype() == to || failed()) return x;
  CastAttrs attributes;
  attributes.to = to;
  return add(attributes, {x});
}

ir::Value* NodeContext::reduce(ReduceOp op, ir::Value* x, const Ints& axes, bool keepdims) {
  ReduceAttrs attributes;
  attributes.op = op;
  attributes.axes = axes;
  attributes.keepdims = keepdims;
  attributes.noop_with_empty_axes = axes.empty();
  return add(attributes, {x});
}

ir::Value* NodeContext::matmul(ir::Value* a, ir::Value* b, bool transpose_a, bool transpose_b) {
  MatmulAttrs attributes;
  attributes.transpose_a = transpose_a;
  attributes.transpose_b = transpose_b;
  return add(attributes, {a, b});
}

ir::Value* NodeContext::softmax(ir::Value* x, int64_t axis, bool log) {
  SoftmaxAttrs attributes;
  attributes.axis = axis;
  attributes.log = log;
  return add(attributes, {x});
}

ir::Value* NodeContext::reshape(ir::Value* x, ir::Value* shape, bool allow_zero) {
  ReshapeAttrs attributes;
  attributes.allow_zero = allow_zero;
  return add(attributes, {x, shape});
}

ir::Value* NodeContext::transpose(ir::Value* x, const Ints& perm) {
  TransposeAttrs attributes;
  attributes.perm = perm;
  return add(attributes, {x});
}

ir::Value* NodeContext::slice(ir::Value* x, int64_t axis, int64_t begin, int64_t end) {
  return add(SliceAttrs{}, {x, ints({begin}), ints({end}), ints({axis})});
}

ir::Value* NodeContext::concat(std::vector<ir::Value*> parts, int64_t axis) {
  ConcatAttrs attributes;
  attributes.axis = axis;
  return add(attributes, std::move(parts));
}

ir::Value* NodeContext::gather(ir::Value* x, ir::Value* indices, int64_t axis) {
  GatherAttrs attributes;
  attributes.axis = axis;
  return add(attributes, {x, indices});
}

ir::Value* NodeContext::shape_of(ir::Value* x, int64_t begin, int64_t end) {
  ShapeAttrs attributes;
  attributes.start = begin;
  attributes.end = end;
  return add(attributes, {x});
}

ir::Value* NodeContext::fill(ir::Value* shape, Tensor value) {
  FillAttrs attributes;
  attributes.value = std::move(value);
  return add(attributes, {shape});
}

ir::Value* NodeContext::zeros_like(ir::Value* x) { return expand(scalar_like(0, x), shape_of(x)); }

Expr NodeContext::dim(const ir::Value* value, int64_t axis) const {
  return axis >= 0 && axis < value->rank() ? value->shape()[static_cast<size_t>(axis)] : Expr(1);
}

int64_t NodeContext::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    invalid("axis {} is outside [-{}, {})", axis, rank, rank);
    return 0;
  }
  return axis < 0 ? axis + rank : axis;
}

namespace {

constexpr int64_t kMaxFolded = 4096;  // elements: shape arithmetic, not weights

// Content of small values, by evaluating what makes them; each value is visited once.
class Folder {
 public:
  std::optional<Tensor> fold(const ir::Value* value, int depth = 0) {
    if (const auto done = done_.find(value); done != done_.end()) return done->second;
    return done_[value] = compute(value, depth);
  }

 private:
  std::optional<Tensor> compute(const ir::Value* value, int depth) {
    if (const Tensor* tensor = value->constant()) return *tensor;
    const std::optional<Dims> dims = as_constant(value->shape());
    if (!dims || checked_volume(*dims).value_or(INT64_MAX) > kMaxFolded) return std::nullopt;
    if (auto tensor = from_elements(value, *dims)) return tensor;
    const ir::Node* node = value->producer();
    if (!node || node->has_trait(kFresh) || depth > 200) return std::nullopt;
    std::vector<Tensor> inputs;
    for (const ir::Value* input : node->inputs()) {
      std::optional<Tensor> tensor = input ? fold(input, depth + 1) : Tensor();
      if (!tensor) return std::nullopt;
      inputs.push_back(std::move(*tensor));
    }
    Result<std::vector<Tensor>> outputs = run_op(node->attributes(), inputs, node->num_outputs());
    return outputs ? std::optional((*outputs)[value->index()]) : std::nullopt;
  }

  static std::optional<Tensor> from_elements(const ir::Value* value, const Dims& dims) {
    if (!value->elements() || !is_integral(value->dtype())) return std::nullopt;
    Ints numbers;
    for (const Expr& element : *value->elements()) {
      if (!element.as_constant()) return std::nullopt;
      numbers.push_back(*element.as_constant());
    }
    if (checked_volume(dims) != static_cast<int64_t>(numbers.size())) return std::nullopt;
    Result<Tensor> tensor = Tensor::allocate(value->dtype(), dims);
    if (!tensor) return std::nullopt;
    from_ints(numbers, *tensor);
    return *std::move(tensor);
  }

  std::map<const ir::Value*, std::optional<Tensor>> done_;
};

}  // namespace

std::optional<Tensor> NodeContext::known(const ir::Value* value) const {
  return value && !failed() ? Folder().fold(value) : std::nullopt;
}

std::optional<Ints> NodeContext::constant_integers(const ir::Value* value) const {
  const std::optional<Tensor> tensor = known(value);
  if (!tensor || !is_integral(tensor->dtype())) return std::nullopt;
  Ints values;
  for (int64_t i = 0; i < tensor->volume(); ++i) values.push_back(tensor->at(i));
  return values;
}

std::optional<double> NodeContext::constant_scalar(const ir::Value* value) const {
  const std::optional<Tensor> tensor = known(value);
  if (!tensor || tensor->volume() != 1) return std::nullopt;
  return tensor->at_double(0);
}

}  // namespace lathe::onnx
