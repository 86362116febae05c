// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals. Where a sequence's length is known while importing, its tensors are values of the graph;
// where a position is not known, each tensor that may be meant is chosen from. Others are lists of tensors.
#include <algorithm>

#include "onnx/bodies.h"
#include "onnx/importer.h"
#include "onnx/sequences.h"
#include "onnx/slot_form.h"

namespace lathe::onnx {
namespace {

using Elements = std::vector<ir::Value*>;

constexpr int64_t kMostParts = 4096;  // as many operands as a step of a plan may have

std::string type_text(std::optional<DType> dtype, bool is_text) {
  return is_text ? "strings" : std::string(name_of(dtype.value_or(DType::f32)));
}

bool has_type(NodeContext& c, std::optional<DType> dtype, bool is_text, const Slot& element) {
  if (c.failed()) return false;
  const bool is_untold = !dtype && !is_text, is_element_text = element.text != nullptr;
  if (is_untold || (is_text ? is_element_text : !is_element_text && *dtype == element.value->dtype())) return true;
  c.invalid("a tensor of {} cannot be in a sequence of {}",
            type_text(is_element_text ? std::nullopt : std::optional(element.value->dtype()), is_element_text),
            type_text(dtype, is_text));
  return false;
}

ir::Value* tensor_of(const Slot& element) { return element.text ? element.text : element.value; }

bool require_one_rank(NodeContext& c, const TensorList& list) {
  if (list.is_mixed)
    c.unsupported("its sequence has tensors of up to {} dimensions, and only running tells which has how many",
                  list.rank());
  return !c.failed();
}

void require_int(NodeContext& c, const char* what, const ir::Value* value) {
  if (!c.failed() && value->dtype() != DType::i32 && value->dtype() != DType::i64)
    c.invalid("its {} is {}, but must be an int32 or int64", what, name_of(value->dtype()));
}

ir::Value* scalar_index(NodeContext& c, ir::Value* position) {
  require_int(c, "position", position);
  return c.cast(c.reshape(position, Ints{}), DType::i64);
}

// The content of i64[], where it is known.
std::optional<int64_t> known_number(NodeContext& c, const ir::Value* value) {
  const std::optional<Tensor> known = c.known(value);
  return known ? std::optional(known->as<int64_t>()[0]) : std::nullopt;
}

// A known position in [-length, limit), counted from the start; nothing where it is not known, or after an error.
std::optional<int64_t> known_position(NodeContext& c, ir::Value* position, int64_t length, int64_t limit) {
  const std::optional<int64_t> at = known_number(c, scalar_index(c, position));
  if (!at) return std::nullopt;
  if (*at < -length || *at >= limit) {
    c.invalid("position {} is outside [-{}, {}) of its sequence of {} tensors", *at, length, limit, length);
    return std::nullopt;
  }
  return *at < 0 ? *at + length : *at;
}

// A position in [-length, limit) that only running tells, counted from the start. It is looked up in a list of all that
// there are, so that others are errors while running.
ir::Value* open_position(NodeContext& c, ir::Value* position, int64_t length, int64_t limit) {
  Ints all;
  for (int64_t at = -length; at < limit; ++at) all.push_back(at < 0 ? at + length : at);
  ir::Value* row = c.binary(ElementwiseOp::add, scalar_index(c, position), c.integer_scalar(length));
  ir::Value* outside = c.binary(ElementwiseOp::less, row, c.integer_scalar(0));  // would count from the list's end
  row = c.select(outside, c.integer_scalar(static_cast<int64_t>(all.size())), row);
  return c.gather(c.ints(all), row, 0);
}

ir::Value* at_is(NodeContext& c, ElementwiseOp op, ir::Value* at, size_t than) {
  return c.binary(op, at, c.integer_scalar(static_cast<int64_t>(than)));
}

// The one of `elements` that is at `position`.
ir::Value* pick(NodeContext& c, const Elements& elements, ir::Value* position) {
  const auto length = static_cast<int64_t>(elements.size());
  const std::optional<int64_t> known = known_position(c, position, length, length);
  if (known || c.failed()) return known ? elements[static_cast<size_t>(*known)] : position;
  const auto is_alike = [&](const ir::Value* element) { return element->shape() == elements[0]->shape(); };
  if (std::all_of(elements.begin(), elements.end(), is_alike)) {
    Elements rows;
    for (ir::Value* element : elements) rows.push_back(c.unsqueeze(element, {0}));
    return c.gather(c.concat(rows, 0), scalar_index(c, position), 0);
  }
  ir::Value *at = open_position(c, position, length, length), *chosen = elements[0];
  for (size_t i = 1; i < elements.size() && !c.failed(); ++i)
    chosen = choose_value(c, at_is(c, ElementwiseOp::equal, at, i), elements[i], chosen);
  return chosen;
}

// x, which needs none of the places where the sequence has changed, and fails where there was no such place.
ir::Value* checked(NodeContext& c, const Sequence& sequence, ir::Value* x) {
  for (ir::Value* at : sequence.places) x = only_if_zero(c, x, c.binary(ElementwiseOp::less, at, c.integer_scalar(0)));
  return x;
}

// `elements` with x at a place that only running tells: each is itself, x, or the one before it.
Elements insert_at(NodeContext& c, const Elements& elements, ir::Value* x, ir::Value* at) {
  Elements all;
  for (size_t i = 0; i <= elements.size() && !c.failed(); ++i) {
    ir::Value* placed = x;
    if (i > 0) placed = choose_value(c, at_is(c, ElementwiseOp::equal, at, i), x, elements[i - 1]);
    if (i < elements.size()) placed = choose_value(c, at_is(c, ElementwiseOp::greater, at, i), elements[i], placed);
    all.push_back(placed);
  }
  return all;
}

bool has_too_many_parts(NodeContext& c, int64_t count) {
  if (count > kMostParts) c.unsupported("its sequence would have {} tensors, more than {}", count, kMostParts);
  return count > kMostParts;
}

// Extents of the parts of x along `axis`, of which all but the last are `of_each`, i64[]; a list of known length where
// that can be told.
ir::Value* equal_parts(NodeContext& c, ir::Value* x, int64_t axis, ir::Value* of_each) {
  const std::optional<int64_t> known = known_number(c, of_each);
  if (known && *known < 1) c.invalid("the extent of its parts is {}, but must be positive", *known);
  const std::optional<int64_t> extent = c.dim(x, axis).as_constant();
  if (!known || !extent) return equal_extents(c, c.shape_of(x, axis, axis + 1), c.reshape(of_each, Ints{1}));
  const int64_t most = std::min(*known, std::max<int64_t>(*extent, 1));
  Ints extents;
  if (!c.failed() && !has_too_many_parts(c, (*extent - 1) / most + 1))
    for (int64_t begin = 0; begin < *extent; begin += most) extents.push_back(std::min(most, *extent - begin));
  return c.ints(extents);
}

ir::Value* parts_of(NodeContext& c, ir::Value* x, int64_t axis) {
  if (!c.has(1)) return equal_parts(c, x, axis, c.integer_scalar(1));
  ir::Value* split = c.require(1);
  require_int(c, "split", split);
  if (split->rank() == 0) return equal_parts(c, x, axis, c.cast(split, DType::i64));
  if (split->rank() > 1) c.invalid("its split has {} dimensions, but must be a number or a list", split->rank());
  if (const std::optional<int64_t> count = c.dim(split, 0).as_constant()) has_too_many_parts(c, *count);
  return c.cast(split, DType::i64);
}

}  // namespace

void import_sequence_construct(NodeContext& c) {
  Sequence sequence;
  for (size_t i = 0; i < std::max<size_t>(c.num_inputs(), 1) && !c.failed(); ++i) {
    const Slot element = c.require_element(i);
    if (!has_type(c, sequence.dtype, sequence.is_text, element)) return;
    sequence.is_text = element.text != nullptr;
    if (!sequence.is_text) sequence.dtype = element.value->dtype();
    sequence.elements.push_back(tensor_of(element));
  }
  c.set_output(0, to_slot(std::move(sequence)));
}

void import_sequence_empty(NodeContext& c) {
  const auto type = static_cast<ElementType>(c.integer("dtype", static_cast<int64_t>(ElementType::float32)));
  const std::optional<DType> dtype = to_dtype(type);
  const bool is_text = type == ElementType::string;
  if (!dtype && !is_text) return c.unsupported("its type {} is not supported", name_of(type));
  c.set_output(0, to_slot(Sequence{{}, dtype, is_text}));
}

void import_sequence_length(NodeContext& c) {
  if (const TensorList* open = c.open_sequence(0)) return c.set_output(0, length_of(c, *open));
  const auto sequence = c.require_sequence(0);
  if (c.failed()) return;
  c.set_output(0, checked(c, *sequence, c.integer_scalar(static_cast<int64_t>(sequence->elements.size()))));
}

void import_sequence_at(NodeContext& c) {
  const TensorList* open = c.open_sequence(0);
  if (open) {
    if (require_one_rank(c, *open))
      c.set_output(0, to_slot(element_at(c, *open, scalar_index(c, c.require(1))), open->is_text));
    return;
  }
  const auto sequence = c.require_sequence(0);
  ir::Value* position = c.require(1);
  if (c.failed()) return;
  if (sequence->elements.empty()) return c.invalid("its sequence is empty, so that no position is inside");
  ir::Value* found = pick(c, sequence->elements, position);
  c.set_output(0, to_slot(c.identity(found), sequence->is_text));
}

void import_sequence_insert(NodeContext& c) {
  const TensorList* open = c.open_sequence(0);
  const Slot element = c.require_element(1);
  if (open) {
    ir::Value* position = c.has(2) ? scalar_index(c, c.require(2)) : nullptr;
    const std::optional<DType> dtype = open->is_text ? std::nullopt : std::optional(open->rows->dtype());
    if (has_type(c, dtype, open->is_text, element))
      c.set_output(0, to_slot(inserted(c, *open, tensor_of(element), position)));
    return;
  }
  const auto sequence = c.require_sequence(0);
  if (!has_type(c, sequence->dtype, sequence->is_text, element)) return;
  ir::Value* x = tensor_of(element);
  Sequence longer{sequence->elements, {}, element.text != nullptr, sequence->places};
  if (!longer.is_text) longer.dtype = x->dtype();
  const auto length = static_cast<int64_t>(longer.elements.size());
  std::optional<int64_t> at = length;
  if (c.has(2)) at = known_position(c, c.require(2), length, length + 1);
  if (c.failed()) return;
  if (length == 0) x = checked(c, *sequence, x);  // no tensor is left that would read them
  if (at) {
    longer.elements.insert(longer.elements.begin() + *at, x);
  } else {
    longer.places.push_back(open_position(c, c.require(2), length, length + 1));
    longer.elements = insert_at(c, longer.elements, x, longer.places.back());
  }
  c.set_output(0, to_slot(std::move(longer)));
}

void import_sequence_erase(NodeContext& c) {
  if (const TensorList* open = c.open_sequence(0))
    return c.set_output(0, to_slot(erased(c, *open, c.has(1) ? scalar_index(c, c.require(1)) : nullptr)));
  const auto sequence = c.require_sequence(0);
  const Elements& elements = sequence->elements;
  if (c.failed()) return;
  if (elements.empty()) return c.invalid("its sequence is empty, so that nothing can be erased");
  const auto length = static_cast<int64_t>(elements.size());
  std::optional<int64_t> at = length - 1;
  if (c.has(1)) at = known_position(c, c.require(1), length, length);
  if (c.failed()) return;
  Sequence shorter = *sequence;
  shorter.elements.erase(shorter.elements.begin() + at.value_or(length - 1));
  if (!at) {
    ir::Value* open = open_position(c, c.require(1), length, length);
    shorter.places.push_back(open);
    for (size_t i = 0; i < shorter.elements.size() && !c.failed(); ++i)
      shorter.elements[i] = choose_value(c, at_is(c, ElementwiseOp::greater, open, i), elements[i], elements[i + 1]);
  }
  c.set_output(0, to_slot(std::move(shorter)));
}

void import_split_to_sequence(NodeContext& c) {
  SplitAttrs attributes;
  const Slot whole = c.require_element(0);
  const bool is_text = whole.text != nullptr;
  ir::Value* x = tensor_of(whole);
  const int rank = x->rank() - (is_text ? 1 : 0);
  attributes.axis = c.axis(c.integer("axis", 0), std::max(rank, 1));
  const bool keeps = c.flag("keepdims", true) || c.has(1);
  if (c.failed()) return;
  if (rank == 0) return c.invalid("a scalar cannot be split");
  ir::Value* extents = parts_of(c, x, attributes.axis);
  const std::optional<int64_t> count = c.dim(extents, 0).as_constant();
  if (c.failed()) return;
  if (!count) return c.set_output(0, to_slot(parted(c, x, is_text, extents, attributes.axis, keeps)));
  Sequence sequence{{}, is_text ? std::nullopt : std::optional(x->dtype()), is_text};
  if (*count > 0) sequence.elements = c.add_all(attributes, {x, extents}, static_cast<size_t>(*count));
  if (!keeps)
    for (ir::Value*& part : sequence.elements) part = c.squeeze(part, {attributes.axis});
  c.set_output(0, to_slot(std::move(sequence)));
}

void import_concat_from_sequence(NodeContext& c) {
  const TensorList* open = c.open_sequence(0);
  const auto sequence = open ? nullptr : c.require_sequence(0);
  const int64_t axis = c.require_integer("axis");
  const bool is_new = c.flag("new_axis", false);
  if (c.failed()) return;
  if (sequence && sequence->elements.empty()) return c.invalid("its sequence is empty, so that nothing can be joined");
  if (open || sequence->is_text) {  // whose strings may be of different lengths
    const TensorList list = open ? *open : to_list(c, *sequence);
    if (!require_one_rank(c, list)) return;
    const int64_t at = c.axis(axis, list.rank() + (is_new ? 1 : 0));
    return c.set_output(0, to_slot(is_new ? stacked(c, list, at) : joined(c, list, at), list.is_text));
  }
  Elements parts = sequence->elements;
  const int64_t at = c.axis(axis, parts[0]->rank() + (is_new ? 1 : 0));
  if (is_new)
    for (ir::Value*& part : parts) part = c.unsqueeze(part, {at});
  c.set_output(0, c.concat(parts, at));
}

void import_sequence_map(NodeContext& c) {
  const GraphProto* body = c.graph("body");
  for (size_t i = 0; i < c.num_inputs() && body; ++i)
    if (c.open_sequence(i)) return add_map_loop(c, *body);
  const auto first = c.require_sequence(0);
  if (c.failed()) return;
  std::vector<Slot> inputs;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    inputs.push_back(c.require_slot(i));
    if (inputs.back().sequence && inputs.back().sequence->elements.size() != first->elements.size())
      return c.invalid("its input {} is a sequence of {} tensors, but input 0 has {}", i,
                       inputs.back().sequence->elements.size(), first->elements.size());
  }
  std::vector<Sequence> results(body->outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].dtype = to_dtype(body->outputs[i].type.element);
    results[i].is_text = body->outputs[i].type.element == ElementType::string;
    results[i].places = first->places;
  }
  for (size_t k = 0; k < first->elements.size(); ++k) {
    std::vector<Slot> operands;
    for (const Slot& input : inputs)
      operands.push_back(input.sequence ? to_slot(input.sequence->elements[k], input.sequence->is_text) : input);
    const std::vector<Slot> outputs = c.run_graph(*body, operands);
    for (size_t i = 0; i < outputs.size() && !c.failed(); ++i) {
      ir::Value* tensor = tensor_of(outputs[i]);
      if (!tensor) return c.invalid("output {} of its graph is not a tensor, but must be one", i);
      results[i].is_text = outputs[i].text != nullptr;
      results[i].dtype = results[i].is_text ? std::nullopt : std::optional(tensor->dtype());
      results[i].elements.push_back(tensor);
    }
    if (c.failed()) return;
  }
  for (size_t i = 0; i < results.size(); ++i) c.set_output(i, to_slot(std::move(results[i])));
}

