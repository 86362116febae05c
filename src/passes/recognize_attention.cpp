// SPDX-License-Identifier: Apache-2.0
// Attention written out as two matmuls with a softmax between them becomes an op.
#include <algorithm>

#include "ops/rules.h"
#include "passes/attention_mask.h"
#include "passes/attention_shapes.h"
#include "passes/lost_attention.h"
#include "passes/match.h"
#include "passes/pins.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

using ir::Value;
using Kind = ScoreChange::Kind;

constexpr int64_t kMaxHeadSize = 256;  // kernels hold rows of queries, keys and values

Shape without(Shape shape, size_t dim) {
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  return shape;
}

// The heads of which groups of x's are copies (repeat_kv); null = x has none.
Value* heads_of_copies(Rewrite& r, Value* x) {
  Ints perm = {0, 1, 2, 3};
  const ir::Node* merged = x->producer();
  for (; merged && merged->is(OpKind::transpose); merged = merged->input(0)->producer()) {
    const Ints inner = permutation_of(merged->attrs<TransposeAttrs>(), perm.size());
    for (int64_t& axis : perm) axis = inner[static_cast<size_t>(axis)];
  }
  if (!merged || !merged->has_trait(kView) || x->rank() != 4) return nullptr;
  const ir::Node* expand = made_by(merged->input(0), OpKind::expand);
  const auto head = static_cast<size_t>(perm[1]);
  if (!expand || expand->output()->rank() != 5) return nullptr;
  Value* heads = expand->input(0);
  // A copy of each stands behind it.
  Shape copies = merged->output()->shape(), one = copies;
  const Shape& five = expand->output()->shape();
  one[head] = copies[head] = five[head];
  copies.insert(copies.begin() + perm[1] + 1, five[head + 1]);
  if (five != copies || heads->rank() != 5 || !is_one(heads->shape()[head + 1]) ||
      without(heads->shape(), head + 1) != one)
    return nullptr;
  const ir::Node* view = heads->producer();
  heads = view && view->has_trait(kView) && view->input(0)->shape() == one ? view->input(0)
                                                                           : r.squeeze(heads, {perm[1] + 1});
  return perm == Ints{0, 1, 2, 3} ? heads : r.transpose(heads, perm);
}

// The same of what was dequantised behind that.
Value* numbers_of_copies(Rewrite& r, Value* x) {
  const std::optional<Dequantized> numbers = dequantized(x);
  if (!numbers || !numbers->is_uniform()) return heads_of_copies(r, x);
  Value* levels = heads_of_copies(r, numbers->integers);
  return levels ? r.add(numbers->node->attributes(), {levels, numbers->node->input(1)}) : nullptr;
}

// Keys and values whose heads were repeated for the queries' are read as they were before.
bool share_heads(Rewrite& r, std::vector<Value*>& inputs) {
  Value *k = numbers_of_copies(r, inputs[1]), *v = numbers_of_copies(r, inputs[2]);
  if (!k || !v || k->shape()[1] != v->shape()[1]) return false;
  inputs[1] = k, inputs[2] = v;
  return true;
}

// The leading dimensions in the form of the highest rank, among forms as large as `like`.
Shape widest_lead(const std::vector<const Value*>& forms, const Value* like) {
  const Value* widest = like;
  for (const Value* form : forms)
    if (form->rank() > widest->rank() && volume(leading(form->shape())) == volume(leading(like->shape())))
      widest = form;
  return leading(widest->shape());
}

// Rewrites one attention. Operands are normalised to [batch, heads, rows, size]: the leading dimensions of the scores
// in their form of the highest rank, [batch, heads] or [batch, windows, heads], are folded to two. A mask may have more
// batches than queries, keys and values.
class Recognition {
 public:
  Recognition(Rewrite& r, AttentionScores scores)
      : r_(r),
        scores_(std::move(scores)),
        product_lead_(widest_lead(scores_.forms, scores_.product->output())),
        lead_(widest_lead(scores_.forms, scores_.softmax->output())) {}

