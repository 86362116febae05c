// SPDX-License-Identifier: Apache-2.0
// What a name of a model stands for while it is imported.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compose/tensor_list.h"
#include "ir/graph.h"

namespace lathe::onnx {

// A sequence whose length is known. Graphs have tensors only: what operators do with sequences is done while importing.
struct Sequence {
  std::vector<ir::Value*> elements;
  std::optional<DType> dtype;  // of the elements; nothing where an empty sequence's is not told, and of strings
  bool is_text = false;        // the elements are strings, as bytes
  // i64[], each: places, 0 or more, where tensors were put or taken away. Whoever reads one fails where there was no
  // such place; whoever reads the length alone has to read them all.
  std::vector<ir::Value*> places{};
};

struct MaybeElement;

// One of these: a tensor of numbers (`value`) or of strings (`text`), a sequence (`sequence`, `open`), or an optional
// (`maybe`, `is_empty_optional`). An optional that is known to have an element is that element. None is set where a
// function is called with an input left out. `blocked`: a faulty node made it, and the fault has been reported.
struct Slot {
  ir::Value* value = nullptr;
  bool blocked = false;
  std::shared_ptr<const Sequence> sequence{};
  bool is_empty_optional = false;
  ir::Value* text = nullptr;                 // strings, as bytes (compose/text.h)
  std::shared_ptr<const TensorList> open{};  // a sequence whose length only running tells
  std::shared_ptr<const MaybeElement> maybe{};

  bool is_defined() const { return value || text || sequence || open || maybe || is_empty_optional; }
  bool is_tensor() const { return value != nullptr; }
};

// An optional of which only running tells whether it has an element.
struct MaybeElement {
  ir::Value* is_there;  // bool[]
  Slot element;         // if it has none, tensors of the same types whose content means nothing
};

inline Slot to_slot(ir::Value* value) {
  Slot slot;
  slot.value = value;
  return slot;
}

inline Slot to_text_slot(ir::Value* rows) {
  Slot slot;
  slot.text = rows;
  return slot;
}

inline Slot to_slot(Sequence sequence) {
  Slot slot;
  slot.sequence = std::make_shared<const Sequence>(std::move(sequence));
  return slot;
}

inline Slot to_slot(TensorList list) {
  Slot slot;
  slot.open = std::make_shared<const TensorList>(list);
  return slot;
}

inline Slot to_slot(MaybeElement maybe) {
  Slot slot;
  slot.maybe = std::make_shared<const MaybeElement>(std::move(maybe));
  return slot;
}

// A tensor of strings or of numbers.
inline Slot to_slot(ir::Value* tensor, bool is_text) { return is_text ? to_text_slot(tensor) : to_slot(tensor); }

}  // namespace lathe::onnx
