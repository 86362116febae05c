// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/cpu/attention/attention_tensors.h"
#include "kernels/cpu/attention/keys_of_rows.h"
#include "kernels/cpu/gemm/driver.h"
#include "kernels/cpu/gemm/pairs.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu {
namespace {

using namespace attention;
using gemm::Panels;

float* floats_at(std::byte* scratch, size_t offset) { return reinterpret_cast<float*>(scratch + offset); }

class Worker {
 public:
  Worker(const Launch& launch, const AttentionParams& params, const BoundEpilogue& epilogue, const Sizes& sizes,
         const AttentionScratch& layout, std::byte* scratch)
      : inputs_(launch.inputs),
        operands_(launch.inputs.subspan(own_inputs(params))),
        out_(launch.outputs[0]),
        params_(params),
        epilogue_(epilogue),
        sizes_(sizes),
        matrices_(sizes.splits ? gemm::usable_split_functions()->leave : sizes.tiles().leave),
        tiles_(sizes.tiles(), matrices_.code()),
        split_keys_(sizes.by_key, floats_at(scratch, layout.query_terms), floats_at(scratch, layout.key_terms),
                    matrices_.code()),
        split_values_(sizes.values, floats_at(scratch, layout.weight_terms), floats_at(scratch, layout.value_terms),
                      matrices_.code()),
        keys_(floats_at(scratch, layout.keys)),
        values_(floats_at(scratch, layout.values)),
        scores_(floats_at(scratch, layout.scores)),
        sums_(floats_at(scratch, layout.sums)),
        queries_(floats_at(scratch, layout.queries)),
        mask_(scratch + layout.mask),
        q_rows_(reinterpret_cast<const float**>(scratch + layout.q_rows)),
        places_(reinterpret_cast<Place*>(scratch + layout.places)),
        keys_of_rows_(params, sizes, params.masked ? &launch.inputs[kMask] : nullptr,
                      reinterpret_cast<RowKeys*>(scratch + layout.keys_of_queries)) {}

  // Runs units from that one on, as many as are done together; gives the first that is not done.
  int64_t run(int64_t unit, int64_t end) {
    const int64_t group = unit / sizes_.blocks();
    if (std::exchange(group_, group) != group) {
      packed_ = {};
      pack_values();
    }
    unit = take_rows(unit, std::min(end, (group + 1) * sizes_.blocks()));
    pack_keys();
    for (int64_t r = 0; r < count_; ++r) q_rows_[r] = query_of(r);
    multiply_by_keys();
    for_each_tile(static_cast<int>(std::min<int64_t>(sizes_.values.n, kWidth)),
                  [&](int64_t begin, int rows) { add_values(begin, rows); });
    return unit;
  }

 private:
  // Calls f(first, rows) for the block's rows, cut evenly into tiles for panels of so many columns, or in twos of
  // groups of equal height.
  template <class F>
  void for_each_tile(int columns, F&& f) const {
    const bool splits = sizes_.splits;
    const int64_t most = splits ? 2 * height() : tiles_.most_rows(columns), count = ceil_div(count_, most);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t begin = splits ? i * most : count_ * i / count;
      const int64_t end = splits ? std::min(begin + most, count_) : count_ * (i + 1) / count;
      f(begin, static_cast<int>(end - begin));
    }
  }

  // Of groups of rows that are split.
  int height() const {
    return static_cast<int>(ceil_div(count_, ceil_div<int64_t>(count_, gemm::kMatrixRegisterRows)));
  }

  // The rows of as many units as have room for the scores of all keys that one of them sees.
  int64_t take_rows(int64_t unit, int64_t end) {
    first_ = unit % sizes_.blocks() * sizes_.block;
    for (count_ = 0; unit < end; ++unit) {
      const int64_t rows = std::min(sizes_.block, sizes_.rows - first_ - count_);
      if (count_ > 0 && count_ + rows > kMostRows) break;
      find_places(count_, rows);
      const KeyRange seen = seen_by(0, count_ + rows);
      const int64_t whole = std::min(round_up<int64_t>(seen.end, kWidth), sizes_.keys);  // panels are multiplied whole
      const int64_t pitch = pitch_of(whole - seen.first, sizes_.bf16, sizes_.has_window);
      if (count_ > 0 && (count_ + rows) * pitch > sizes_.block * sizes_.pitch) break;
      count_ += rows, seen_ = seen, pitch_ = pitch;
    }
    return unit;
  }

  void find_places(int64_t begin, int64_t rows) {
    const int64_t head = group_ % sizes_.shared * (sizes_.heads / sizes_.shared), first = first_ + begin;
    const int64_t batch = group_ / sizes_.shared;
    int64_t of_head = head + first / sizes_.queries, query = first % sizes_.queries;
    for (int64_t r = begin; r < begin + rows; ++r) {
      Place& place = places_[r];
      place.batch = batch, place.head = of_head, place.query = query;
      keys_of_rows_.find_at(place);
      if (++query == sizes_.queries) ++of_head, query = 0;
    }
  }

