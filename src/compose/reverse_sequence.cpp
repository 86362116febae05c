// SPDX-License-Identifier: Apache-2.0
#include "compose/reverse_sequence.h"

namespace lathe {

ir::Value* reverse_sequence(ir::GraphBuilder& c, ir::Value* x, ir::Value* lengths, int64_t batch, int64_t sequence) {
  const auto along = [&](ir::Value* vector, int64_t axis) {
    Ints dims(static_cast<size_t>(x->rank()), 1);
    dims[static_cast<size_t>(axis)] = -1;
    return c.reshape(vector, dims);
  };
  ir::Value* extent = c.squeeze(c.shape_of(x, sequence, sequence + 1), {0});
  ir::Value* steps = along(c.add(RangeAttrs{}, {c.integer_scalar(0), extent, c.integer_scalar(1)}), sequence);
  lengths = along(c.cast(lengths, DType::i64), batch);
  ir::Value* mirrored = c.minus(c.minus(lengths, c.integer_scalar(1)), steps);
  ir::Value* source = c.select(c.binary(ElementwiseOp::less, steps, lengths), mirrored, steps);
  GatherElementsAttrs attributes;
  attributes.axis = sequence;
  return c.add(attributes, {x, c.expand(source, c.shape_of(x))});
}

}  // namespace lathe