  Result<bool> run() {
    if (!find_operands()) return cancel();
    attrs_.softcap = scores_.softcap;
    attrs_.zeros_for_nan = scores_.zeros_for_nan;
    std::vector<Value*> inputs;
    for (Value* operand : {q_, k_, v_}) inputs.push_back(as_heads(operand));
    if (reason_.empty()) share_heads(r_, inputs);
    if (reason_.empty()) spread_batches(inputs);
    if (!reason_.empty()) return cancel();
    AttentionMask masks(r_, lead_, q_, k_);
    Value* mask = masks.build(scores_, attrs_);
    reason_ = masks.reason();
    inputs.insert(inputs.end(), {mask, scores_.sinks ? sinks_of_heads() : nullptr, masks.distances()});
    while (!inputs.back()) inputs.pop_back();
    if (!reason_.empty()) return cancel();
    Value* y = reshaped(r_, r_.add(attrs_, std::move(inputs)), r_.output()->shape());
    if (!y) {
      refuse("its leading dimensions are not known");
      return cancel();
    }
    note(masks.note());
    return r_.finish(r_.cast(factor_ == 1 ? y : r_.scaled(y, factor_), r_.output()->dtype()));
  }

  const std::string& reason() const { return reason_; }

 private:
  std::nullptr_t refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return nullptr;
  }

  // Discards the nodes added so far.
  Result<bool> cancel() { return r_.finish(r_.output()); }

  bool deny(std::string reason) {
    refuse(std::move(reason));
    return false;
  }

  Value* transposed_if(Value* x, bool is_transposed) {
    if (!is_transposed) return x;
    const Ints perm = swap_of_last_two(x->rank());
    const ir::Node* node = made_by(x, OpKind::transpose);
    if (node && permutation_of(node->attrs<TransposeAttrs>(), perm.size()) == perm) return node->input(0);
    return r_.transpose(x, perm);
  }

  // Queries, keys and values in rows.
  bool find_operands() {
    const auto& first = scores_.product->attrs<MatmulAttrs>();
    const auto& second = r_.node->attrs<MatmulAttrs>();
    if (pinned_precision(*scores_.product, r_.context) != pinned_precision(*r_.node, r_.context))
      return deny("the types that its two matmuls are to compute in differ");
    attrs_.scale = scores_.scale;
    if (first.factors == second.factors) attrs_.factors = first.factors;
    if (scores_.rounds_to_float8) attrs_.factors = DType::f8e4m3fn;
    factor_ = scores_.factor;
    q_ = transposed_if(unscaled(scores_.product->input(0)), first.transpose_a);
    k_ = transposed_if(unscaled(scores_.product->input(1)), !first.transpose_b);
    v_ = transposed_if(r_.input(1), second.transpose_b);
    for (const ScoreChange& change : scores_.changes)
      if (change.kind == Kind::multiply) q_ = multiplied(q_, change);
    if (!q_) return false;
    const DType dtype = r_.output()->dtype();
    const bool are_float8 = multiplies_float8();
    for (Value** x : {&q_, &k_, &v_}) {
      if (!are_float8) *x = as_floats(*x, dtype);
      if ((!are_float8 && (*x)->dtype() != dtype) || !is_floating(dtype) || dtype == DType::f64)
        return deny(fmt::format("'{}' is {}, and its result {}", (*x)->name(), name_of((*x)->dtype()), name_of(dtype)));
      const std::optional<int64_t> size = (*x)->shape().back().as_constant();
      if (!size || *size < 1 || *size > kMaxHeadSize)
        return deny(fmt::format("rows of '{}' have {} elements; 1 to {} are handled", (*x)->name(),
                                (*x)->shape().back().to_string(), kMaxHeadSize));
    }
    if (!may_be_equal(rows_of(k_), rows_of(v_)) || rows_of(q_) != rows_of(r_.output()))
      return deny("its rows do not fit, as far as they are known");
    const Value* scores = scores_.product->output();
    if (has_one_head(k_) && has_one_head(v_)) return broadcast_lead(q_, scores);
    return broadcast_lead(q_, scores) && broadcast_lead(k_, scores) && broadcast_lead(v_, r_.input(0));
  }

  // What is rounded to 8-bit floats and one factor of it: levels themselves, or what is dequantised of them, and
  // perhaps transposed.
  struct Float8 {
    Value* levels = nullptr;
    double scale = 1;
  };
  Float8 float8_of(Value* x) {
    if (x->dtype() == DType::f8e4m3fn) return {x, 1};
    if (const ir::Node* cast = made_by(x, OpKind::cast)) x = cast->input(0);
    const ir::Node* transpose = made_by(x, OpKind::transpose);
    const std::optional<Dequantized> numbers = dequantized(transpose ? transpose->input(0) : x);
    if (!numbers || !numbers->is_uniform() || numbers->integers->dtype() != DType::f8e4m3fn) return {};
    Value* levels = numbers->integers;
    return {transpose ? moved(levels, *transpose) : levels, numbers->scale->at_double(0)};
  }

  // Levels in another order: what they are made of is moved, where nothing else reads them, so that the kernel that
  // makes it writes levels there.
  Value* moved(Value* levels, const ir::Node& transpose) {
    const ir::Node* quantize = made_by(levels, OpKind::quantize);
    if (!quantize || !levels->has_single_use() || quantize->input(1)->rank() > 0 || quantize->input(2))
      return r_.add(transpose.attributes(), {levels});
    Value* numbers = r_.add(transpose.attributes(), {quantize->input(0)});
    return r_.add(quantize->attributes(), {numbers, quantize->input(1)});
  }

  // Whether kernels multiply 8-bit floats: queries, keys, values and their weights all are such. Their scales are taken
  // out then.
  bool multiplies_float8() {
    const Float8 q = float8_of(q_), k = float8_of(k_), v = float8_of(v_);
    if (!q.levels && !k.levels && !v.levels && !scores_.rounds_to_float8) return false;
    const auto is_multiplied = [](const ScoreChange& change) { return change.kind == Kind::multiply; };
    if (!r_.context.arithmetic.float8_products)
      floats_for_ = "the target multiplies no 8-bit floats";
    else if (!scores_.rounds_to_float8)
      floats_for_ = "its probabilities are not rounded to 8-bit floats";
    else if (!q.levels || !k.levels || !v.levels)
      floats_for_ = "its queries, keys and values are not all f8e4m3fn of one scale";
    else if (std::ranges::any_of(scores_.changes, is_multiplied))
      floats_for_ = "its scores are multiplied by a value of each head";
    if (!floats_for_.empty()) return false;
    q_ = q.levels, k_ = k.levels, v_ = v.levels;
    attrs_.scale *= q.scale * k.scale;
    factor_ *= v.scale;
    return true;
  }

  // For `inspect`: why an attention of 8-bit floats computes with others, and why its mask is read whole.
  void note(const std::string& whole_mask) const {
    std::string lines = floats_for_.empty() ? "" : "multiplies floats: " + floats_for_;
    if (!whole_mask.empty())
      lines += (lines.empty() ? "" : "\n") + ("its mask is read for each query and key: " + whole_mask);
    if (lines.empty())
      r_.context.notes.erase(r_.output()->name());
    else
      r_.context.notes[r_.output()->name()] = lines;
  }

  // What other passes have made levels of is dequantised again.
  Value* as_floats(Value* x, DType dtype) {
    const ir::Node* cast = made_by(x, OpKind::cast);
    if (x->dtype() != dtype && cast && cast->input(0)->dtype() == dtype) return cast->input(0);
    if (!is_factor_float8(x->dtype())) return x;
    DequantizeAttrs numbers;
    numbers.to = dtype;
    return r_.add(numbers, {x, r_.constant(Tensor::of<float>({}, {1.0f}))});
  }

  // Lengths may be equal that look different: products take as many values as scores have keys, unless that is one key.
  bool may_be_equal(const Expr& keys, const Expr& values) const {
    const Range difference = (keys - values).range(r_.graph().symbol_ranges());
    return keys == values || (!is_one(keys) && difference.min <= 0 && difference.max >= 0);
  }

  // Heads that all queries' heads share stay one.
  bool has_one_head(const Value* x) const {
    return x->rank() == 4 && lead_.size() == 2 && x->shape()[0] == product_lead_[0] && is_one(x->shape()[1]);
  }

  // x for all leading dimensions of the scores, or for those that they had before a mask of more batches.
  bool broadcast_lead(Value*& x, const Value* scores) {
    if (leading(x->shape()) == product_lead_) return true;
    Value* repeated = repeated_to(r_, x, leading(scores->shape()), {q_, k_, v_});
    if (!repeated) return deny(fmt::format("'{}' is repeated along dimensions that are not known", x->name()));
    x = repeated;
    return true;
  }

  // Moves a scalar multiplier of q or k into attrs_.scale.
  Value* unscaled(Value* x) {
    const ir::Node* transpose = made_by(x, OpKind::transpose);
    Value* inner = transpose ? transpose->input(0) : x;
    const std::optional<WithScalar> scaled = inner->has_single_use() ? match_scaled(inner) : std::nullopt;
    if (!scaled || scaled->c == 0 || (transpose && !x->has_single_use())) return x;
    attrs_.scale *= scaled->c;
    return transpose ? r_.add(transpose->attributes(), {scaled->x}) : scaled->x;
  }

  // A multiplier of each head goes to the queries.
  Value* multiplied(Value* q, const ScoreChange& change) {
    if (!q) return nullptr;
    if (leading(change.scores->shape()) != leading(scores_.product->output()->shape()))
      return refuse("its scores are multiplied in another form");
    Value* product = r_.mul(q, r_.cast(change.value, q->dtype()));
    return product->shape() == q->shape() ? product
                                          : refuse("its scores are multiplied by values of more heads than it has");
  }

  Value* as_heads(Value* x) {
    if (x->rank() == 4 && lead_.size() == 2) return x;
    Value* y = reshaped(r_, x, with_rows(folded(product_lead_), x->shape()));
    return y ? y : refuse(fmt::format("the leading dimensions of '{}' are not known", x->name()));
  }

  // One of each head, which was repeated for all queries.
  Value* sinks_of_heads() {
    Value* sinks = scores_.sinks;
    while (const ir::Node* expand = made_by(sinks, OpKind::expand)) sinks = expand->input(0);
    const Expr& heads = lead_.back();
    const Shape& shape = sinks->shape();
    if (lead_.size() == 2 && shape.size() >= 3 && shape[shape.size() - 3] == heads && volume(shape) == heads)
      return r_.reshape(sinks, {-1});
    if (lead_.size() == 2 && shape.size() == 4 && shape[1] == heads && sinks->constant() &&
        sinks->constant()->volume() > 0 && is_repeated(*sinks->constant(), 0) && is_repeated(*sinks->constant(), 2))
      return r_.reshape(r_.slice(r_.slice(sinks, 0, 0, 1), 2, 0, 1), {-1});
    return refuse("its sinks are not one number of each head");
  }

  // To the batches of the mask.
  void spread_batches(std::vector<Value*>& inputs) {
    std::vector<Value*> masks;
    for (const ScoreChange& change : scores_.changes) masks.push_back(change.value);
    for (Value*& input : inputs) {
      Value* result = repeated_to(r_, input, {lead_[0], input->shape()[1]}, masks);
      if (!result) return void(refuse(fmt::format("'{}' has other batches than its mask", input->name())));
      input = result;
    }
  }

  Rewrite& r_;
  AttentionScores scores_;
  Shape product_lead_;  // of products
  Shape lead_;          // of scores
  AttentionAttrs attrs_;
  double factor_ = 1;       // of the op's result
  std::string floats_for_;  // why 8-bit floats are not multiplied as such; empty = they are, or there are none
  Value *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
  std::string reason_;
};

