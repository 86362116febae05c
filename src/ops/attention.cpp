// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/attention_inputs.h"
#include "ops/float8_weights.h"
#include "ops/rules.h"
#include "ops/seen_keys_of.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

using attention_input::kDistances, attention_input::kMask, attention_input::kSinks;

constexpr const char* kNames[] = {"q", "k", "v", "mask", "sinks", "distances"};

// What is beside the scores, of that shape: each has floats, a mask perhaps booleans.
Result<> check_beside(InferContext& context, size_t input, const Shape& scores) {
  if (!context.has(input)) return {};
  if (input != kMask || context.dtype(kMask) != DType::boolean) LATHE_TRY(require_floating(context, input));
  const auto rank = static_cast<int>(input) - 3;  // of sinks and distances
  if (input != kMask) LATHE_TRY(require_rank(context, input, rank, rank));
  const Shape& shape = context.shape(input);
  if (input == kMask ? assume_expands(context, shape, scores)
                     : context.assume(input == kSinks ? Relation::equal : Relation::expand, shape[0], scores[1]) &&
                           (input == kSinks ||
                            context.assume_equal(shape[1], larger(context, scores[2] + scores[3] - Expr(1), 0))))
    return {};
  return fail(ErrorCode::shape_mismatch, "{} (input {}) of shape {} do not fit scores of shape {}", kNames[input],
              input, to_string(shape), to_string(scores));
}

Result<> check_agreement(InferContext& context) {
  const Shape &q = context.shape(0), &k = context.shape(1), &v = context.shape(2);
  const auto differ = [&](size_t input, size_t dim, const Expr& want) {
    return fail(ErrorCode::shape_mismatch, "{} has shape {}, but its dimension {} must be {}", kNames[input],
                to_string(context.shape(input)), dim, want.to_string());
  };
  for (const size_t i : {1, 2})
    if (!context.assume_equal(context.shape(i)[0], q[0])) return differ(i, 0, q[0]);
  if (!context.assume_equal(k[3], q[3])) return differ(1, 3, q[3]);
  for (const size_t dim : {1, 2})
    if (!context.assume_equal(v[dim], k[dim])) return differ(2, dim, k[dim]);
  if (k[1] == Expr(0) ? context.assume_equal(q[1], 0) : context.assume_equal(mod(q[1], k[1]), 0)) return {};
  return fail(ErrorCode::shape_mismatch,
              "q of shape {} has {} heads, which the {} heads of k of shape {} do not divide", to_string(q),
              q[1].to_string(), k[1].to_string(), to_string(k));
}

Result<> check_seen(const AttentionAttrs& attrs) {
  if (attrs.window < 0 || attrs.window > SeenKeys::kMostWindow)
    return fail(ErrorCode::attribute_invalid, "window is {}, expected 0 to {}", attrs.window, SeenKeys::kMostWindow);
  return {};
}

// One query: the weights of the keys, and last of the sink if there is one, from their scores. Taking off the largest
// first keeps exp from overflowing.
void to_weights(std::span<double> scores, size_t keys, const AttentionAttrs& attrs) {
  const bool rounds = attrs.factors == DType::f8e4m3fn;
  double largest = -HUGE_VAL, sum = 0;
  for (const double score : scores)
    if (!(score <= largest)) largest = score;
  if (attrs.mean_for_none && largest == -HUGE_VAL)
    return std::fill(scores.begin(), scores.end(), 1 / static_cast<double>(scores.size()));
  if (rounds) largest = float8_reference(largest * std::numbers::log2e) / std::numbers::log2e;
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = std::exp(scores[i] - largest);
    if (rounds && i < keys) scores[i] = to_float8_weight(scores[i]);
    sum += scores[i];
  }
  const bool is_zero = attrs.zeros_for_nan && std::isnan(sum);
  for (double& score : scores) score = is_zero ? 0 : score / sum;
}

class Evaluation {
 public:
  explicit Evaluation(EvalContext& context)
      : attrs_(context.attrs<AttentionAttrs>()),
        q_(to_doubles(context.input(0))),
        k_(to_doubles(context.input(1))),
        v_(to_doubles(context.input(2))),
        dims_(context.input(0).dims()),
        kv_heads_(context.input(1).dims()[1]),
        keys_(context.input(1).dims()[2]),
        value_size_(context.input(2).dims()[3]) {
    if (context.has(kSinks)) sinks_ = to_doubles(context.input(kSinks));
    if (context.has(kDistances)) {
      distances_ = to_doubles(context.input(kDistances));
      const Dims& dims = context.input(kDistances).dims();
      distance_stride_ = dims[0] == 1 ? 0 : dims[1];
    }
    if (!context.has(kMask)) return;
    mask_ = to_doubles(context.input(kMask));
    hides_ = context.input(kMask).dtype() == DType::boolean;
    mask_strides_ = broadcast_strides(context.input(kMask).dims(), Dims{dims_[0], dims_[1], dims_[2], keys_});
  }

