// SPDX-License-Identifier: Apache-2.0
#include "passes/window_masks.h"

#include <algorithm>

#include "passes/attention_shapes.h"
#include "passes/hidden_scores.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Value;

// What repeats [1, windows, ...] for each image where the mask is that, [images * windows, ...].
const ir::Node* repetition_of(const Value* mask) {
  const ir::Node* view = mask->producer();
  const ir::Node* expand = view && view->has_trait(kView) ? made_by(view->input(0), OpKind::expand) : nullptr;
  if (!expand) return nullptr;
  const Shape &one = expand->input(0)->shape(), &all = expand->output()->shape();
  if (one.size() != all.size() || one.size() < 4 || !is_one(one[0]) ||
      !std::equal(one.begin() + 1, one.end(), all.begin() + 1))
    return nullptr;
  Shape joined(all.begin() + 1, all.end());
  joined[0] = all[0] * all[1];
  return joined == mask->shape() ? expand : nullptr;
}

}  // namespace

Value* with_repeated_last(Rewrite& r, Value* sum) {
  std::vector<Value*> terms;
  add_terms(sum, ElementwiseOp::add, terms);
  const auto found = std::ranges::find_if(terms, repetition_of);
  if (found == terms.end() || terms.size() == 1) return sum;
  const Value* repeated = *found;
  const ir::Node* expand = repetition_of(repeated);
  terms.erase(found);
  const auto is_of_all = [&](const Value* term) {
    return term->rank() < repeated->rank() || (term->rank() == repeated->rank() && is_one(term->shape()[0]));
  };
  if (!std::ranges::all_of(terms, is_of_all)) return sum;
  Value* one = expand->input(0);
  for (Value* term : terms) one = r.plus(one, term);
  Value* result = reshaped(r, r.expand(one, expand->input(1)), sum->shape());
  return result ? result : sum;
}

}  // namespace lathe