// Where copies come to light after the attention has been recognised.
Result<bool> to_shared_heads(Rewrite& r) {
  std::vector<Value*> inputs = r.node->inputs();
  return share_heads(r, inputs) ? r.finish(r.add(r.node->attributes(), std::move(inputs))) : false;
}

// What `inspect` says of the softmax.
void note(PassContext& context, const AttentionRefusal& refusal) {
  if (!refusal.softmax || refusal.reason.empty()) return;
  context.notes[refusal.softmax->output()->name()] = std::string(kNoAttention) + refusal.reason;
}

Result<bool> to_attention(Rewrite& r) {
  if (r.node->attrs<MatmulAttrs>().transpose_a || r.output()->rank() < 3 || r.input(1)->rank() < 2) return false;
  AttentionRefusal refusal;
  std::optional<AttentionScores> scores = attention_scores(r.input(0), refusal);
  if (!scores) {
    note(r.context, refusal);
    return false;
  }
  r.absorb(scores->product);
  // Softmax is always f32 in attention kernels, so an f32 pin on it is met anyway and must not widen the matmuls.
  if (pinned_precision(*scores->softmax, r.context) != DType::f32) r.absorb(scores->softmax);
  refusal.softmax = scores->softmax;
  Recognition recognition(r, *std::move(scores));
  Result<bool> done = recognition.run();
  refusal.reason = recognition.reason();
  if (done && !*done) note(r.context, refusal);
  return done;
}

}  // namespace

Result<bool> recognize_attention(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"softmax(q k^T * scale + mask) v = attention(q, k, v, mask, sinks)", OpKind::matmul, to_attention},
      {"attention(q, copies of k, copies of v) = attention(q, k, v)", OpKind::attention, to_shared_heads},
  };
  forget_lost_attentions(graph, context);
  Result<bool> changed = apply_rules(graph, context, rules);
  note_lost_attentions(graph, context);
  return changed;
}

}  // namespace lathe
