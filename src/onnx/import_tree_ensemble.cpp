// SPDX-License-Identifier: Apache-2.0
// Decision trees: where each row of x is in each tree moves on by a level at a time, as gathers from lists of nodes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/importer.h"
#include "ops/rules.h"

namespace lathe::onnx {
namespace {

using Op = ElementwiseOp;

constexpr int64_t kDeepest = 512;  // levels, each of which is some nodes of the graph

enum Mode : int64_t { kLeq, kLess, kGeq, kGreater, kEqual, kNotEqual, kMember };

// Nodes of all trees, then their leaves, which stay where they are.
struct Forest {
  Ints modes, features, yes, no, follows_nan;
  std::vector<double> splits;
  size_t nodes = 0;  // of them that are no leaves

  void add(int64_t mode, int64_t feature, double split, int64_t if_so, int64_t if_not, int64_t nan) {
    modes.push_back(mode), features.push_back(feature), splits.push_back(split);
    yes.push_back(if_so), no.push_back(if_not), follows_nan.push_back(nan);
  }
};

std::optional<Tensor> tensor_of(NodeContext& c, const char* name) {
  const TensorData* data = c.tensor(name);
  if (!data) return std::nullopt;
  Result<Tensor> tensor = to_tensor(*data);
  if (tensor) return *std::move(tensor);
  c.set_error(std::move(tensor).error());
  return std::nullopt;
}

// The sets of the nodes that test for members, in the order of those nodes; each ends with a NaN.
std::vector<std::vector<double>> member_sets(const std::optional<Tensor>& values) {
  std::vector<std::vector<double>> sets(1);
  for (int64_t i = 0; values && i < values->volume(); ++i) {
    const double value = values->at_double(i);
    if (std::isnan(value))
      sets.emplace_back();
    else
      sets.back().push_back(value);
  }
  sets.pop_back();
  return sets;
}

struct Lists {
  Ints features, yes, no, yes_is_leaf, no_is_leaf, nan;
  Tensor modes, splits;
  int64_t leaves = 0;
};

// A test for members is one for each of them, the next where one fails.
Forest forest_of(NodeContext& c, const Lists& lists) {
  const size_t count = lists.features.size();
  const std::vector<std::vector<double>> sets = member_sets(tensor_of(c, "membership_values"));
  const auto is_member = [&](size_t i) { return lists.modes.at(static_cast<int64_t>(i)) == kMember; };
  size_t more = 0, members = 0;
  for (const auto& set : sets) more += std::max<size_t>(set.size(), 1) - 1;
  for (size_t i = 0; i < count; ++i) members += is_member(i);
  Forest forest;
  if (members != sets.size())
    return c.invalid("{} of its nodes test for members, but membership_values has {} sets", members, sets.size()),
           forest;
  forest.nodes = count + more;
  const auto place = [&](int64_t id, int64_t is_leaf) {
    const int64_t limit = is_leaf ? lists.leaves : static_cast<int64_t>(count);
    if (id < 0 || id >= limit) c.invalid("a branch leads to {} {}, of {}", is_leaf ? "leaf" : "node", id, limit);
    return is_leaf ? id + static_cast<int64_t>(forest.nodes) : id;
  };
  Forest rest;  // what is behind the first member of each set
  for (size_t i = 0, set = 0; i < count && !c.failed(); ++i) {
    const int64_t mode = lists.modes.at(static_cast<int64_t>(i)), feature = lists.features[i], nan = lists.nan[i];
    const int64_t yes = place(lists.yes[i], lists.yes_is_leaf[i]), no = place(lists.no[i], lists.no_is_leaf[i]);
    if (mode < kLeq || mode > kMember) return c.invalid("mode {} of node {} is unknown", mode, i), forest;
    if (mode != kMember) {
      forest.add(mode, feature, lists.splits.at_double(static_cast<int64_t>(i)), yes, no, nan);
      continue;
    }
    std::vector<double> values = sets[set++];
    if (values.empty()) values.push_back(std::numeric_limits<double>::quiet_NaN());  // which nothing equals
    for (size_t k = 0; k < values.size(); ++k) {
      const auto next = static_cast<int64_t>(count + rest.modes.size() + (k == 0 ? 0 : 1));
      (k == 0 ? forest : rest).add(kEqual, feature, values[k], yes, k + 1 == values.size() ? no : next, nan);
    }
  }
  for (size_t i = 0; i < rest.modes.size(); ++i)
    forest.add(kEqual, rest.features[i], rest.splits[i], rest.yes[i], rest.no[i], rest.follows_nan[i]);
  for (int64_t leaf = 0; leaf < lists.leaves; ++leaf) {
    const auto self = static_cast<int64_t>(forest.modes.size());
    forest.add(kEqual, 0, 0, self, self, 0);
  }
  return forest;
}

// The most nodes from a root to a leaf; more than kDeepest where branches lead back.
int64_t depth_of(const Forest& forest, Ints places) {
  int64_t depth = 0;
  for (; depth <= kDeepest; ++depth) {
    std::erase_if(places, [&](int64_t place) { return place >= static_cast<int64_t>(forest.nodes); });
    if (places.empty()) break;
    Ints next;
    for (const int64_t place : places) {
      next.push_back(forest.yes[static_cast<size_t>(place)]);
      next.push_back(forest.no[static_cast<size_t>(place)]);
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    places = std::move(next);
  }
  return depth;
}

class Descent {
 public:
  Descent(NodeContext& c, const Forest& forest, ir::Value* x) : c_(c), forest_(forest), x_(x) {
    Result<Tensor> splits = Tensor::allocate(x->dtype(), {static_cast<int64_t>(forest.splits.size())});
    if (splits) from_doubles(forest.splits, *splits);
    splits_ = c.constant(std::move(splits));
  }

  ir::Value* next(ir::Value* place) {
    GatherElementsAttrs along;
    along.axis = 1;
    ir::Value* value = c_.add(along, {x_, of(forest_.features, place)});
    ir::Value* goes = test(value, c_.gather(splits_, place, 0), place);
    if (std::ranges::count(forest_.follows_nan, 0) < static_cast<ptrdiff_t>(forest_.follows_nan.size())) {
      ir::Value* follows = c_.cast(of(forest_.follows_nan, place), DType::boolean);
      follows = c_.binary(Op::logical_and, follows, c_.unary(UnaryOp::is_nan, value));
      goes = c_.binary(Op::logical_or, goes, follows);
    }
    return c_.select(goes, of(forest_.yes, place), of(forest_.no, place));
  }

 private:
  ir::Value* of(const Ints& list, ir::Value* place) { return c_.gather(c_.ints(list), place, 0); }

  // By each mode that nodes have.
  ir::Value* test(ir::Value* value, ir::Value* split, ir::Value* place) {
    ir::Value *result = nullptr, *mode = nullptr;
    for (int64_t each = kLeq; each < kMember; ++each) {
      const auto end = forest_.modes.begin() + static_cast<ptrdiff_t>(forest_.nodes);
      if (std::find(forest_.modes.begin(), end, each) == end) continue;
      ir::Value* tested = compared(each, value, split);
      if (!result) {
        result = tested;
        continue;
      }
      if (!mode) mode = of(forest_.modes, place);
      result = c_.select(c_.binary(Op::equal, mode, static_cast<double>(each)), tested, result);
    }
    return result;
  }

  ir::Value* compared(int64_t mode, ir::Value* value, ir::Value* split) {
    static constexpr Op kOps[] = {Op::less_equal, Op::less, Op::greater_equal, Op::greater, Op::equal, Op::equal};
    ir::Value* tested = c_.binary(kOps[mode], value, split);
    return mode == kNotEqual ? c_.unary(UnaryOp::logical_not, tested) : tested;
  }

  NodeContext& c_;
  const Forest& forest_;
  ir::Value* x_;
  ir::Value* splits_;
};

// What the leaves that are reached add to each target.
ir::Value* aggregated(NodeContext& c, ir::Value* weights, ir::Value* targets, int64_t num_targets, int64_t trees) {
  const int64_t function = c.integer("aggregate_function", 1);
  ScatterElementsAttrs attributes;
  attributes.axis = 1;
  attributes.reduction = function == 2   ? ScatterReduction::min
                         : function == 3 ? ScatterReduction::max
                                         : ScatterReduction::add;
  double begin = 0;
  if (function >= 2) {
    const double most = weights->dtype() == DType::f16   ? 65504
                        : weights->dtype() == DType::f64 ? std::numeric_limits<double>::max()
                                                         : std::numeric_limits<float>::max();
    begin = function == 2 ? most : -most;
  }
  if (function < 0 || function > 3) c.invalid("aggregate_function {} is unknown", function);
  ir::Value* dims = c.concat({c.shape_of(weights, 0, 1), c.ints({num_targets})}, 0);
  ir::Value* sum = c.add(attributes, {c.expand(c.scalar_like(begin, weights), dims), targets, weights});
  return function == 0 ? c.binary(Op::div, sum, static_cast<double>(trees)) : sum;
}

ir::Value* transformed(NodeContext& c, ir::Value* y) {
  const int64_t transform = c.integer("post_transform", 0);
  if (transform == 0) return y;
  if (transform == 1) return c.softmax(y, 1);
  if (transform == 2) return c.activation(ActivationOp::sigmoid, y);
  if (transform == 3) {  // zeros stay, and take no part
    ir::Value* is_zero = c.binary(Op::equal, y, 0.0);
    ir::Value* shares = c.softmax(c.select(is_zero, c.scalar_like(-HUGE_VAL, y), y), 1);
    return c.select(is_zero, c.scalar_like(0, y), shares);
  }
  c.unsupported("post_transform {} is not supported; NONE, SOFTMAX, LOGISTIC and SOFTMAX_ZERO are", transform);
  return y;
}

}  // namespace

void import_tree_ensemble(NodeContext& c) {
  c.ignore({"nodes_hitrates"});
  ir::Value* x = c.require(0);
  Lists lists{c.integers("nodes_featureids"),
              c.integers("nodes_truenodeids"),
              c.integers("nodes_falsenodeids"),
              c.integers("nodes_trueleafs"),
              c.integers("nodes_falseleafs"),
              {},
              {},
              {}};
  const size_t count = lists.features.size();
  lists.nan = c.integers("nodes_missing_value_tracks_true", Ints(count));
  const std::optional<Tensor> modes = tensor_of(c, "nodes_modes"), splits = tensor_of(c, "nodes_splits");
  const std::optional<Tensor> leaves = tensor_of(c, "leaf_weights");
  const Ints targets = c.integers("leaf_targetids"), roots = c.integers("tree_roots");
  const int64_t num_targets = c.integer("n_targets", 0);
  if (c.failed()) return;
  if (x->rank() != 2) return c.invalid("its input has {} dimensions, expected rows of features", x->rank());
  if (!is_floating(x->dtype()))
    return c.invalid("its input is {}, expected a floating-point type", name_of(x->dtype()));
  const auto has_all = [&](size_t size) { return size == count; };
  if (!modes || !splits || !leaves || count == 0 || roots.empty() || !has_all(lists.yes.size()) ||
      !has_all(lists.no.size()) || !has_all(lists.yes_is_leaf.size()) || !has_all(lists.no_is_leaf.size()) ||
      !has_all(lists.nan.size()) || !has_all(static_cast<size_t>(modes->volume())) ||
      !has_all(static_cast<size_t>(splits->volume())) || static_cast<size_t>(leaves->volume()) != targets.size())
    return c.invalid("its lists of nodes, leaves and roots are empty or differ in length");
  const auto is_outside = [](const Ints& list, int64_t limit) {
    return std::ranges::any_of(list, [&](int64_t i) { return i < 0 || i >= limit; });
  };
  if (is_outside(targets, num_targets) || is_outside(roots, static_cast<int64_t>(count)) ||
      is_outside(lists.features, c.dim(x, 1).as_constant().value_or(INT64_MAX)))
    return c.invalid("a target, a root or a feature is none of {}, {} and those of its input", num_targets, count);
  lists.modes = *modes, lists.splits = *splits;
  lists.leaves = leaves->volume();
  const Forest forest = forest_of(c, lists);
  if (c.failed()) return;
  const int64_t depth = depth_of(forest, roots);
  if (depth > kDeepest)
    return c.unsupported("its trees have more than {} levels, or branches that lead back", kDeepest);
  ir::Value* place = c.expand(c.ints(roots), c.concat({c.shape_of(x, 0, 1), c.ints({1})}, 0));
  Descent descent(c, forest, x);
  for (int64_t level = 0; level < depth && !c.failed(); ++level) place = descent.next(place);
  place = c.binary(Op::sub, place, static_cast<double>(forest.nodes));
  ir::Value* weights = c.gather(c.cast(c.constant(*leaves), x->dtype()), place, 0);
  ir::Value* y =
      aggregated(c, weights, c.gather(c.ints(targets), place, 0), num_targets, static_cast<int64_t>(roots.size()));
  c.set_output(0, transformed(c, y));
}

}  // namespace lathe::onnx