  // Of the row with the score of a key.
  float* score(int64_t row, int64_t key) const { return scores_ + row * pitch_ + key - seen_.first; }

  // All that these rows see, from the first one's panel on.
  KeyRange seen_by(int64_t begin, int64_t rows) const {
    if (!params_.masked && params_.seen().is_all()) return {0, sizes_.keys};
    KeyRange seen = places_[begin].keys;
    for (int64_t r = begin + 1; r < begin + rows; ++r) {
      seen.first = std::min(seen.first, places_[r].keys.first);
      seen.end = std::max(seen.end, places_[r].keys.end);
    }
    seen.first -= seen.first % kWidth;
    return seen;
  }

  // The first element of the group's keys or values.
  const float* group_of(int input) const {
    const TensorArg& tensor = inputs_[input];
    return tensor.as<float>() + group_ / sizes_.shared * tensor.strides[0] + group_ % sizes_.shared * tensor.strides[1];
  }

  void pack_panels(const Panels& panels, int64_t k, int input, int64_t k_stride, int64_t n_stride, int64_t first,
                   int64_t last, float* to) const {
    if (sizes_.bf16)
      gemm::pack_pairs(panels, k, group_of(input), k_stride, n_stride, first, last, to);
    else
      gemm::pack(panels, group_of(input), k_stride, n_stride, first, last, to);
  }

  void pack_values() {
    const TensorArg& v = inputs_[kV];
    if (!sizes_.packs_values) {
      plain_values_ = group_of(kV);
      return;
    }
    const Panels& values = sizes_.values;
    pack_panels(values, sizes_.keys, kV, v.strides[2], v.strides[3], 0, values.count(), values_);
    for (int64_t p = 0, first = sizes_.steps(sizes_.keys); p < values.count(); ++p)
      std::fill(values_ + values.offset(p) + first * values.stride(p),
                values_ + values.offset(p) + values.k * values.stride(p), 0.0f);
    if (sizes_.splits) split_values_.split_panels(values_, 0, values.count());
  }

  // Those panels of keys that the block sees, and those between them and what is packed.
  void pack_keys() {
    if (seen_.count() == 0) return;
    const TensorArg& k = inputs_[kK];
    const auto pack = [&](int64_t first, int64_t last) {
      if (first >= last) return;
      pack_panels(sizes_.by_key, sizes_.depth, kK, k.strides[3], k.strides[2], first, last, keys_);
      if (sizes_.splits) split_keys_.split_panels(keys_, first, last);
    };
    const KeyRange panels{seen_.first / kWidth, ceil_div<int64_t>(seen_.end, kWidth)};
    if (packed_.count() == 0) packed_ = {panels.first, panels.first};
    pack(panels.first, packed_.first);
    pack(packed_.end, panels.end);
    packed_ = {std::min(packed_.first, panels.first), std::max(packed_.end, panels.end)};
  }

  const float* query_of(int64_t row) {
    static const auto pair = LATHE_ISA_SELECT(pair_neighbours);
    const TensorArg& q = inputs_[kQ];
    const float* from = q.as<float>() + offset_in(q, places_[row]);
    float* to = queries_ + row * sizes_.depth;
    if (sizes_.copies_q) {
      for (int64_t c = 0; c < sizes_.depth; ++c) to[c] = from[c * q.strides[3]];
      from = to;
    }
    if (!sizes_.bf16) return from;
    pair(from, sizes_.depth, to, true);
    return to;
  }

  void multiply_by_keys() {
    const Panels& panels = sizes_.by_key;
    if (sizes_.splits) split_keys_.split_rows(q_rows_, count_, height(), 0, sizes_.depth);
    for (int64_t p = 0; p < panels.count(); ++p)
      for_each_tile(panels.columns(p), [&](int64_t begin, int rows) {
        const KeyRange seen = seen_by(begin, rows);
        if (p * kWidth >= seen.end || (p + 1) * kWidth <= seen.first) return;
        float* to = score(begin, p * kWidth);
        if (sizes_.splits)
          split_keys_.multiply(begin / height(), rows > height(), p, 0, false, to, pitch_);
        else
          multiply_by_panel(p, begin, rows, to);
      });
  }
  void multiply_by_panel(int64_t p, int64_t begin, int rows, float* to) const {
    const Panels& panels = sizes_.by_key;
    tiles_.multiply({q_rows_ + begin, sizes_.bf16 ? sizes_.depth : 0, rows, panels.k, keys_ + panels.offset(p),
                     panels.stride(p), panels.columns(p), to, pitch_});
  }

