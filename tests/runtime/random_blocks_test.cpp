// SPDX-License-Identifier: Apache-2.0
// Plans of random control flow against what their blocks mean, said with values instead of memory.
#include <functional>
#include <map>
#include <random>

#include "runtime/block_plans.h"

namespace lathe {
namespace {

using Id = plan::TensorId;
constexpr Id kNone = plan::kNoTensor;
constexpr int64_t kLength = 4;  // slices of 32 bytes may be read where they are

using Value = std::vector<int64_t>;        // of a tensor, or of the slices of one
using Values = std::map<Id, Value>;        // by tensor
using Run = std::function<void(Values&)>;  // what a step does to them

class RandomPlan : public PlanMaker {
 public:
  explicit RandomPlan(uint32_t seed) : random_(seed) {
    std::vector<Id> visible;
    for (int i = 0; i < 3; ++i) visible.push_back(add_constant({kLength}));
    outputs_ = {output("a", DType::i64, {kLength}), output("b", DType::i64, {kLength})};
    Run body = make_steps(visible, 0);
    for (const Id id : outputs_) {
      const Id from = visible[visible.size() - 1 - pick(2)];
      copy(from, id);
      body = [body, from, id](Values& values) {
        body(values);
        values[id] = values.at(from);
      };
    }
    run_ = body;
  }

  std::vector<Tensor> expected() const {
    Values values = constants_;
    run_(values);
    std::vector<Tensor> tensors;
    for (const Id id : outputs_) tensors.push_back(lathe::tensor(DType::i64, {kLength}, values.at(id)));
    return tensors;
  }

 private:
  size_t pick(size_t bound) { return random_() % bound; }
  Id any_of(const std::vector<Id>& ids) { return ids[pick(ids.size())]; }
  Id row(const char* name) { return buffer(name, DType::i64, {kLength}); }
  Id add_constant(Dims dims) {
    Value value(static_cast<size_t>(*checked_volume(dims)));
    for (int64_t& element : value) element = static_cast<int64_t>(pick(100));
    const Id id = constant<int64_t>(DType::i64, std::move(dims), value);
    constants_[id] = value;
    return id;
  }

  // Leaves in `visible` what later steps may read.
  Run make_steps(std::vector<Id>& visible, int depth) {
    std::vector<Run> runs;
    for (size_t n = 2 + pick(3); n > 0; --n) {
      const size_t kind = depth < 3 ? pick(5) : 0;
      runs.push_back(kind == 2   ? make_loop(visible, depth)
                     : kind == 3 ? make_branch(visible, depth)
                     : kind == 4 ? make_call(visible, depth)
                                 : make_difference(visible));
    }
    return [runs](Values& values) {
      for (const Run& run : runs) run(values);
    };
  }

  Run make_difference(std::vector<Id>& visible) {
    const Id a = any_of(visible), b = any_of(visible), to = row("difference");
    elementwise("sub", a, b, to);
    visible.push_back(to);
    return [=](Values& values) {
      Value result(kLength);
      for (size_t i = 0; i < kLength; ++i) result[i] = values.at(a)[i] - values.at(b)[i];
      values[to] = result;
    };
  }

  // Some of what a body leaves is an output itself, which it then writes.
  std::vector<Id> pick_results(const std::vector<Id>& inside, size_t outside, std::vector<Id>& outputs) {
    std::vector<Id> results;
    for (Id& id : outputs) {
      results.push_back(any_of(inside));
      const auto twice = std::count(results.begin(), results.end(), results.back());
      const bool is_own = std::find(inside.begin() + static_cast<std::ptrdiff_t>(outside), inside.end(),
                                    results.back()) != inside.end();
      if (is_own && twice == 1 && pick(2) == 0) id = results.back();
    }
    return results;
  }

  static void move(Values& values, const std::vector<Id>& from, const std::vector<Id>& to) {
    std::vector<Value> read;
    for (const Id id : from) read.push_back(values.at(id));
    for (size_t i = 0; i < to.size(); ++i) values[to[i]] = read[i];
  }