  std::vector<double> run() const {
    std::vector<double> out(static_cast<size_t>(dims_[0] * dims_[1] * dims_[2] * value_size_));
    std::vector<double> scores(static_cast<size_t>(keys_) + (sinks_.empty() ? 0 : 1));
    double* y = out.data();
    for (int64_t b = 0; b < dims_[0]; ++b)
      for (int64_t h = 0; h < dims_[1]; ++h)
        for (int64_t i = 0; i < dims_[2]; ++i, y += value_size_) {
          const int64_t head = b * kv_heads_ + h / (dims_[1] / kv_heads_);
          const KeyRange seen = seen_keys_of(attrs_).of(i, dims_[2], keys_);
          for (int64_t j = 0; j < keys_; ++j)
            scores[j] = j >= seen.first && j < seen.end ? score(b, h, i, j, head) : -HUGE_VAL;
          if (!sinks_.empty()) scores[keys_] = sinks_[h];
          to_weights(scores, static_cast<size_t>(keys_), attrs_);
          for (int64_t j = 0; j < keys_; ++j)
            if (scores[j] != 0)
              for (int64_t c = 0; c < value_size_; ++c) y[c] += scores[j] * v_[(head * keys_ + j) * value_size_ + c];
        }
    return out;
  }

 private:
  double score(int64_t b, int64_t h, int64_t i, int64_t j, int64_t head) const {
    const double* q = q_.data() + ((b * dims_[1] + h) * dims_[2] + i) * dims_[3];
    const double* k = k_.data() + (head * keys_ + j) * dims_[3];
    double product = 0;
    for (int64_t c = 0; c < dims_[3]; ++c) product += q[c] * k[c];
    product *= attrs_.scale;
    if (attrs_.softcap != 0) product = attrs_.softcap * std::tanh(product / attrs_.softcap);
    if (!distances_.empty()) product += distances_[h * distance_stride_ + j - i + dims_[2] - 1];
    if (mask_strides_.empty()) return product;
    const double mask =
        mask_[b * mask_strides_[0] + h * mask_strides_[1] + i * mask_strides_[2] + j * mask_strides_[3]];
    if (hides_) return mask != 0 ? product : attrs_.hidden;
    return product + mask;
  }

  const AttentionAttrs& attrs_;
  std::vector<double> q_, k_, v_, mask_, sinks_, distances_;
  const Dims& dims_;  // of q
  int64_t kv_heads_, keys_, value_size_;
  int64_t distance_stride_ = 0;  // from a head's to the next one's
  bool hides_ = false;
  Dims mask_strides_;  // empty = no mask
};

}  // namespace

Result<> infer_attention(InferContext& context) {
  const auto& attrs = context.attrs<AttentionAttrs>();
  if (attrs.factors != DType::f8e4m3fn) LATHE_TRY(require_rounding(attrs.factors));
  LATHE_TRY(check_seen(attrs));
  for (size_t i = 0; i < 3; ++i) {
    if (context.dtype(i) != DType::f8e4m3fn) LATHE_TRY(require_floating(context, i));
    LATHE_TRY(require_rank(context, i, 4, 4));
    LATHE_TRY(require_same_dtype(context, 0, i));
  }
  LATHE_TRY(check_agreement(context));
  const Shape &q = context.shape(0), &k = context.shape(1), &v = context.shape(2);
  const Shape scores = {q[0], q[1], q[2], k[2]};
  for (const size_t input : {kMask, kSinks, kDistances}) LATHE_TRY(check_beside(context, input, scores));
  const bool hides = context.has(kMask) && context.dtype(kMask) == DType::boolean && attrs.hidden != -HUGE_VAL;
  if ((attrs.mean_for_none && context.has(kSinks)) || (hides && context.has(kDistances)))
    return fail(ErrorCode::type_mismatch, "sinks go without mean_for_none, distances with masks that hide by -inf");
  context.set(0, sum_dtype(context.dtype(0)), {q[0], q[1], q[2], v[3]});
  return {};
}

Result<> eval_attention(EvalContext& context) {
  if (context.output(0).volume() == 0) return {};
  from_doubles(Evaluation(context).run(), context.output(0));
  return {};
}

}  // namespace lathe