  // Scores of the row become weights of the keys that its tile sees, in so many steps.
  struct Weights {
    const float* row;
    float factor;  // what the values' sums are to be multiplied by
  };
  Weights weigh(int64_t row, KeyRange tile, int64_t steps) {
    static const auto weigh = LATHE_ISA_SELECT(weigh_scores);
    static const auto weigh_in_pairs = LATHE_ISA_SELECT(weigh_scores_in_pairs);
    const RowKeys keys = places_[row].keys;
    const bool is_second = sizes_.bf16 && (keys.first - tile.first) % 2 != 0;
    const int64_t before = sizes_.steps(keys.first - tile.first - (is_second ? 1 : 0));
    float *scores = score(row, keys.first), *weights = scores - (is_second ? 1 : 0) - before;
    if (keys.is_mean) return {weights, weigh_alike(sizes_, weights, steps)};
    const float* sink = params_.has_sinks ? sink_of(row) : nullptr;
    if (keys.count() == 0) {
      std::fill_n(weights, steps, 0.0f);
      const bool is_number = sizes_.keys == 0 || (sink && std::isfinite(*sink));
      return {weights, is_number ? 1 : std::numeric_limits<float>::quiet_NaN()};
    }
    std::fill_n(weights, before, 0.0f);
    if (!sizes_.bf16) std::fill(scores + keys.count(), scores + (tile.end - keys.first), 0.0f);
    ScoreRow scored{scores, keys.count(), params_.scale, params_.softcap, params_.hidden};
    scored.float8 = params_.float8;
    scored.sink = sink, scored.is_second = is_second;
    if (params_.masked) read_mask(row, scored);
    if (params_.has_distances) add_distances(row, scored);
    return {weights, 1 / (sizes_.bf16 ? weigh_in_pairs(scored, 2 * (steps - before)) : weigh(scored))};
  }

  // As weigh(), once more with scores of floats that are not split where what comes is no number.
  Weights weigh_numbers(int64_t row, KeyRange tile, int64_t steps) {
    const Weights weights = weigh(row, tile, steps);
    if (!sizes_.splits || !std::isnan(weights.factor)) return weights;
    for (int64_t p = tile.first / kWidth; p * kWidth < tile.end; ++p)
      multiply_by_panel(p, row, 1, score(row, p * kWidth));
    return weigh(row, tile, steps);
  }

  const float* sink_of(int64_t row) const {
    const TensorArg& sinks = inputs_[sinks_input(params_)];
    return sinks.as<float>() + places_[row].head * sinks.strides[0];
  }

  void read_mask(int64_t row, ScoreRow& scored) {
    const TensorArg& mask = inputs_[kMask];
    const int64_t stride = broadcast_stride_at(mask, 3, 4);
    const auto read = [&](auto* from, auto* copy) {
      from += broadcast_offset_in(mask, places_[row]) + places_[row].keys.first * stride;
      if (stride == 1) return from;
      for (int64_t i = 0; i < scored.keys; ++i) copy[i] = from[i * stride];
      return copy;
    };
    if (mask.dtype == DType::boolean)
      scored.shown = read(mask.as<uint8_t>(), reinterpret_cast<uint8_t*>(mask_));
    else
      scored.added = read(mask.as<float>(), reinterpret_cast<float*>(mask_));
  }

  // Booleans hide by -inf beside distances.
  void add_distances(int64_t row, ScoreRow& scored) {
    const TensorArg& distances = inputs_[distances_input(params_)];
    const Place& at = places_[row];
    const int64_t stride = distances.strides[1];
    const float* from = distances.as<float>() + (distances.dims[0] == 1 ? 0 : at.head * distances.strides[0]) +
                        (at.keys.first - at.query + sizes_.queries - 1) * stride;
    if (stride != 1 || params_.masked) {
      float* added = reinterpret_cast<float*>(mask_) + (params_.masked ? sizes_.pitch : 0);
      for (int64_t i = 0; i < scored.keys; ++i) {
        added[i] = from[i * stride];
        if (scored.added) added[i] += scored.added[i];
        if (scored.shown && !scored.shown[i]) added[i] = -HUGE_VALF;
      }
      from = added;
    }
    scored.added = from, scored.shown = nullptr;
  }

