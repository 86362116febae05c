// SPDX-License-Identifier: Apache-2.0
// How a slot is passed into and out of bodies of control flow, which take and yield tensors alone.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "onnx/slot.h"

namespace lathe::onnx {

// A sequence is a `list` where its length is known, of one tensor for each element, and `open` where it is not: rows
// and dims of a TensorList. `none` is an optional that never has an element.
struct SlotForm {
  enum class Kind { tensor, text, list, open, none };
  Kind kind = Kind::none;
  bool is_maybe = false;       // an optional: its first tensor tells whether it has an element, bool[]
  std::optional<DType> dtype;  // of numbers; nothing where an empty sequence's is not told
  bool is_text = false;        // of the elements of sequences
  std::vector<int> ranks;      // of the tensors; of a list one for each element
  int64_t rank = 0;            // of an open sequence, as TensorList's members of these names
  bool is_mixed = false, is_empty = false;

  bool operator==(const SlotForm&) const = default;
};

SlotForm form_of(const Slot& slot);

// A form that holds slots of both forms; nothing where there is none.
std::optional<SlotForm> joined_form(const SlotForm& a, const SlotForm& b);

size_t num_tensors(const SlotForm& form);

// The tensors of a slot in a form that holds it, joined_form(form, form_of(slot)) == form; and the slot of such
// tensors.
std::vector<ir::Value*> to_tensors(ir::GraphBuilder& c, const SlotForm& form, const Slot& slot);
Slot from_tensors(const SlotForm& form, std::span<ir::Value* const> tensors);

// A sequence of known length as one of unknown length.
TensorList to_list(ir::GraphBuilder& c, const Sequence& sequence);

}  // namespace lathe::onnx
