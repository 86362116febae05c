// SPDX-License-Identifier: Apache-2.0
#include "onnx/node_context.h"

#include <algorithm>
#include <cstring>

#include "compose/text.h"
#include "ir/known_content.h"
#include "onnx/aligned_copies.h"
#include "ops/rules.h"

namespace lathe::onnx {

namespace {

constexpr size_t kWorthAView = 64 << 10;  // what is smaller would keep a page of the file, or a larger one, in memory

}  // namespace

Result<Tensor> to_tensor(const TensorData& data) {
  const std::optional<DType> dtype = to_dtype(data.type);
  if (!dtype)
    return fail(ErrorCode::dtype_unsupported, "tensor '{}' has element type {}, which Lathe cannot compute with",
                data.name, name_of(data.type));
  const auto address = reinterpret_cast<uintptr_t>(data.bytes.data());
  const bool clean = *dtype != DType::boolean ||
                     std::all_of(data.bytes.begin(), data.bytes.end(), [](std::byte b) { return b <= std::byte{1}; });
  const bool lasts = data.owner.use_count() > 0;  // ModelReadOptions::borrows
  const bool is_large = data.bytes.size() >= kWorthAView;
  if (lasts && is_large && address % size_of(*dtype) == 0 && clean)
    return Tensor::view(*dtype, data.dims, data.bytes.data(), data.owner).with_clear_end();
  if (data.copies && is_large && clean) return data.copies->add(*dtype, data.dims, data.bytes, data.owner);
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(*dtype, data.dims));
  if (!data.bytes.empty()) std::memcpy(tensor.mutable_data(), data.bytes.data(), data.bytes.size());
  if (!clean)
    for (size_t i = 0; i < data.bytes.size(); ++i) tensor.mutable_as<uint8_t>()[i] = data.bytes[i] != std::byte{0};
  return tensor;
}

// Inputs and outputs

ir::Value* NodeContext::require(size_t i) {
  if (has(i)) return inputs_[i];
  if (i < slots_.size() && slots_[i].is_defined()) {
    if (slots_[i].maybe) {
      unsupported(
          "its input {} is an optional of which only running tells whether it has an element; OptionalGetElement and "
          "OptionalHasElement take it",
          i);
      return placeholder();
    }
    if (slots_[i].text) {
      unsupported("its input {} is of strings, which Lathe does not take there", i);
      return placeholder();
    }
    invalid("its input {} is {}, but must be a tensor", i,
            slots_[i].sequence || slots_[i].open ? "a sequence of tensors" : "an optional without an element");
    return placeholder();
  }
  invalid("input {} is required, but the node has {}", i,
          i < inputs_.size() ? "left it out" : fmt::format("{} inputs", inputs_.size()));
  return placeholder();
}

void NodeContext::set_output(size_t i, Slot value) {
  if (i < outputs_.size()) outputs_[i] = std::move(value);
}

void NodeContext::pass_on(size_t i, Slot value) {
  for (ir::Value** tensor : {&value.value, &value.text})
    if (*tensor) *tensor = identity(*tensor);
  set_output(i, std::move(value));
}

void NodeContext::set_outputs(const std::vector<ir::Value*>& values) {
  for (size_t i = 0; i < values.size(); ++i) set_output(i, values[i]);
}

const Slot& NodeContext::slot(size_t i) {
  static const Slot kLeftOut;
  if (i >= slots_.size()) return kLeftOut;
  asked_[i] = true;
  return slots_[i];
}

const Slot& NodeContext::require_slot(size_t i) {
  const Slot& found = slot(i);
  if (!found.is_defined()) require(i);
  return found;
}

std::shared_ptr<const Sequence> NodeContext::require_sequence(size_t i) {
  const Slot& found = require_slot(i);
  if (found.sequence) return found.sequence;
  if (found.is_tensor() || found.text) invalid("its input {} is a tensor, but must be a sequence of tensors", i);
  if (found.maybe) require(i);
  if (found.is_empty_optional) invalid("its input {} is an optional without an element, but must be a sequence", i);
  return std::make_shared<const Sequence>();
}

Slot NodeContext::require_element(size_t i) {
  const Slot& found = slot(i);
  return found.text ? found : to_slot(require(i));
}

ir::Value* NodeContext::require_text(size_t i) {
  const Slot& found = require_slot(i);
  if (found.text) return found.text;
  if (found.is_defined()) invalid("its input {} is of no strings, but must be", i);
  return placeholder();
}

bool NodeContext::has_texts() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.text != nullptr; });
}

void NodeContext::set_input(size_t i, ir::Value* value) {
  slots_[i] = to_slot(value);
  inputs_[i] = value;
}

ir::Value* NodeContext::text_constant(Dims dims, const std::vector<std::string_view>& strings) {
  return constant(text_tensor(std::move(dims), strings));
}

void NodeContext::refuse_unasked() {
  for (size_t i = 0; i < slots_.size() && !failed(); ++i)
    if (!asked_[i] && slots_[i].is_defined()) require(i);
}

// Attributes