  void add_values(int64_t begin, int rows) {
    static const auto finish = LATHE_ISA_SELECT(finish_tile);
    static const auto scale = LATHE_ISA_SELECT(scale_rows);
    const KeyRange seen = seen_by(begin, rows);
    const int64_t first = sizes_.steps(seen.first), steps = sizes_.steps_of_weights(seen.count());
    float factors[kMaxTileRows];
    const float* weights[kMaxTileRows];
    bool is_even = true;  // are rows of weights in equal distances
    TileRows where;
    for (int r = 0; r < rows; ++r) {
      const Weights weighed = weigh_numbers(begin + r, seen, steps);
      factors[r] = weighed.factor;
      weights[r] = weighed.row;
      is_even = is_even && weighed.row == weights[0] + r * pitch_;
      find(begin + r, r, where);
    }
    const Panels& panels = sizes_.values;
    if (sizes_.splits)
      split_values_.multiply_all(weights, rows, height(), {first, steps, kSplitKeys}, sums_, kMaxTileRows * kWidth);
    for (int64_t p = 0; p < panels.count(); ++p) {
      const bool packed = sizes_.packs_values;
      const int columns = panels.columns(p);
      const int64_t stride = packed ? panels.stride(p) : inputs_[kV].strides[2];
      const float* values = packed ? values_ + panels.offset(p) : plain_values_ + p * kWidth;
      float* sums = sums_ + (sizes_.splits ? p * kMaxTileRows * kWidth : 0);
      if (!sizes_.splits || !gemm::usable_split_functions()->are_finite(sums, kWidth, rows, ceil_div(columns, 16)))
        tiles_.multiply(
            {weights, is_even ? pitch_ : 0, rows, steps, values + first * stride, stride, columns, sums, kWidth});
      scale(sums, kWidth, rows, columns, factors);
      for (int r = 0; params_.zeros_for_nan && r < rows; ++r)
        if (std::isnan(factors[r])) std::fill_n(sums + r * kWidth, columns, 0.0f);
      finish(epilogue_, where, sums, kWidth, rows, p * kWidth, columns);
    }
  }

  // Where the row's results go, and the program's operands lie.
  void find(int64_t row, int r, TileRows& where) const {
    const Place& at = places_[row];
    where.out[r] = out_.as<float>() + offset_in(out_, at);
    for (int i = 0; i < epilogue_.count; ++i)
      if (epilogue_.operands[i].varies_by_row)
        where.operand[i][r] = epilogue_.operands[i].data + broadcast_offset_in(operands_[static_cast<size_t>(i)], at);
  }

  const std::span<const TensorArg> inputs_, operands_;
  const TensorArg& out_;
  const AttentionParams& params_;
  const BoundEpilogue& epilogue_;
  const Sizes& sizes_;
  gemm::MatrixSetup matrices_;
  const TileProducts tiles_;
  SplitProduct split_keys_, split_values_;
  float *const keys_, *const values_, *const scores_, *const sums_, *const queries_;
  std::byte* const mask_;
  const float** const q_rows_;
  Place* const places_;  // of the rows
  KeysOfRows keys_of_rows_;
  const float* plain_values_ = nullptr;
  int64_t group_ = -1;             // whose keys and values are packed
  KeyRange packed_;                // panels of its keys
  int64_t first_ = 0, count_ = 0;  // rows that are done together
  KeyRange seen_;                  // by them
  int64_t pitch_ = 0;              // from one's scores to the next one's
};

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const AttentionParams& params, Epilogue epilogue) : params_(params), epilogue_(std::move(epilogue)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    LATHE_TRY(check_tensors(params_, inputs, outputs));
    return check_epilogue(epilogue_, inputs.subspan(own_inputs(params_)), outputs[0]);
  }
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg>, int threads) const override {
    const Sizes sizes(inputs[kQ], inputs[kK], inputs[kV], params_);
    return AttentionScratch(sizes, params_).total * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  const AttentionParams params_;
  const Epilogue epilogue_;
};

void AttentionKernel::run(const Launch& launch) const {
  const TensorArg& out = launch.outputs[0];
  if (out.volume() == 0) return;
  const Sizes sizes(launch.inputs[kQ], launch.inputs[kK], launch.inputs[kV], params_);
  const AttentionScratch layout(sizes, params_);
  const BoundEpilogue epilogue = bind_epilogue(epilogue_, launch.inputs.subspan(own_inputs(params_)), out, 3);
  const auto grain = static_cast<int64_t>(std::max(1.0, gemm::kMinParallelFlops / (sizes.flops_of_unit() + 1)));
  launch.pool.parallel_for(sizes.units(), grain, [&](int64_t begin, int64_t end, int worker) {
    Worker own(launch, params_, epilogue, sizes, layout, launch.workspace + layout.total * static_cast<size_t>(worker));
    while (begin < end) begin = own.run(begin, end);
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_attention(const Record& record) {
  const auto params = decode_params<AttentionParams>(record.params);
  if (!params) return refuse_params("attention");
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  return std::unique_ptr<Kernel>(new AttentionKernel(*params, std::move(epilogue)));
}

}  // namespace lathe::cpu
