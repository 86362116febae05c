// SPDX-License-Identifier: Apache-2.0
// Regions: the pieces of a graph that become one step each (or none, for views).
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "device/program.h"
#include "indexing/index_map.h"
#include "lowering/cost.h"
#include "tuning/backend_traits.h"

namespace lathe {

// The nodes of a graph by their places in it.
class NodeOrder {
 public:
  explicit NodeOrder(const ir::Graph& graph) : symbols(graph.symbol_ranges()) {
    for (const auto& node : graph.nodes()) places_.emplace(node.get(), places_.size());
  }
  void sort(std::vector<ir::Node*>& nodes) const {
    std::sort(nodes.begin(), nodes.end(), [&](ir::Node* a, ir::Node* b) { return places_.at(a) < places_.at(b); });
  }
  const std::vector<Range> symbols;  // of the graph

 private:
  std::unordered_map<const ir::Node*, size_t> places_;
};

// Whether a node is free to become part of a region.
using MayJoin = std::function<bool(const ir::Node&)>;

enum class RegionKind {
  kernel,     // a heavy op and its fused epilogue
  pointwise,  // a pointwise expression
  movement,   // transpose, slice, expand, concat: strided copies, or nothing when placed for free
  view,       // the same memory under other dims
  single,     // one op, by a kernel for it alone, by copies, or by its plain evaluation
};

// How a tensor is read at a point of a space: the element that the map says, or the fill where there is none.
struct Read {
  IndexMap map;
  std::optional<float> fill;
  bool operator==(const Read&) const = default;
};

// What is computed at each point of a space from elements of tensors. Two factors of which one is transposed,
// y[i, j] = a[i, j] * b[j, i]: program "in=2; r2=mul r0 r1; out r2", reads (i0, i1) and (i1, i0).
struct Expression {
  Space space{{}};
  Program program;
  std::vector<ir::Value*> operands;  // the program's inputs; what follows a kernel's root has the root's result before
  std::vector<Read> reads;           // of each of them
  // Of a product's first factor: the node that normalises the rows of the first operand by the others, and the program
  // is that operand. Of a product: that which normalises the result's rows by the last operands, which no read moves.
  // What it gives is the region's last result, and the rows themselves are the one before, where others read them, too.
  const ir::Node* normalization = nullptr;
  // Of an attention's keys or values: the first operand is a pool of blocks, read in the block that the second one
  // names; both are one input of the program. Its map says 0 along this dimension of the pool.
  std::optional<size_t> paged_dim;

  // Whether operands that do not just broadcast to a result of these dims, over its own axes, are among them.
  bool moves_elements(const Shape& dims) const;
  bool moves_operand(size_t i, const Shape& dims) const;
};

struct Region {
  RegionKind kind = RegionKind::single;
  ir::Node* root = nullptr;  // pointwise: the last node
  // The last one is where the region runs, but for those that make further results.
  std::vector<ir::Node*> nodes;
  // Where the program has several results, these, of the first one's shape.
  std::vector<ir::Value*> outputs;
  // Kernel: the epilogue, over the space of the root's result; pointwise: all that it computes; of views and
  // transpositions, where maps tell it: which element each point reads.
  Expression expression;
  bool pairs = false;  // Problem::pairs: the root's result is read in pairs, as the program's first two inputs
  IndexMap written;    // which element of the result it computes at a point

  // Inputs of the root, by their numbers, that the kernel computes as it reads them, or reads where they lie in another
  // order.
  std::map<size_t, Expression> producers;

  // Where the result is computed by boxes of its elements, by a step each (lowering/boxes.h): each of them as a region.
  // This region's own members are those of the first, its nodes those of all.
  std::vector<Region> boxes;

  const ir::Value* result() const { return outputs[0]; }
  bool has_further_results() const { return outputs.size() > 1 && expression.program.outputs.size() > 1; }
  // It reads or writes in another order than the result's: y = transpose(transpose(a * b) + c) is written in the order
  // of the product, but reads c in another.
  bool moves_elements() const;
  bool is_bias(const ir::Value& operand) const;       // of a convolution: along dimension 1 of its result
  const Expression* producer_of(size_t input) const;  // nullptr = it is read as it is
  // Inputs with producers in the order in which they are given up: the last first, packed weights, which would be
  // evaluated in each run, at the end.
  std::vector<size_t> produced_inputs() const;
  // What is in memory of the root's inputs.
  ir::Value* input(size_t i) const;

  // Whether the result has the elements of the expression's operand in another order, in which its memory may already
  // hold them.
  bool only_permutes() const;
  // The result's strides where that operand has these; nullopt when the axes of one dimension do not lie within each
  // other.
  std::optional<Shape> permuted_strides(const Shape& of_operand) const;
};

// Fusions that no tactic of the target takes, as was found by asking. Grouping leaves them out when it groups again.
class RefusedFusions {
 public:
  // Leaves out the outermost fusion of a region that no tactic takes, for these reasons: the producer of `input`,
  // further results, the last producer, the movement behind a kernel, its epilogue, padding, what else moves elements,
  // at last the region as a whole, whose nodes then stand alone.
  void add(const Region& region, const std::vector<std::string>& reasons, std::optional<size_t> input = {});
  // Nothing but its plain evaluation is left of the node.
  void give_up(const ir::Node& node, const std::vector<std::string>& reasons);

  bool has_producer(const ir::Node& root, size_t input) const { return producers_.contains({&root, input}); }
  bool has_movement_behind(const ir::Node& root) const { return movements_.contains(&root); }
  bool has_epilogue_of(const ir::Node& root) const { return epilogues_.contains(&root); }
  bool has_further_results_of(const ir::Node& root) const { return further_.contains(&root); }
  bool stands_alone(const ir::Node& node) const { return alone_.contains(&node); }
  // Why no kernel runs a node that was given up; empty = it was not.
  std::vector<std::string> reasons(const ir::Node& node) const;
  // How many there are, and how often one was to be left out. Where the latter alone grows, grouping has not heeded
  // what was left out before, and would begin again without end.
  size_t size() const {
    return producers_.size() + movements_.size() + epilogues_.size() + further_.size() + alone_.size() +
           reasons_.size();
  }
  size_t asked() const { return notes_.size() + reasons_.size(); }
  std::string last_in_vain() const;  // the report about the last one

  struct Note {
    const ir::Node* root = nullptr;
    std::string what;
    std::vector<std::string> reasons;
  };
  const std::vector<Note>& notes() const { return notes_; }

 private:
  // Some of a region's nodes stand alone from now on; false where there are none, or no others.
  bool isolate(const Region& region, const std::function<bool(const ir::Node&)>& which);

  std::set<std::pair<const ir::Node*, size_t>> producers_;
  std::set<const ir::Node*> movements_, epilogues_, further_, alone_;
  std::map<const ir::Node*, std::vector<std::string>> reasons_;
  std::vector<Note> notes_;
};

struct GroupingOptions {
  bool fuse = true;  // false keeps every node by itself (for comparing against)
  BackendTraits traits = {};
};

// Splits the graph into regions, in an order in which every value is produced before it is read. Constant nodes belong
// to none.
std::vector<Region> group_regions(const ir::Graph& graph, const GroupingOptions& options, CostModel& costs,
                                  const RefusedFusions& refused = {});

// A region of this node alone, as a kernel when it is heavy (its bias, if any, is the program).
Region region_alone(ir::Node& node, const std::vector<Range>& symbols);

}  // namespace lathe