  Run make_loop(std::vector<Id>& visible, int depth) {
    const size_t carried = 1 + pick(3);
    const auto rounds = static_cast<int64_t>(pick(4));
    const bool scans = pick(2) == 0, reversed = pick(2) == 0;
    std::vector<Id> inputs, params, outputs;
    for (size_t i = 0; i < carried; ++i) inputs.push_back(any_of(visible)), params.push_back(row("param"));
    for (size_t i = 0; i < carried; ++i) outputs.push_back(row("out"));
    const Id slice = row("slice"), last = add_constant({rounds + 1, kLength}), stacked = row("stacked");
    plan.tensors[stacked].dims = {rounds, kLength};
    plan.buffers[plan.tensors[stacked].index].bytes = rounds * kLength * 8;
    std::vector<Id> operands = {number(rounds), kNone}, begun = {kNone, kNone}, left = {kNone}, ends = outputs;
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    begun.insert(begun.end(), params.begin(), params.end());
    if (scans) operands.push_back(last), begun.push_back(slice), ends.push_back(stacked);
    const size_t at = loop(static_cast<uint32_t>(carried), operands, ends);
    begin_body(at, begun);
    std::vector<Id> inside = visible;
    inside.insert(inside.end(), params.begin(), params.end());
    if (scans) inside.push_back(slice);
    const size_t before = inside.size();
    const Run body = make_steps(inside, depth + 1);
    const std::vector<Id> results = pick_results(inside, before, outputs);
    left.insert(left.end(), results.begin(), results.end());
    const Id piece = any_of(inside);
    if (scans) {
      left.push_back(piece);
      get(at).scanned = {{0, reversed}};
      get(at).stacked = {{0, reversed}};
    }
    end_body(at, left);
    std::copy(outputs.begin(), outputs.end(), plan.steps[at].outputs.begin());
    visible.insert(visible.end(), outputs.begin(), outputs.end());
    Run whole = [=](Values& values) {
      Value pieces(static_cast<size_t>(rounds * kLength));
      std::vector<Id> from = inputs;
      for (int64_t round = 0; round < rounds; ++round, from = results) {
        move(values, from, params);
        // One slice more than there are rounds is scanned.
        const auto read = static_cast<std::ptrdiff_t>(kLength * (reversed ? rounds - round : round));
        const Value& all = values.at(last);
        values[slice] = Value(all.begin() + read, all.begin() + read + kLength);
        body(values);
        const int64_t place = reversed ? rounds - 1 - round : round;
        std::copy(values.at(piece).begin(), values.at(piece).end(), pieces.begin() + place * kLength);
      }
      move(values, from, outputs);
      values[stacked] = pieces;
    };
    if (!scans || rounds == 0) return whole;
    const Id looked_at = row("row");
    const auto index = static_cast<int64_t>(pick(static_cast<size_t>(rounds)));
    evaluate("gather", "axis=0", {stacked, number(index)}, {looked_at});
    visible.push_back(looked_at);
    return [=](Values& values) {
      whole(values);
      const auto first = values.at(stacked).begin() + index * kLength;
      values[looked_at] = Value(first, first + kLength);
    };
  }

  Run make_branch(std::vector<Id>& visible, int depth) {
    const bool holds = pick(2) == 0;
    std::vector<Id> outputs;
    for (size_t i = 1 + pick(2); i > 0; --i) outputs.push_back(row("out"));
    const size_t at = block(plan::BlockKind::branch, {truth(holds)}, outputs);
    Run taken;
    std::vector<Id> left;
    for (const bool is_first : {true, false}) {
      begin_body(at, {});
      std::vector<Id> inside = visible;
      const Run body = make_steps(inside, depth + 1);
      std::vector<Id> copied = outputs;
      const std::vector<Id> results = pick_results(inside, visible.size(), is_first ? outputs : copied);
      end_body(at, results);
      if (is_first == holds) taken = body, left = results;
    }
    plan.steps[at].outputs = outputs;
    visible.insert(visible.end(), outputs.begin(), outputs.end());
    return [=](Values& values) {
      taken(values);
      move(values, left, outputs);
    };
  }

  Run make_call(std::vector<Id>& visible, int depth) {
    std::vector<Id> inputs, params, outputs = {row("out")};
    for (size_t i = pick(3); i > 0; --i) inputs.push_back(any_of(visible)), params.push_back(row("param"));
    const size_t at = block(plan::BlockKind::call, inputs, outputs);
    begin_body(at, params);
    std::vector<Id> inside = visible;
    inside.insert(inside.end(), params.begin(), params.end());
    const size_t before = inside.size();
    const Run body = make_steps(inside, depth + 1);
    const std::vector<Id> results = pick_results(inside, before, outputs);
    end_body(at, results);
    plan.steps[at].outputs = outputs;
    visible.insert(visible.end(), outputs.begin(), outputs.end());
    return [=](Values& values) {
      move(values, inputs, params);
      body(values);
      move(values, results, outputs);
    };
  }

  std::mt19937 random_;
  Values constants_;
  std::vector<Id> outputs_;
  Run run_;
};

TEST(RandomBlocks, MeanWhatTheirValuesSay) {
  size_t longest = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomPlan maker(seed);
    longest = std::max(longest, maker.plan.steps.size());
    expect_outputs(maker, {}, maker.expected());
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(longest, 100u);
}

}  // namespace
}  // namespace lathe
