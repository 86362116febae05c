// SPDX-License-Identifier: Apache-2.0
// PagedAttention of ONNX Runtime's domain: attention of tokens of several sequences, packed end to end, over keys and
// values that lie in blocks of one pool. New keys and values are written there first. Numbers of blocks that a sequence
// has no use for may be anything; reads and writes of a block that does not exist are what gathers and scatters make of
// indices that lie outside: on a CPU the run fails, on a GPU zeros are read and nothing is written.
#include "compose/count_up.h"
#include "compose/paged_cache.h"
#include "onnx/cache_levels.h"
#include "onnx/element_type.h"
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
  kKeyCache,
  kValueCache,
  kStarts,  // of sequences among the tokens, and their end
  kPast,    // how many keys each sequence has already
  kTable,
  kCosines,
  kSines,
  kSlots,
  kSink,
  kQueryNorm,
  kKeyNorm,
  kKeyScale,
  kValueScale,
  kBounds  // of the numbers of queries and of keys of a sequence; 0 = unknown
};

constexpr uint32_t kNoBlock = UINT32_MAX;  // in no pool

class PagedAttention {
 public:
  explicit PagedAttention(NodeContext& c) : c_(c), prepared_(c, {kCosines, kSines, kQueryNorm, kKeyNorm}) {}

  void run() {
    read_attributes();
    refuse();
    if (c_.failed()) return;
    read_heads();
    if (c_.failed()) return;
    read_sequences();
    find_places();
    ir::Value* places = c_.unsqueeze(places_, {0});
    q_ = prepared_.queries(q_, places), k_ = prepared_.keys(k_, places);
    const CacheLevels keys = levels_of("k", kKeyCache, kKeyScale), values = levels_of("v", kValueCache, kValueScale);
    if (c_.failed()) return;
    slots_ = c_.has(kSlots) ? given_slots() : slots_of_tokens();
    ir::Value *key_pool = write(kKeyCache, keys.levels(k_), 1), *value_pool = write(kValueCache, values.levels(v_), 2);
    // As many tokens as sequences are mostly one of each, and a sequence each for attention, whosever they are.
    const bool is_step = c_.dim(c_.input(kQuery), 0) == c_.dim(c_.input(kPast), 0);
    const Rows rows = is_step ? rows_of_tokens() : rows_of_sequences();
    std::vector<ir::Value*> inputs{rows.queries, keys.floats(read_blocks(c_, key_pool, rows.table)),
                                   values.floats(read_blocks(c_, value_pool, rows.table))};
    inputs.push_back(visible_to(rows));
    if (c_.has(kSink)) inputs.push_back(c_.reshape(c_.input(kSink), {grouped_.of_queries}));
    ir::Value* y = merge_heads(c_, c_.add(grouped_.attributes, std::move(inputs)));
    c_.set_output(0, is_step ? c_.squeeze(y, {1}) : packed(y));
  }

 private:
  // What attention sees as its batch.
  struct Rows {
    ir::Value* queries;  // [rows, heads, queries, size]
    ir::Value* table;    // [rows, blocks]
    ir::Value* places;   // of queries: [rows, queries]
    ir::Value* ends;     // of keys: [rows]
  };

  void read_attributes() {
    grouped_ = read_grouped_heads(c_);
    causal_ = c_.flag("is_causal", true);
    window_ = c_.integer("local_window_size", -1);
    if (c_.failed()) return;
    if (window_ < -1 || window_ == 0) c_.invalid("local_window_size is {}, expected a size, or -1 for none", window_);
  }

  void refuse() {
    if (c_.string("kv_cache_layout", "SEPARATE") != "SEPARATE")
      c_.unsupported("kv_cache_layout '{}' is not supported; give a cache of keys and one of values",
                     c_.string("kv_cache_layout", ""));
    if (c_.integer("v_head_size", 0) != 0)
      c_.unsupported("v_head_size is not supported without kv_cache_layout 'LATENT'");
    if (c_.integer("rotary_offset", 0) != 0)
      c_.unsupported("rotary_offset {} is not supported; the first elements of a head turn",
                     c_.integer("rotary_offset", 0));
    if (c_.has(kKey) != c_.has(kValue)) c_.invalid("key and value are given together or not at all");
  }

