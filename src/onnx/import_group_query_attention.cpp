// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of ONNX Runtime's domain: attention over a cache of keys and values, whose rows behind the tokens
// of a sequence are free. New tokens are written behind those of their sequence, whether the cache has room for them,
// as a buffer that past and present share, or grows by them.
#include <algorithm>

#include "base/seen_keys.h"
#include "compose/count_up.h"
#include "onnx/cache_levels.h"
#include "onnx/heads.h"
#include "onnx/importer.h"
#include "onnx/plugin_dims.h"
#include "onnx/prepared_heads.h"
#include "onnx/runtime_attention.h"

namespace lathe::onnx {
namespace {

using Op = ElementwiseOp;

enum Inputs {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,  // of each sequence, less 1
  kTotal,    // of the longest sequence
  kCosines,
  kSines,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};

class GroupQueryAttention {
 public:
  explicit GroupQueryAttention(NodeContext& c) : c_(c), prepared_(c, {kCosines, kSines, kQueryNorm, kKeyNorm}) {}

  void run() {
    read_attributes();
    refuse();
    if (c_.failed()) return;
    read_heads();
    if (c_.failed()) return;
    find_places();
    ir::Value* places = prepared_.turns() && c_.has(kPositions) ? c_.input(kPositions) : places_;
    q_ = prepared_.queries(q_, places), k_ = prepared_.keys(k_, places);
    const DType type = q_->dtype();
    const CacheLevels keys(c_, "k", c_.input(kPastKey), kKeyScale, grouped_.of_keys, type),
        values(c_, "v", c_.input(kPastValue), kValueScale, grouped_.of_keys, type);
    if (c_.failed()) return;
    write(k_, keys, kPastKey, 1);
    write(v_, values, kPastValue, 2);
    ir::Value* mask = mask_of_keys();
    std::vector<ir::Value*> inputs{q_, k_, v_};
    if (mask || has_sink_) inputs.push_back(mask);
    if (has_sink_) inputs.push_back(sinks());
    c_.set_output(0, merge_heads(c_, c_.add(grouped_.attributes, std::move(inputs))));
  }

 private:
  void read_attributes() {
    grouped_ = read_grouped_heads(c_);
    causal_ = c_.flag("causal", true);
    window_ = c_.integer("local_window_size", -1);
    has_sink_ = c_.has(kSink) || c_.integer("smooth_softmax", -1) == 1;
    if (c_.failed()) return;
    if (window_ >= 0 && !causal_) c_.invalid("local_window_size is {}, which needs causal", window_);
  }

  void refuse() {
    if (const int64_t bits = c_.integer("kv_cache_bit_width", 0); bits != 8 && bits != 0)
      c_.unsupported("kv_cache_bit_width {} is not supported; give a cache of 8 bits or of floats", bits);
    if (c_.string("k_quant_type", "NONE") == "NONE" && c_.string("v_quant_type", "NONE") == "NONE")
      c_.ignore({"kv_cache_bit_width"});
    if (c_.flag("sliding_window_cache", false))
      c_.unsupported("sliding_window_cache is not supported; give a cache of all tokens with local_window_size");
    if (c_.integer("qk_output", 0) != 0 || c_.wants(3))
      c_.unsupported("output_qk is not supported; attention keeps no scores");
    for (const auto& [a, b, names] :
         {std::tuple(kKey, kValue, "key and value"), {kPastKey, kPastValue, "past_key and past_value"}})
      if (c_.has(a) != c_.has(b)) c_.invalid("{} are given together or not at all", names);
  }

  // [batch, heads, tokens, size] of inputs that lie next to each other, or in one.
  void read_heads() {
    ir::Value* query = c_.require(kQuery);
    require_rank(c_, kQuery, query, "batch, tokens, size");
    for (const size_t i : {kKey, kValue})
      if (c_.has(i)) require_rank(c_, i, c_.input(i), "batch, tokens, size");
    for (const size_t i : {kPastKey, kPastValue})
      if (c_.has(i)) require_rank(c_, i, c_.input(i), "batch, heads, tokens, size");
    if (c_.failed()) return;
    const auto heads = read_heads_of(c_, {query, c_.input(kKey), c_.input(kValue)}, grouped_);
    if (!heads) return;
    q_ = heads->q, k_ = heads->k, v_ = heads->v;
  }

