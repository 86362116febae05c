// SPDX-License-Identifier: Apache-2.0
#include "onnx/text_moves.h"

#include <algorithm>

#include "compose/count_up.h"
#include "compose/text.h"

namespace lathe::onnx {
namespace {

// In alphabetical order.
constexpr std::string_view kMoves[] = {"ArrayFeatureExtractor",
                                       "CenterCropPad",
                                       "Compress",
                                       "Concat",
                                       "DepthToSpace",
                                       "Expand",
                                       "Flatten",
                                       "Gather",
                                       "GatherElements",
                                       "GatherND",
                                       "OneHot",
                                       "Pad",
                                       "Reshape",
                                       "ReverseSequence",
                                       "Scatter",
                                       "ScatterElements",
                                       "ScatterND",
                                       "Shape",
                                       "Size",
                                       "Slice",
                                       "SpaceToDepth",
                                       "Split",
                                       "Squeeze",
                                       "Tile",
                                       "Transpose",
                                       "Unsqueeze",
                                       "Where"};
static_assert(std::ranges::is_sorted(kMoves));

// Strings of all inputs as rows of one list, of which number 0 is empty: what operators fill in is 0.
class Pool {
 public:
  explicit Pool(NodeContext& c) : c_(c), rows_(c.text_constant({1}, {""})), size_(c.ints({1})) {}

  ir::Value* add(ir::Value* text) {
    const TextPair both = of_one_width(c_, rows_, text);
    ir::Value *dims = c_.shape_of(text, 0, -1), *number = c_.reduce(ReduceOp::prod, dims, {0});
    ir::Value* list = c_.reshape(both.b, c_.concat({number, c_.shape_of(both.b, -1)}, 0), /*allow_zero=*/true);
    rows_ = c_.concat({both.a, list}, 0);
    ir::Value* codes = c_.plus(count_up(c_, number), size_);
    size_ = c_.plus(size_, number);
    return c_.reshape(codes, dims, /*allow_zero=*/true);
  }
  ir::Value* strings(ir::Value* codes) { return c_.gather(rows_, codes, 0); }

 private:
  NodeContext& c_;
  ir::Value *rows_, *size_;
};

}  // namespace

bool moves_elements(std::string_view op) { return std::ranges::binary_search(kMoves, op); }

void import_by_codes(NodeContext& c, const ImporterRow& row) {
  Pool pool(c);
  for (size_t i = 0; i < c.num_inputs(); ++i)
    if (ir::Value* text = c.text(i)) c.set_input(i, pool.add(text));
  row.run(c);
  if (c.op() == "Shape" || c.op() == "Size") return;
  for (size_t i = 0; i < c.num_outputs() && !c.failed(); ++i)
    if (ir::Value* codes = c.outputs()[i].value) c.set_text(i, pool.strings(codes));
}

}  // namespace lathe::onnx