const Attribute* NodeContext::look_at(std::string_view name) const {
  const Attribute* attribute = node_.find(name);
  if (!attribute || attribute->reference.empty()) return attribute;
  const auto bound = call_ ? call_->find(attribute->reference) : CallAttributes::const_iterator();
  return call_ && bound != call_->end() ? bound->second : nullptr;
}

const Attribute* NodeContext::find(std::string_view name, AttributeKind kind) {
  if (const Attribute* own = node_.find(name)) read_.insert(own->name);  // which lasts longer than `name`
  const Attribute* attribute = look_at(name);
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

Result<Tensor> NodeContext::weight(Result<Tensor> tensor) { return int64_.take(std::move(tensor), name()); }

const TensorData* NodeContext::tensor(std::string_view name) {
  const Attribute* attribute = find(name, AttributeKind::tensor);
  return attribute && !attribute->tensors.empty() ? &attribute->tensors[0] : nullptr;
}

const TypeProto* NodeContext::type(std::string_view name) {
  const Attribute* attribute = find(name, AttributeKind::type);
  return attribute && !attribute->types.empty() ? &attribute->types[0] : nullptr;
}

const GraphProto* NodeContext::graph(std::string_view name) {
  const Attribute* attribute = find(name, AttributeKind::graph);
  if (attribute && !attribute->graphs.empty()) return &attribute->graphs[0];
  invalid("attribute '{}' is required", name);
  return nullptr;
}

std::vector<ir::Value*> NodeContext::run_graph(const GraphProto* body, const std::vector<ir::Value*>& inputs) {
  if (!body) return {};
  std::vector<Slot> slots;
  for (ir::Value* input : inputs) slots.push_back(to_slot(input));
  std::vector<ir::Value*> values;
  for (const Slot& output : run_graph(*body, slots)) {
    if (!output.is_tensor()) invalid("output {} of its graph is not a tensor, but must be one", values.size());
    values.push_back(output.value);
  }
  return failed() ? std::vector<ir::Value*>(body->outputs.size(), placeholder()) : values;
}

std::vector<Slot> NodeContext::run_graph(const GraphProto& body, const std::vector<Slot>& inputs) {
  if (failed()) return {};
  if (inputs.size() != body.inputs.size()) {
    invalid("its graph has {} inputs, expected {}", body.inputs.size(), inputs.size());
  } else if (auto outputs = nested_.inline_graph(body, inputs)) {
    ++num_inlined_;
    return *outputs;
  } else {
    failed_ = true;
  }
  return {};
}

bool NodeContext::fill_body(const GraphProto& proto, ir::Graph& body, ir::Captured& captured, const BodyEdge& edge) {
  if (failed()) return false;
  ir::GraphBuilder inside(body, {name(), {name()}, {}}, nullptr, ".constant");
  if (nested_.fill_body(proto, inside, captured, edge)) return true;
  if (inside.error()) set_error(*inside.error(), inside.where());
  failed_ = true;
  return false;
}

bool NodeContext::attempt(const std::function<bool()>& work) {
  const Branches branches = branches_;
  if (nested_.attempt(work)) return true;
  forget_error();
  branches_ = branches;
  return false;
}

void NodeContext::ignore(std::initializer_list<std::string_view> names) { read_.insert(names.begin(), names.end()); }

std::vector<std::string_view> NodeContext::unread_attributes() const {
  std::vector<std::string_view> unread;
  for (const Attribute& attribute : node_.attributes)
    if (!read_.contains(attribute.name)) unread.push_back(attribute.name);
  return unread;
}

ir::Value* NodeContext::require_shape(std::string_view what, ir::Value* x, ir::Value* shape, std::string_view dims) {
  if (failed()) return placeholder();
  const std::vector<Expr>* wanted = shape->elements();
  if (!wanted) return reshape(x, shape, true);
  if (x->shape() == *wanted) return x;
  bool fits = x->shape().size() == wanted->size();
  for (size_t d = 0; fits && d < wanted->size(); ++d)
    fits = decide({Relation::equal, x->shape()[d], (*wanted)[d], {}}, graph_.symbol_ranges()) != false;
  if (fits) return reshape(x, shape, true);
  const std::vector<std::string> names = graph_.symbol_names();
  invalid("{} has the shape {}, but must have {}{}{}", what, to_string(x->shape(), names), to_string(*wanted, names),
          dims.empty() ? "" : ": ", dims);
  return placeholder();
}

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

size_t NodeContext::num_added() const {
  const auto is_op = [](const ir::Node* node) { return !node->is(OpKind::constant); };
  return num_inlined_ + static_cast<size_t>(std::count_if(added_.begin(), added_.end(), is_op));
}

std::optional<Tensor> NodeContext::known(const ir::Value* value) const {
  return value && !failed() ? ir::known_content(*value) : std::nullopt;
}

std::optional<double> NodeContext::constant_scalar(const ir::Value* value) const {
  const std::optional<Tensor> tensor = known(value);
  if (!tensor || tensor->volume() != 1) return std::nullopt;
  return tensor->at_double(0);
}

}  // namespace lathe::onnx
