// SPDX-License-Identifier: Apache-2.0
// Attention written out as two products with a softmax between them becomes an op.
#include <algorithm>
#include <utility>

#include "ops/rules.h"
#include "passes/attention_scores.h"
#include "passes/match.h"
#include "passes/reshape_target.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using ir::Value;
using Kind = ScoreChange::Kind;

constexpr int64_t kMaxHeadSize = 256;  // kernels hold rows of queries, keys and values

Shape leading(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }
Shape with_rows(Shape leading, const Shape& shape) {
  leading.insert(leading.end(), shape.end() - 2, shape.end());
  return leading;
}

bool is_one(const Expr& dim) { return dim == Expr(1); }

// Rewrites one attention. Values have leading dimensions before their rows; those of the form of the scores with the
// highest rank, [batch, heads] or [batch, windows, heads], are folded to two.
class Recognition {
 public:
  Recognition(Rewrite& r, AttentionScores scores) : r_(r), scores_(std::move(scores)) {
    const ir::Value* whole = scores_.product->output();
    for (const Value* form : scores_.forms)
      if (form->rank() > whole->rank()) whole = form;
    whole_ = leading(whole->shape());
  }

  Result<bool> run() {
    if (!find_factors()) return cancel();
    attrs_.softcap = scores_.softcap;
    attrs_.zeros_for_nan = scores_.zeros_for_nan;
    std::vector<Value*> inputs;
    for (Value* factor : {q_, k_, v_}) inputs.push_back(as_heads(factor));
    share_heads(inputs);
    if (Value* mask = find_mask()) inputs.push_back(as_heads_of_mask(mask));
    if (std::find(inputs.begin(), inputs.end(), nullptr) != inputs.end() || !reason_.empty()) return cancel();
    Value* y = reshaped(r_.add(attrs_, std::move(inputs)), r_.output()->shape());
    if (y) return r_.finish(y);
    refuse("its leading dimensions are not known");
    return cancel();
  }

  const std::string& reason() const { return reason_; }