void import_optional(NodeContext& c) {
  const bool is_typed = c.type("type") != nullptr;
  if (c.slot(0).is_defined()) return c.pass_on(0, c.slot(0));
  if (!is_typed) return c.invalid("it has neither an element nor the attribute 'type'");
  Slot empty;
  empty.is_empty_optional = true;
  c.set_output(0, empty);
}

void import_optional_has_element(NodeContext& c) {
  const Slot& x = c.slot(0);
  if (x.maybe) return c.set_output(0, c.identity(x.maybe->is_there));
  c.set_output(0, c.constant(Tensor::of<bool>({}, {x.is_defined() && !x.is_empty_optional})));
}

void import_optional_get_element(NodeContext& c) {
  const Slot& x = c.require_slot(0);
  if (x.is_empty_optional) return c.invalid("its optional has no element");
  if (!x.maybe) return x.is_defined() ? c.pass_on(0, x) : void();
  const SlotForm form = form_of(x.maybe->element);
  if (form.kind == SlotForm::Kind::none) return c.invalid("its optional never has an element");
  ir::Value* is_missing = c.unary(UnaryOp::logical_not, x.maybe->is_there);
  std::vector<ir::Value*> tensors = to_tensors(c, form, x.maybe->element);
  for (ir::Value*& tensor : tensors) tensor = only_if_zero(c, tensor, is_missing);
  c.set_output(0, from_tensors(form, tensors));
}

}  // namespace lathe::onnx