  // Where the first new token of each sequence is, i64[batch], and which token of its sequence each query is. Where
  // all tokens are new they begin at 0, whatever follows those of shorter sequences.
  void find_places() {
    ir::Value* queries = c_.shape_of(q_, 2, 3);
    lengths_ = c_.plus(c_.cast(c_.require(kLengths), DType::i64), c_.integer_scalar(1));
    lengths_ = c_.require_shape("seqlens_k", lengths_, c_.shape_of(q_, 0, 1), "one for each sequence");
    total_ = c_.reshape(c_.cast(c_.require(kTotal), DType::i64), {1});
    places_ = c_.unsqueeze(count_up(c_, queries), {0});
    if (!c_.has(kPastKey)) return;
    first_ = c_.select(c_.binary(Op::equal, total_, queries), c_.ints({0}), c_.minus(lengths_, queries));
    places_ = c_.plus(places_, c_.unsqueeze(first_, {1}));
  }

  // New rows x become those of the cache up to the longest sequence; the whole cache is an output.
  void write(ir::Value*& x, const CacheLevels& levels, Inputs past, size_t output) {
    if (!c_.has(past)) {
      if (c_.wants(output)) c_.pass_on(output, to_slot(x));
      return;
    }
    ir::Value* cache = c_.input(past);
    ir::Value* missing = c_.binary(Op::max, c_.minus(total_, c_.shape_of(cache, 2, 3)), 0.0);
    ir::Value* pads = c_.concat({c_.ints({0}), missing}, 0);
    cache = c_.add(PadAttrs{}, {cache, pads, c_.scalar_like(0, cache), c_.ints({2})});
    TensorScatterAttrs attributes;
    attributes.axis = 2;
    cache = c_.add(attributes, {cache, levels.levels(x), first_});
    c_.set_output(output, cache);
    x = levels.floats(c_.add(SliceAttrs{}, {cache, c_.ints({0}), total_, c_.ints({2}), c_.ints({1})}));
  }

  // Which keys queries see, as booleans or as what is added to the scores; null where the attention says it.
  ir::Value* mask_of_keys() {
    ir::Value* visible = seen();
    ir::Value* bias = c_.input(kBias);
    if (!bias || !visible) return bias ? bias : visible;
    return c_.select(visible, bias, c_.scalar_like(-HUGE_VAL, bias));
  }

  // [batch or 1, 1, queries, keys]
  ir::Value* seen() {
    const bool is_by_place = causal_ && !c_.has(kPastKey) && window_ != 0;
    grouped_.attributes.causal = is_by_place;
    grouped_.attributes.window = is_by_place ? std::clamp<int64_t>(window_, 0, SeenKeys::kMostWindow) : 0;
    if (is_by_place) return nullptr;
    ir::Value* keys = count_up(c_, c_.shape_of(k_, 2, 3));
    if (!causal_) return c_.binary(Op::less, keys, c_.unsqueeze(lengths_, {1, 2, 3}));
    ir::Value* places = c_.unsqueeze(places_, {1, 3});
    ir::Value* visible = c_.binary(Op::less_equal, keys, places);
    if (window_ < 0) return visible;
    ir::Value* first = c_.minus(places, c_.integer_scalar(window_));
    return c_.binary(Op::logical_and, visible, c_.binary(Op::greater, keys, first));
  }

  // A number of each head, with no value; the softmax plus 1 has one of 0.
  ir::Value* sinks() {
    if (c_.has(kSink)) return c_.reshape(c_.input(kSink), {grouped_.of_queries});
    return c_.filled(0, q_->dtype(), {grouped_.of_queries});
  }

  NodeContext& c_;
  PreparedHeads prepared_;
  GroupedHeads grouped_;
  int64_t window_ = -1;
  bool causal_ = true, has_sink_ = false;
  ir::Value *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
  ir::Value *lengths_ = nullptr, *total_ = nullptr, *first_ = nullptr, *places_ = nullptr;
};

}  // namespace

void import_group_query_attention(NodeContext& c) { GroupQueryAttention(c).run(); }

}  // namespace lathe::onnx