  // q, k and v: [1, heads, tokens, size].
  void read_heads() {
    c_.require(kQuery);
    for (const size_t i : {kQuery, kKey, kValue})
      if (c_.has(i)) require_rank(c_, i, c_.input(i), "tokens, size");
    for (const size_t i : {kKeyCache, kValueCache}) {
      ir::Value* cache = c_.require(i);
      if (c_.failed()) return;
      require_rank(c_, i, cache, "blocks, block size, heads, size");
    }
    if (c_.failed()) return;
    const auto whole = [&](size_t i) { return c_.has(i) ? c_.unsqueeze(c_.input(i), {0}) : nullptr; };
    const auto heads = read_heads_of(c_, {whole(kQuery), whole(kKey), whole(kValue)}, grouped_);
    if (!heads) return;
    q_ = heads->q, k_ = heads->k, v_ = heads->v;
  }

  // The table has 0 for blocks without keys. It is unsigned, so that numbers below 0 are those of no block.
  void read_sequences() {
    past_ = c_.cast(c_.require(kPast), DType::i64);
    require_rank(c_, kPast, past_, "sequences");
    require_rank(c_, kTable, c_.require(kTable), "sequences, blocks");
    if (c_.failed()) return;
    batch_ = c_.shape_of(past_, 0, 1);
    starts_ = c_.require_shape("cumulative_sequence_length", c_.require(kStarts), c_.plus(batch_, c_.ints({1})),
                               "one more than sequences");
    starts_ = c_.cast(starts_, DType::i64);
    ir::Value* table = c_.require(kTable);
    table = c_.require_shape("block_table", table, c_.concat({batch_, c_.shape_of(table, 1, 2)}, 0),
                             "sequences, and blocks of one");
    block_ = c_.shape_of(c_.input(kKeyCache), 1, 2);
    if (ir::Value* most = bound(1)) {
      ir::Value* last = c_.divide(c_.plus(most, c_.minus(block_, c_.ints({1}))), block_);
      last = c_.select(c_.binary(Op::greater, most, 0.0), last, c_.shape_of(table, 1, 2));
      table = c_.add(SliceAttrs{}, {table, c_.ints({0}), last, c_.ints({1}), c_.ints({1})});
    }
    first_ = c_.slice(starts_, 0, 0, -1), end_ = c_.slice(starts_, 0, 1, INT64_MAX);
    shift_ = c_.minus(past_, first_), lengths_ = c_.plus(shift_, end_);
    blocks_ = c_.shape_of(table, 1, 2);
    ir::Value* used = c_.binary(Op::less, c_.mul(count_up(c_, blocks_), block_), c_.unsqueeze(lengths_, {1}));
    BitcastAttrs numbers;
    numbers.to = DType::u32;
    table_ = c_.add(numbers, {c_.select(used, table, c_.scalar_like(0, table))});
  }

  // An element of the node's bounds, as i64[1]; null = there are none.
  ir::Value* bound(int64_t i) {
    if (!c_.has(kBounds)) return nullptr;
    return c_.slice(c_.cast(c_.input(kBounds), DType::i64), 0, i, i + 1);
  }

  // Of each token the number of its sequence, and where it is there, counted with the past. Tokens behind the last
  // sequence are beyond its end.
  void find_places() {
    tokens_ = count_up(c_, c_.shape_of(c_.input(kQuery), 0, 1));
    ir::Value* begun = c_.binary(Op::less_equal, c_.unsqueeze(first_, {0}), c_.unsqueeze(tokens_, {1}));
    ir::Value* count = c_.squeeze(c_.reduce(ReduceOp::sum, c_.cast(begun, DType::i64), {1}), {1});
    sequences_ = c_.minus(count, c_.integer_scalar(1));
    places_ = c_.plus(tokens_, c_.gather(shift_, sequences_, 0));
  }