 private:
  std::nullptr_t refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return nullptr;
  }

  // Without what was added by now.
  Result<bool> cancel() { return r_.finish(r_.output()); }

  bool deny(std::string reason) {
    refuse(std::move(reason));
    return false;
  }

  // The rows of the left factor or of the transposed right one.
  Value* transposed_if(Value* x, bool is_transposed) {
    if (!is_transposed) return x;
    Ints perm(static_cast<size_t>(x->rank()));
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    const ir::Node* node = made_by(x, OpKind::transpose);
    if (node && permutation_of(node->attrs<TransposeAttrs>(), perm.size()) == perm) return node->input(0);
    return r_.transpose(x, perm);
  }

  bool find_factors() {
    const auto& first = scores_.product->attrs<MatmulAttrs>();
    const auto& second = r_.node->attrs<MatmulAttrs>();
    attrs_.scale = scores_.scale;
    q_ = transposed_if(unscaled(scores_.product->input(0)), first.transpose_a);
    k_ = transposed_if(unscaled(scores_.product->input(1)), !first.transpose_b);
    v_ = transposed_if(r_.input(1), second.transpose_b);
    for (const ScoreChange& change : scores_.changes)
      if (change.kind == Kind::multiply) q_ = multiplied(q_, change);
    if (!q_) return false;
    const DType dtype = r_.output()->dtype();
    for (Value** x : {&q_, &k_, &v_}) {
      const ir::Node* cast = made_by(*x, OpKind::cast);
      if ((*x)->dtype() != dtype && cast && cast->input(0)->dtype() == dtype) *x = cast->input(0);
      if ((*x)->dtype() != dtype || !is_floating(dtype) || dtype == DType::f64)
        return deny(fmt::format("'{}' is {}, and its result {}", (*x)->name(), name_of((*x)->dtype()), name_of(dtype)));
      const std::optional<int64_t> size = (*x)->shape().back().as_constant();
      if (!size || *size < 1 || *size > kMaxHeadSize)
        return deny(fmt::format("rows of '{}' have {} elements; 1 to {} are handled", (*x)->name(),
                                (*x)->shape().back().to_string(), kMaxHeadSize));
    }
    const auto rows = [](const Value* x) { return x->shape()[x->shape().size() - 2]; };
    if (rows(k_) != rows(v_) || rows(q_) != rows(r_.output()))
      return deny("its rows do not fit, as far as they are known");
    if (has_one_head(k_) && has_one_head(v_)) return spread(q_, scores_.product->output());
    return spread(q_, scores_.product->output()) && spread(k_, scores_.product->output()) && spread(v_, r_.input(0));
  }

  // Heads that all queries' heads share stay one.
  bool has_one_head(const Value* x) const {
    return x->rank() == 4 && whole_.size() == 2 && x->shape()[0] == whole_[0] && is_one(x->shape()[1]);
  }

  // x for all leading dimensions of the scores.
  bool spread(Value*& x, const Value* scores) {
    const Shape want = leading(scores->shape());
    if (want == leading(x->shape())) return true;
    Value* repeated = repeated_to(x, want);
    if (!repeated) return deny(fmt::format("'{}' is repeated along dimensions that are not known", x->name()));
    x = repeated;
    return true;
  }

  // x with those leading dimensions; null where numbers that it is repeated by are not known.
  Value* repeated_to(Value* x, const Shape& lead) {
    Ints shape;
    Shape have = leading(x->shape());
    while (have.size() < lead.size()) have.insert(have.begin(), Expr(1));
    for (size_t i = 0; i < lead.size(); ++i) {
      const std::optional<int64_t> number = have[i] == lead[i] ? 1 : lead[i].as_constant();
      if (!number) return nullptr;
      shape.push_back(*number);
    }
    shape.insert(shape.end(), 2, 1);
    return r_.expand(x, r_.ints(shape));
  }

  // x without a factor that all of it has, which scores may have as well.
  Value* unscaled(Value* x) {
    const ir::Node* transpose = made_by(x, OpKind::transpose);
    Value* inner = transpose ? transpose->input(0) : x;
    const std::optional<WithScalar> scaled = inner->has_single_use() ? match_scaled(inner) : std::nullopt;
    if (!scaled || scaled->c == 0 || (transpose && !x->has_single_use())) return x;
    attrs_.scale *= scaled->c;
    return transpose ? r_.add(transpose->attributes(), {scaled->x}) : scaled->x;
  }

  // A value of each head, multiplied into the queries.
  Value* multiplied(Value* q, const ScoreChange& change) {
    if (!q) return nullptr;
    Value* factor = r_.cast(change.value, q->dtype());
    if (change.scores->rank() != q->rank() || factor->rank() > q->rank())
      return refuse("its scores are multiplied in another form");
    Value* product = r_.mul(q, factor);
    return product->shape() == q->shape() ? product
                                          : refuse("its scores are multiplied by values of more heads than it has");
  }

  // A list of that size alone, which x or an input of the network has; null = neither has.
  Value* dim_list(const Expr& size, Value* x) {
    std::vector<Value*> values = r_.graph().inputs();
    values.insert(values.begin(), x);
    for (Value* value : values) {
      const auto same = std::find(value->shape().begin(), value->shape().end(), size) - value->shape().begin();
      if (same < value->rank()) return r_.shape_of(value, same, same + 1);
    }
    return nullptr;
  }

  // x with those dims; null where they are not known.
  Value* reshaped(Value* x, const Shape& to) {
    if (x->shape() == to) return x;
    if (const std::optional<Ints> target = reshape_target(x->shape(), to)) return r_.reshape(x, *target);
    std::vector<Value*> dims;
    bool is_inferred = false;
    for (const Expr& dim : to) {
      if (const auto number = dim.as_constant())
        dims.push_back(r_.ints({*number}));
      else if (Value* size = dim_list(dim, x))
        dims.push_back(size);
      else if (!std::exchange(is_inferred, true))
        dims.push_back(r_.ints({-1}));
      else
        return nullptr;
    }
    return r_.reshape(x, r_.concat(std::move(dims), 0));
  }

  // Two leading dimensions: the first, and the product of the others.
  Shape folded(const Shape& whole) const {
    Shape two = {whole[0], Expr(1)};
    for (size_t i = 1; i < whole.size(); ++i) two[1] = two[1] * whole[i];
    return two;
  }

  Value* as_heads(Value* x) {
    if (x->rank() == 4 && whole_.size() == 2) return x;
    Value* y = reshaped(x, with_rows(folded(whole_), x->shape()));
    return y ? y : refuse(fmt::format("the leading dimensions of '{}' are not known", x->name()));
  }

  // The heads of which x's are copies, side by side; null = none.
  static Value* heads_of_copies(const Value* x) {
    const ir::Node* merged = x->producer();
    if (!merged || !merged->has_trait(kView) || x->rank() != 4) return nullptr;
    const ir::Node* expand = made_by(merged->input(0), OpKind::expand);
    if (!expand || expand->output()->rank() != 5) return nullptr;
    Value* heads = expand->input(0);
    const Shape &five = expand->output()->shape(), &one = heads->shape();
    if (one.size() != 5 || !is_one(one[2]) || one[1] != five[1]) return nullptr;
    const bool is_copy = one[0] == five[0] && one[3] == five[3] && one[4] == five[4] && five[3] == x->shape()[2] &&
                         five[4] == x->shape()[3] && five[0] == x->shape()[0];
    return is_copy ? heads : nullptr;
  }

  // Keys and values whose heads were repeated for the queries' are read as they were before.
  void share_heads(std::vector<Value*>& inputs) {
    if (!reason_.empty() || whole_.size() != 2) return;
    Value *k = heads_of_copies(inputs[1]), *v = heads_of_copies(inputs[2]);
    if (!k || !v || k->shape()[1] != v->shape()[1]) return;
    const auto squeezed = [&](Value* x) {
      const ir::Node* view = x->producer();
      const Shape four = {x->shape()[0], x->shape()[1], x->shape()[3], x->shape()[4]};
      if (view && view->has_trait(kView) && view->input(0)->shape() == four) return view->input(0);
      return r_.squeeze(x, {2});
    };
    inputs[1] = squeezed(k), inputs[2] = squeezed(v);
  }

  // What changes the scores, for scores with all leading dimensions: booleans, or what is added. Null = nothing.
  Value* find_mask() {
    Value* mask = nullptr;
    std::vector<const ScoreChange*> changes;
    for (const ScoreChange& change : scores_.changes)
      if (change.kind != Kind::multiply) changes.push_back(&change);
    for (const ScoreChange* change : changes) {
      Value* value = aligned(change->value, change->scores);
      if (!value) return nullptr;
      if (change->kind == Kind::add) {
        mask = plus(mask, scaled(value, change->factor));
        continue;
      }
      if (changes.size() == 1) {
        attrs_.hidden = change->hidden;
        return change->kind == Kind::hide_where_false ? value : r_.unary(UnaryOp::logical_not, value);
      }
      mask = hiding(mask, value, *change);
      if (!mask) return nullptr;
    }
    return mask;
  }

  Value* scaled(Value* value, double factor) {
    return factor == 1 ? value : r_.binary(ElementwiseOp::mul, value, factor);
  }

  Value* plus(Value* mask, Value* value) {
    if (!mask) return value;
    const DType dtype = size_of(mask->dtype()) >= size_of(value->dtype()) ? mask->dtype() : value->dtype();
    return r_.plus(r_.cast(mask, dtype), r_.cast(value, dtype));
  }

  // Such a low score that what is added to it does not change it.
  Value* hiding(Value* mask, Value* condition, const ScoreChange& change) {
    constexpr double kLow = -1e30;
    if (change.hidden > kLow) return refuse(fmt::format("hidden scores are {} and masks are added", change.hidden));
    const DType dtype = mask && mask->dtype() == DType::bf16 ? DType::bf16 : DType::f32;
    Value* hidden = r_.scalar(change.hidden, dtype);
    Value* others = mask ? r_.cast(mask, dtype) : r_.scalar(0, dtype);
    const bool hides = change.kind == Kind::hide_where_true;
    return hides ? r_.select(condition, hidden, others) : r_.select(condition, others, hidden);
  }

  // A value that broadcasts to one form of the scores, such that it broadcasts to that with all leading dimensions:
  // of a merged first dimension it may have one.
  Value* aligned(Value* value, const Value* scores) {
    const size_t whole = whole_.size() + 2, rank = static_cast<size_t>(scores->rank());
    if (rank == whole || value->rank() <= 2) return value;
    Shape shape = value->shape();
    if (shape.size() == rank && !is_one(shape[0])) {
      if (leading(shape) == leading(scores->shape())) shape = with_rows(whole_, shape);
    } else {
      while (shape.size() > 2 && (shape.size() == rank || is_one(shape[0]))) shape.erase(shape.begin());
      const size_t left = shape.size() - 2;
      const Shape& form = scores->shape();
      if (!std::equal(form.end() - 2 - static_cast<ptrdiff_t>(left), form.end() - 2,
                      whole_.end() - static_cast<ptrdiff_t>(left)))
        return refuse(fmt::format("the mask '{}' is added in another form", value->name()));
    }
    Value* result = reshaped(value, shape);
    return result ? result : refuse(fmt::format("the dimensions of the mask '{}' are not known", value->name()));
  }

  // The mask with two leading dimensions, or with none.
  Value* as_heads_of_mask(Value* mask) {
    if (!mask || whole_.size() == 2 || mask->rank() <= 2) return mask;
    Shape lead = leading(mask->shape());
    while (lead.size() < whole_.size()) lead.insert(lead.begin(), Expr(1));
    if (!std::all_of(lead.begin() + 1, lead.end(), is_one)) {
      std::copy(whole_.begin() + 1, whole_.end(), lead.begin() + 1);
      const std::optional<Dims> others = as_constant(Shape(lead.begin() + 1, lead.end()));
      if (!others)
        return refuse(fmt::format("the mask '{}' is repeated along dimensions that are not known", mask->name()));
      Ints dims = {1};
      dims.insert(dims.end(), others->begin(), others->end());
      dims.insert(dims.end(), 2, 1);
      mask = r_.expand(mask, r_.ints(dims));
    }
    Value* result = reshaped(mask, with_rows(folded(lead), mask->shape()));
    return result ? result : refuse(fmt::format("the dimensions of the mask '{}' are not known", mask->name()));
  }

  Rewrite& r_;
  AttentionScores scores_;
  Shape whole_;  // leading dimensions
  AttentionAttrs attrs_;
  Value *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
  std::string reason_;
};

// What `inspect --why` says of the softmax.
void note(PassContext& context, const AttentionRefusal& refusal) {
  if (!refusal.softmax || refusal.reason.empty()) return;
  context.notes[refusal.softmax->output()->name()] = fmt::format("no attention is made of it: {}", refusal.reason);
}

Result<bool> to_attention(Rewrite& r) {
  if (r.node->attrs<MatmulAttrs>().transpose_a || r.output()->rank() < 3) return false;
  AttentionRefusal refusal;
  std::optional<AttentionScores> scores = attention_scores(r.input(0), refusal);
  if (!scores) {
    note(r.context, refusal);
    return false;
  }
  r.absorb(scores->product);
  r.absorb(scores->softmax);
  refusal.softmax = scores->softmax;
  Recognition recognition(r, *std::move(scores));
  const Result<bool> done = recognition.run();
  refusal.reason = recognition.reason();
  if (done && !*done) note(r.context, refusal);
  return done;
}

}  // namespace

Result<bool> recognize_attention(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"softmax(q k^T * scale + mask) v = attention(q, k, v, mask)", OpKind::matmul, to_attention},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
