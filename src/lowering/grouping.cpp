// SPDX-License-Identifier: Apache-2.0
// Which nodes run together. A heavy op takes the pointwise nodes behind it; those that are left are grouped into
// expressions, which the kernels that read them may compute themselves; everything else stands alone.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lowering/boxes.h"
#include "lowering/epilogue_roots.h"
#include "lowering/expression_builder.h"
#include "lowering/further_results.h"
#include "lowering/level_nodes.h"
#include "lowering/moved_epilogue.h"
#include "lowering/normalized_results.h"
#include "lowering/pages.h"
#include "lowering/paired_epilogue.h"
#include "lowering/producers.h"
#include "lowering/region.h"
#include "passes/stays_packed.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// A program operand is read once per output element: its shape must provably broadcast to the result's.
bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != Expr(1) && from[i] != to[lead + i]) return false;
  return true;
}

bool all_broadcast(const Node& node) {
  return std::all_of(node.inputs().begin(), node.inputs().end(),
                     [&](const Value* input) { return broadcasts_to(input->shape(), node.output()->shape()); });
}

RegionKind kind_alone(const Node& node) {
  if (node.has_trait(kView) || node.is(OpKind::identity) || node.is(OpKind::bitcast)) return RegionKind::view;
  if (const auto stored = storage_type_of(node); stored && is_packed(*stored)) return RegionKind::single;  // no strides
  return node.has_trait(kStrided) ? RegionKind::movement : RegionKind::single;
}

Region region_of(RegionKind kind, Node* root) {
  Region region;
  region.kind = kind;
  region.root = root;
  region.nodes = {root};
  return region;
}

class Grouper {
 public:
  Grouper(const ir::Graph& graph, const GroupingOptions& options, CostModel& costs, const RefusedFusions& refused)
      : graph_(graph),
        order_(graph),
        refused_(refused),
        traits_(options.traits),
        fuse_(options.fuse),
        prologues_(options.fuse && options.traits.fuses_prologues),
        movement_(options.fuse && options.traits.fuses_movement),
        most_rows_normalized_(options.fuse ? options.traits.most_rows_normalized_as_read : 0),
        narrow_types_(options.traits.fuses_narrow_types),
        integer_products_(options.traits.arithmetic.weighted_products),
        arithmetic_(options.traits.arithmetic),
        costs_(costs),
        narrow_(narrow_types_ || integer_products_) {
    for (const auto& node : graph.nodes())
      if (const auto part = joins_parts(*node) ? computed_part(*node) : std::nullopt)
        slices_.insert({part->part, part->rest});
  }

