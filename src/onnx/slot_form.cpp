// SPDX-License-Identifier: Apache-2.0
#include "onnx/slot_form.h"

#include <algorithm>

namespace lathe::onnx {
namespace {

using Kind = SlotForm::Kind;

SlotForm open_form(const SlotForm& list) {
  SlotForm open = list;
  open.kind = Kind::open;
  open.ranks.clear();
  const int bytes = list.is_text ? 1 : 0;
  open.is_empty = list.ranks.empty();
  for (const int rank : list.ranks) {
    open.rank = std::max<int64_t>(open.rank, rank - bytes);
    open.is_mixed |= rank != list.ranks[0];
  }
  return open;
}

// Of open sequences, one of which may have no tensors, as is known.
SlotForm joined_open(const SlotForm& a, const SlotForm& b) {
  SlotForm form = a.is_empty ? b : a;
  form.dtype = a.dtype ? a.dtype : b.dtype;
  form.is_text = a.is_text || b.is_text;
  form.is_empty = a.is_empty && b.is_empty;
  if (a.is_empty || b.is_empty) return form;
  form.rank = std::max(a.rank, b.rank);
  form.is_mixed = a.is_mixed || b.is_mixed || a.rank != b.rank;
  return form;
}

bool is_sequence(const SlotForm& form) { return form.kind == Kind::list || form.kind == Kind::open; }

// Whether the type of the elements is told: an empty sequence that names none fits all.
bool is_typed(const SlotForm& form) { return form.dtype || form.is_text; }

ir::Value* nothing(ir::GraphBuilder& c, DType dtype, int rank) {
  return c.filled(0, dtype, Dims(static_cast<size_t>(rank), rank > 0 ? 1 : 0));
}

// The tensors of an optional without an element: their content means nothing.
std::vector<ir::Value*> stand_ins(ir::GraphBuilder& c, const SlotForm& form) {
  const bool is_text = form.kind == Kind::text || form.is_text;
  if (form.kind == Kind::open) {
    const TensorList list = empty_list(c, is_text ? std::nullopt : form.dtype, form.rank);
    return {list.rows, list.dims};
  }
  std::vector<ir::Value*> tensors;
  for (const int rank : form.ranks) tensors.push_back(nothing(c, is_text ? DType::u8 : *form.dtype, rank));
  return tensors;
}

TensorList to_open(ir::GraphBuilder& c, const SlotForm& form, const Slot& slot) {
  TensorList list = slot.open ? *slot.open : to_list(c, *slot.sequence);
  if (list.is_empty && (form.is_text || form.dtype))
    list = empty_list(c, form.is_text ? std::nullopt : form.dtype, form.rank);
  return of_rank(c, list, form.rank);
}

}  // namespace

SlotForm form_of(const Slot& slot) {
  SlotForm form;
  if (slot.maybe) {
    form = form_of(slot.maybe->element);
    form.is_maybe = true;
  } else if (slot.value || slot.text) {
    ir::Value* tensor = slot.value ? slot.value : slot.text;
    form.kind = slot.value ? Kind::tensor : Kind::text;
    form.dtype = tensor->dtype();
    form.ranks = {tensor->rank()};
  } else if (slot.sequence) {
    form.kind = Kind::list;
    form.dtype = slot.sequence->dtype;
    form.is_text = slot.sequence->is_text;
    for (const ir::Value* element : slot.sequence->elements) form.ranks.push_back(element->rank());
    if (form.ranks.empty()) form = open_form(form);  // control flow hands on a tensor at least
  } else if (slot.open) {
    form.kind = Kind::open;
    form.is_text = slot.open->is_text;
    if (!form.is_text) form.dtype = slot.open->rows->dtype();
    form.rank = slot.open->rank();
    form.is_mixed = slot.open->is_mixed, form.is_empty = slot.open->is_empty;
  } else {
    form.is_maybe = true;
  }
  return form;
}

std::optional<SlotForm> joined_form(const SlotForm& a, const SlotForm& b) {
  SlotForm form = a.kind == Kind::none ? b : a;
  if (a.kind != Kind::none && b.kind != Kind::none) {
    if (is_sequence(a) && is_sequence(b)) {
      if (is_typed(a) && is_typed(b) && (a.dtype != b.dtype || a.is_text != b.is_text)) return std::nullopt;
      const bool alike = a.kind == Kind::list && b.kind == Kind::list && a.ranks == b.ranks;
      if (!alike)
        form = joined_open(a.kind == Kind::list ? open_form(a) : a, b.kind == Kind::list ? open_form(b) : b);
      else if (!is_typed(a))
        form = b;
    } else if (a.kind != b.kind || a.dtype != b.dtype || a.ranks != b.ranks) {
      return std::nullopt;
    }
  }
  form.is_maybe = a.is_maybe || b.is_maybe;
  return form;
}

size_t num_tensors(const SlotForm& form) {
  return (form.kind == Kind::open ? 2 : form.ranks.size()) + (form.is_maybe ? 1 : 0);
}

TensorList to_list(ir::GraphBuilder& c, const Sequence& sequence) {
  TensorList list =
      empty_list(c, sequence.is_text ? std::nullopt : std::optional(sequence.dtype.value_or(DType::f32)), 0);
  for (ir::Value* element : sequence.elements) list = inserted(c, list, element, nullptr);
  return list;
}

std::vector<ir::Value*> to_tensors(ir::GraphBuilder& c, const SlotForm& form, const Slot& slot) {
  const Slot& element = slot.maybe ? slot.maybe->element : slot;
  std::vector<ir::Value*> tensors;
  if (element.is_empty_optional) {
    tensors = stand_ins(c, form);
  } else if (form.kind == Kind::open) {
    const TensorList list = to_open(c, form, element);
    tensors = {list.rows, list.dims};
  } else if (form.kind == Kind::list) {
    tensors = element.sequence->elements;
  } else {
    tensors = {element.value ? element.value : element.text};
  }
  if (!form.is_maybe) return tensors;
  ir::Value* is_there = slot.maybe ? slot.maybe->is_there : c.constant(Tensor::of<bool>({}, {!slot.is_empty_optional}));
  tensors.insert(tensors.begin(), is_there);
  return tensors;
}

Slot from_tensors(const SlotForm& form, std::span<ir::Value* const> tensors) {
  if (form.is_maybe) {
    SlotForm element = form;
    element.is_maybe = false;
    return to_slot(MaybeElement{tensors[0], from_tensors(element, tensors.subspan(1))});
  }
  if (form.kind == Kind::open) {
    TensorList list;
    list.rows = tensors[0], list.dims = tensors[1];
    list.is_text = form.is_text, list.is_mixed = form.is_mixed, list.is_empty = form.is_empty;
    return to_slot(list);
  }
  if (form.kind == Kind::list) return to_slot(Sequence{{tensors.begin(), tensors.end()}, form.dtype, form.is_text});
  if (form.kind != Kind::none) return to_slot(tensors[0], form.kind == Kind::text);
  Slot empty;
  empty.is_empty_optional = true;
  return empty;
}

}  // namespace lathe::onnx