  // [tokens, 2]; tokens that have no block, or no sequence, are for a block that does not exist.
  ir::Value* slots_of_tokens() {
    ir::Value* room = c_.binary(Op::min, lengths_, c_.mul(blocks_, block_));
    ir::Value* has_one = c_.binary(Op::less, places_, c_.gather(room, sequences_, 0));
    has_one = c_.binary(Op::logical_and, has_one, c_.binary(Op::greater_equal, sequences_, c_.integer_scalar(0)));
    ir::Value* at = c_.plus(c_.mul(sequences_, blocks_), c_.divide(places_, block_));
    at = c_.binary(Op::min, at, c_.minus(c_.mul(batch_, blocks_), c_.ints({1})));
    ir::Value* number = c_.gather(c_.reshape(table_, {-1}), at, 0);
    number = c_.cast(c_.select(has_one, number, c_.scalar_like(kNoBlock, number)), DType::i64);
    return c_.concat({c_.unsqueeze(number, {1}), c_.unsqueeze(c_.binary(Op::mod, places_, block_), {1})}, 1);
  }

  // [tokens, 2], of numbers that count through all blocks. Tokens whose number is below 0 are not written: each repeats
  // what the first of the others writes, or, where there are none, what is in the pool at the beginning of a block.
  ir::Value* given_slots() {
    if (!is_integer(c_.input(kSlots)->dtype()))
      c_.invalid("slot_mapping is {}, expected integers", name_of(c_.input(kSlots)->dtype()));
    ir::Value *tokens = c_.shape_of(c_.input(kQuery), 0, 1), *numbers = c_.cast(c_.input(kSlots), DType::i64);
    numbers = c_.require_shape("slot_mapping", numbers, tokens, "one for each token");
    ir::Value* is_written = c_.binary(Op::greater_equal, numbers, c_.integer_scalar(0));
    ir::Value* written = c_.concat({c_.select(is_written, tokens_, tokens), tokens}, 0);
    ir::Value* first = c_.reduce(ReduceOp::min, written, {0});
    none_written_ = c_.binary(Op::equal, first, tokens);
    writers_ = c_.select(c_.binary(Op::logical_or, is_written, none_written_), tokens_, first);
    ir::Value* some = c_.concat({c_.reshape(table_, {-1}), c_.filled(0, table_->dtype(), {1})}, 0);
    ir::Value* spare = c_.cast(c_.slice(some, 0, 0, 1), DType::i64);
    numbers = c_.select(none_written_, c_.mul(spare, block_), c_.gather(numbers, writers_, 0));
    return c_.concat(
        {c_.unsqueeze(c_.divide(numbers, block_), {1}), c_.unsqueeze(c_.binary(Op::mod, numbers, block_), {1})}, 1);
  }

  CacheLevels levels_of(const char* side, Inputs cache, Inputs scale) {
    const DType type = c_.input(cache)->dtype();
    const std::string attribute = fmt::format("{}_cache_dtype", side), name = c_.string(attribute, "");
    if (!name.empty() && name != name_of(from_dtype(type)))
      c_.unsupported("{} '{}' is not supported for a cache of {}", attribute, name, name_of(type));
    return {c_, side, c_.input(cache), scale, grouped_.of_keys, q_->dtype()};
  }

  ir::Value* write(Inputs cache, ir::Value* heads, size_t output) {
    ir::Value *pool = c_.input(cache), *rows = c_.squeeze(c_.transpose(heads, {0, 2, 1, 3}), {0});
    if (writers_) {
      ir::Value* there = c_.add(GatherNdAttrs{}, {pool, slots_});  // of no tokens nothing, also from no block
      rows = c_.select(c_.unsqueeze(none_written_, {1, 2}), there, c_.gather(rows, writers_, 0));
    }
    ir::Value* written = write_to_blocks(c_, pool, rows, slots_);
    c_.set_output(output, written);
    return written;
  }