  std::vector<Region> run() {
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it)
      if (!owner_.contains(it->get()) && !stands_alone(**it) && takes_epilogue(**it, traits_)) take_epilogue(it->get());
    if (fuse_) join_packed_weights();
    join_levels();
    if (movement_) join_movement();
    if (movement_ && prologues_) join_updates();
    if (most_rows_normalized_ > 0) join_normalizations();
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it)
      if (starts_expression(**it) && !owner_.contains(it->get())) take_expression(it->get());
    if (prologues_) join_prologues();
    return in_order();
  }

 private:
  // Expressions are found from their ends.
  bool starts_expression(const Node& node) const {
    if (stands_alone(node)) return false;
    if (node.is(OpKind::concat)) return movement_;
    if (node.is(OpKind::slice) && !cuts_elements(node)) return false;
    return reorders_elements(node) ? movement_ : is_expressible(node);
  }

  // The chain of pointwise nodes after a heavy op, as far as each result has one reader of the same shape.
  void take_epilogue(Node* root) {
    if (fuse_ && arithmetic_.paired_columns && !refused_.has_epilogue_of(*root))
      if (std::optional<Region> pairs = with_pairs(*root, order_, may_join_)) return add(*std::move(pairs));
    Region region = region_of(RegionKind::kernel, root);
    Space space(order_.symbols);
    const Shape index = space.add(root->output()->shape());
    ProgramBuilder program(root->output());
    if (Value* bias = bias_of(*root)) program.add_bias(bias, index);
    Value* result = root->output();
    // What follows other kernels gets one of its own.
    narrow_ = narrow_types_ || result->dtype() == DType::i32 || (integer_products_ && gives_levels(*root));
    while (fuse_ && !refused_.has_epilogue_of(*root) && result->has_single_use()) {
      Node* next = result->uses()[0].node;
      if (permutes_elements(*next) || cuts_elements(*next) || !may_join(*next) ||
          next->output()->shape() != result->shape())
        break;
      const ProgramBuilder before = program;
      std::vector<Node*> side = side_of(*next, result);
      const auto joins = [&](const Node* node) {
        const auto own = broadcast_index(node->output()->shape(), result->shape(), index);
        return own && program.add(*node, *own);
      };
      if (!std::ranges::all_of(side, joins)) {
        program = before;
        side.clear();
      }
      if (!program.add(*next, index)) {
        program = before;
        break;
      }
      region.nodes.insert(region.nodes.end(), side.begin(), side.end());
      region.nodes.push_back(next);
      result = next->output();
    }
    narrow_ = narrow_types_ || integer_products_;
    region.expression = *program.finish(result, space);  // nothing has moved yet
    region.written.index = index;
    region.outputs = {result};
    if (movement_ && root->has_trait(kContraction) && !refused_.has_epilogue_of(*root) &&
        !refused_.has_movement_behind(*root)) {
      std::optional<Region> moved = with_movement(region, space, program, may_join_);
      if (moved) region = *std::move(moved);
    }
    add(std::move(region));
  }

  bool may_join(const Node& node) const {
    if (owner_.contains(&node) || stands_alone(node) || is_for_windows(node)) return false;
    return permutes_elements(node) ? movement_ : is_expressible(node);
  }

  bool stands_alone(const Node& node) const { return refused_.stands_alone(node) || is_plain_only(node); }

  bool is_programmable(const Node& node) const {
    if (is_plain_only(node)) return false;
    if (integer_products_ && dequantizes_sums(node)) return true;
    const bool small_levels = narrow_ && node.has_trait(kQuantization) && has_small_levels(node);
    return lathe::is_programmable(node, narrow_types_ || small_levels);
  }

  // Beside what permutes elements. What is padded passes through f32.
  bool is_expressible(const Node& node) const {
    if (joins_parts(node)) return computed_part(node).has_value();
    if (node.is(OpKind::slice) && !cuts_elements(node))
      return prologues_ && movement_ && (slices_.contains(&node) || takes_a_copy(node));
    if (!cuts_elements(node)) return is_programmable(node) && all_broadcast(node);
    return movement_ && (node.is(OpKind::slice) || is_program_float(node.output()->dtype(), narrow_types_));
  }

  // Concatenations that expressions may join as lowering/computed_part.h says.
  bool joins_parts(const Node& node) const { return prologues_ && movement_ && node.is(OpKind::concat); }

  // What a region computes beside its result for a node that reads it.
  std::vector<Node*> side_of(const Node& node, const Value* result) const {
    const auto is_free = [&](const Node& side) {
      return !owner_.contains(&side) && !stands_alone(side) && all_broadcast(side);
    };
    std::vector<Node*> terms = integer_products_ ? zero_point_terms(node, is_free) : std::vector<Node*>();
    if (!terms.empty()) return terms;
    return dequantized_operand(node, result, [&](const Node& side) { return is_free(side) && is_programmable(side); });
  }

  // The expression that ends at `last`: producers join while all their readers are inside and see them alike.
  void take_expression(Node* last) {
    if (last->is(OpKind::concat) && !is_expressible(*last)) {
      take_boxes(last, {last});
      return;
    }
    ExpressionBuilder expression(last, order_);
    if (prologues_) expression.join_computed_parts();
    if (!expression.is_known()) return;
    if (fuse_) expression.grow(may_join_, kMaxProgramCode / 2);
    expression.trim();
    if (movement_ && !expression.has_computed_parts() && take_boxes(last, expression.nodes())) return;
    // What only moves elements is a copy, as a transposition alone is: several of them are one.
    if (expression.is_movement_only() && expression.size() == 1 && last->is(OpKind::transpose)) return;
    std::optional<Region> region = expression.region();
    for (; !region && expression.size() > 1; region = expression.region()) expression.drop_last();
    if (!region) return;  // no kernel reads by the map of the last node alone: a pad of no element to one, say
    add(*std::move(region));
  }

  // The expression of the nodes with the concatenations before them, as far as that reads them where their parts lie.
  bool take_boxes(Node* last, const std::vector<Node*>& nodes) {
    const auto is_free = [&](const Node& node) { return !owner_.contains(&node) && !stands_alone(node); };
    std::optional<Region> region = region_in_boxes(last, nodes, order_, costs_, is_free);
    if (!region) return false;
    add(*std::move(region));
    return true;
  }

  // Expressions that only kernels read become part of those, of each of them again, where that is cheaper than memory.
  void join_prologues() {
    for (size_t i = 0; i < regions_.size(); ++i) {  // readers that stood alone are added at the end
      const Region& expression = regions_[i];
      if (expression.kind != RegionKind::pointwise || expression.moves_elements() ||
          expression.result()->is_graph_output())
        continue;
      std::vector<std::pair<ir::Use, Expression>> readers;
      const std::vector<ir::Use>& uses = expression.result()->uses();
      for (const ir::Use& use : uses) {
        if (!may_read(*use.node) || refused_.has_producer(*use.node, use.index)) break;
        std::optional<Expression> producer = prologue_for(expression, *use.node, use.index, traits_);
        if (!producer) break;
        readers.emplace_back(use, *std::move(producer));
      }
      if (uses.empty() || readers.size() != uses.size() || !pays_to_recompute(expression, traits_, costs_)) continue;
      const Region joined = std::exchange(regions_[i], {});
      for (auto& [use, producer] : readers) join(joined, kernel_of(*use.node), use.index, std::move(producer));
    }
  }

  // Whether the node is the root of a kernel, or is left to stand alone and may become one.
  bool may_read(const Node& root) const {
    const auto owner = owner_.find(&root);
    if (owner == owner_.end()) return !stands_alone(root);
    const Region& region = regions_[owner->second];
    return region.kind == RegionKind::kernel && region.root == &root;
  }

  // The region that it is the root of.
  size_t kernel_of(Node& root) {
    const auto owner = owner_.find(&root);
    if (owner != owner_.end()) return owner->second;
    Region region = region_alone(root, order_.symbols);
    region.kind = RegionKind::kernel;
    owner_[&root] = regions_.size();
    regions_.push_back(std::move(region));
    return owner_[&root];
  }

  // Levels that windows alone read, and dequantise as they do.
  bool is_for_windows(const Node& node) const {
    return fuse_ && integer_products_ && dequantizes_for_windows(node) &&
           std::ranges::none_of(node.output()->uses(), [&](const ir::Use& use) {
             return stands_alone(*use.node) || refused_.has_producer(*use.node, 0);
           });
  }
  void join_levels() {
    for (const auto& node : graph_.nodes()) {
      const std::optional<Region> levels = is_for_windows(*node) ? window_levels(*node, order_) : std::nullopt;
      for (const ir::Use& use : levels ? node->output()->uses() : std::vector<ir::Use>())
        join(*levels, kernel_of(*use.node), 0, levels->expression);
    }
  }

  // Weights that products dequantise as they read them.
  void join_packed_weights() {
    for (size_t i = 0; i < regions_.size(); ++i) {
      const Node& root = *regions_[i].root;
      if ((!root.is(OpKind::matmul) && !root.is(OpKind::expert_matmul)) || refused_.has_producer(root, 1)) continue;
      Node* node = root.input(1)->producer();
      if (!node || owner_.contains(node) || !stays_packed(*node, arithmetic_)) continue;
      Region weights;
      weights.nodes = {node};
      join(weights, i, 1, packed_weights(*node, order_));
    }
  }

  // Normalisations of rows that a product alone reads, and that nothing else is done to.
  void join_normalizations() {
    for (size_t i = 0; i < regions_.size(); ++i) {
      const Node* root = regions_[i].root;
      if (!root || refused_.has_producer(*root, 0)) continue;
      const std::optional<Region> before =
          normalization_before(*root, order_, most_rows_normalized_, arithmetic_, costs_);
      const auto owner = before ? owner_.find(before->root) : owner_.end();
      if (owner == owner_.end() || regions_[owner->second].nodes.size() > 1) continue;
      regions_[owner->second] = {};
      join(*before, i, 0, before->expression);
    }
  }

  // What only moves elements before a kernel that alone reads them, where nothing else writes them in that order.
  void join_movement() {
    for (size_t i = 0; i < regions_.size(); ++i)
      for (size_t input = 0; input < regions_[i].root->num_inputs(); ++input) {
        const Node& root = *regions_[i].root;
        if (refused_.has_producer(root, input)) continue;
        std::optional<Region> movement;
        if (prologues_) movement = pages_before(root, input, order_, may_read_levels_, costs_);
        if (prologues_ && !movement) movement = levels_before(root, input, order_, may_read_levels_, costs_);
        if (!movement) movement = movement_before(root, input, order_, may_join_);
        if (movement) join(*movement, i, input, movement->expression);
      }
  }

  // What slices are computed of, and moved, before they are written into a cache, of which they read nothing.
  void join_updates() {
    for (const auto& node : graph_.nodes()) {
      if (!node->is(OpKind::tensor_scatter) || stands_alone(*node) || refused_.has_producer(*node, 1)) continue;
      const auto may_join = [&](const Node& before) {
        return may_join_(before) && std::ranges::count(before.inputs(), node->input(0)) == 0;
      };
      std::optional<Region> update = update_before(*node, order_, may_join);
      if (!update) continue;
      Region region = region_alone(*node, order_.symbols);
      region.kind = RegionKind::kernel;
      add(std::move(region));
      join(*update, owner_.at(node.get()), 1, update->expression);
    }
  }

  // The region becomes part of that one, as an input of its root.
  void join(const Region& region, size_t reader, size_t input, Expression producer) {
    Region& kernel = regions_[reader];
    for (const Node* node : region.nodes) owner_[node] = reader;
    if (kernel.nodes.front() != region.nodes.front())  // it may compute several inputs by the same expression
      kernel.nodes.insert(kernel.nodes.begin(), region.nodes.begin(), region.nodes.end());
    kernel.producers.emplace(input, std::move(producer));
  }

  void add(Region region) {
    for (const Node* node : region.nodes) owner_[node] = regions_.size();
    regions_.push_back(std::move(region));
  }

  // A region runs where its last node stood: all that its nodes read is there, and nothing reads its inner values.
  std::vector<Region> in_order() {
    std::vector<Region> ordered;
    for (const auto& node : graph_.nodes()) {
      const auto it = owner_.find(node.get());
      if (it != owner_.end()) {
        Region& region = regions_[it->second];
        if (!region.nodes.empty() && region.nodes.back() == node.get()) ordered.push_back(std::move(region));
      } else if (!node->is(OpKind::constant)) {
        Region region = region_of(kind_alone(*node), node.get());
        for (size_t i = 0; i < node->num_outputs(); ++i) region.outputs.push_back(node->output(i));
        if (permutes_elements(*node)) set_permutation(region);
        ordered.push_back(std::move(region));
      }
    }
    return ordered;
  }

  // Which element each point of a transposition or a view reads, where maps tell it.
  void set_permutation(Region& region) const {
    std::optional<Region> moved = ExpressionBuilder(region.root, order_).region();
    if (!moved) return;
    region.expression = std::move(moved->expression);
    region.written = std::move(moved->written);
  }

  const ir::Graph& graph_;
  const NodeOrder order_;
  const RefusedFusions& refused_;
  const MayJoin may_join_ = [this](const Node& node) { return may_join(node); };
  // Those, too, that move elements which nothing computes with before they are dequantised.
  const MayJoin may_read_levels_ = [this](const Node& node) {
    const bool moves_floats = permutes_elements(node) && is_factor_float8(node.output()->dtype());
    return may_join(node) || (moves_floats && !owner_.contains(&node) && !refused_.stands_alone(node));
  };
  const BackendTraits traits_;
  bool fuse_, prologues_, movement_;
  int64_t most_rows_normalized_;
  bool narrow_types_, integer_products_;
  const Arithmetic arithmetic_;
  CostModel& costs_;
  bool narrow_;                             // whether small integers belong to the region that is being made
  std::unordered_set<const Node*> slices_;  // that computed parts and the rests beside them are
  std::vector<Region> regions_;
  std::unordered_map<const Node*, size_t> owner_;
};

}  // namespace

std::vector<Region> group_regions(const ir::Graph& graph, const GroupingOptions& options, CostModel& costs,
                                  const RefusedFusions& refused) {
  std::vector<Region> regions = Grouper(graph, options, costs, refused).run();
  regions = with_normalized_results(std::move(regions), NodeOrder(graph), options, refused);
  return with_further_results(std::move(regions), options, refused);
}

}  // namespace lathe
