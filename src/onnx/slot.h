// SPDX-License-Identifier: Apache-2.0
// What a name of a model stands for while it is imported.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace lathe::onnx {

// A sequence whose length is known. Graphs have tensors only: what operators do with sequences is done while importing.
struct Sequence {
  std::vector<ir::Value*> elements;
  std::optional<DType> dtype;  // of the elements; nothing where an empty sequence's is not told
};

// A tensor of numbers or of strings, a sequence, or an optional without an element; an optional that has one is this
// element. None of them where a function is called with an input left out. A blocked value comes from a faulty node.
struct Slot {
  ir::Value* value = nullptr;
  bool blocked = false;
  std::shared_ptr<const Sequence> sequence{};
  bool is_empty_optional = false;
  ir::Value* text = nullptr;  // strings, as bytes (compose/text.h)

  bool is_defined() const { return value || text || sequence || is_empty_optional; }
  bool is_tensor() const { return value != nullptr; }
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

}  // namespace lathe::onnx