  Rows rows_of_tokens() {
    return {c_.transpose(q_, {2, 1, 0, 3}), c_.gather(table_, sequences_, 0), c_.unsqueeze(places_, {1}),
            c_.gather(lengths_, sequences_, 0)};
  }

  // As many queries for each sequence as one may have. Those that stand for none see the first key.
  Rows rows_of_sequences() {
    ir::Value* all = c_.shape_of(c_.input(kQuery), 0, 1);
    queries_ = all;
    if (ir::Value* most = bound(0))
      queries_ = c_.select(c_.binary(Op::greater, most, 0.0), c_.binary(Op::min, most, all), all);
    ir::Value *places = c_.unsqueeze(count_up(c_, queries_), {0}), *none = c_.integer_scalar(0);
    ir::Value* is_one = c_.binary(Op::less, places, c_.unsqueeze(c_.minus(end_, first_), {1}));
    ir::Value* at = c_.select(is_one, c_.plus(c_.unsqueeze(first_, {1}), places), none);
    ir::Value* taken = c_.gather(c_.squeeze(c_.transpose(q_, {0, 2, 1, 3}), {0}), at, 0);
    places = c_.select(is_one, c_.plus(c_.unsqueeze(past_, {1}), places), none);
    return {c_.transpose(taken, {0, 2, 1, 3}), table_, places, lengths_};
  }

  // [rows, 1, queries, keys]
  ir::Value* visible_to(const Rows& rows) {
    ir::Value *keys = count_up(c_, c_.mul(blocks_, block_)), *places = c_.unsqueeze(rows.places, {1, 3});
    ir::Value* visible = causal_ ? c_.binary(Op::less_equal, keys, places)
                                 : c_.binary(Op::less, keys, c_.unsqueeze(rows.ends, {1, 2, 3}));
    if (window_ < 0) return visible;
    ir::Value* first = c_.minus(places, c_.integer_scalar(window_));
    return c_.binary(Op::logical_and, visible, c_.binary(Op::greater, keys, first));
  }

  // Of y[sequences, queries, size] the rows of tokens.
  ir::Value* packed(ir::Value* y) {
    ir::Value* place = c_.minus(tokens_, c_.gather(first_, sequences_, 0));
    ir::Value* at = c_.plus(c_.mul(sequences_, queries_), place);
    at = c_.binary(Op::min, at, c_.minus(c_.mul(batch_, queries_), c_.ints({1})));
    return c_.gather(c_.reshape(y, c_.concat({c_.ints({-1}), c_.shape_of(y, 2)}, 0)), at, 0);
  }

  NodeContext& c_;
  PreparedHeads prepared_;
  GroupedHeads grouped_;
  int64_t window_ = -1;
  bool causal_ = true;
  ir::Value *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
  // Of sequences: their number, their first tokens and the ends, how many keys were there and are there then, and how
  // far places are behind tokens.
  ir::Value *batch_ = nullptr, *starts_ = nullptr, *first_ = nullptr, *end_ = nullptr, *past_ = nullptr,
            *lengths_ = nullptr, *shift_ = nullptr;
  ir::Value *table_ = nullptr, *block_ = nullptr, *blocks_ = nullptr;
  ir::Value *tokens_ = nullptr, *sequences_ = nullptr, *places_ = nullptr;  // of tokens: their numbers, and others
  ir::Value* slots_ = nullptr;
  // With given slots: whether no token is written, and whose row each token writes; else null.
  ir::Value *none_written_ = nullptr, *writers_ = nullptr;
  ir::Value* queries_ = nullptr;  // of a sequence, at most
};

}  // namespace

void import_paged_attention(NodeContext& c) { PagedAttention(c).run(); }

}  // namespace lathe::onnx
