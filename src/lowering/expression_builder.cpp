// SPDX-License-Identifier: Apache-2.0
#include "lowering/expression_builder.h"

#include <algorithm>

#include "indexing/access.h"
#include "passes/match.h"
#include "passes/padding.h"
#include "plan/limits.h"
#include "tuning/problem.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// Whether a kernel writes the value channels-last: then no reshape is a view of it.
bool is_image(const Value& value) {
  const Node* producer = value.producer();
  return producer && value.rank() >= 3 && producer->has_trait(kPixels);
}

bool always_holds(const Interval& interval, const Space& space) {
  const Expr value = space.current(interval.value);
  return space.facts().is_at_most(interval.begin, value) && space.facts().is_less(value, interval.end);
}

// What a node that moves elements reads where its own result is read so; nullopt also where it is open which part of a
// concatenation that is, and then `cut` is told where to cut the space.
struct MovedRead {
  size_t input = 0;  // of the node
  Read read;
};
std::optional<MovedRead> source_of(const Node& node, const Read& result, Space& space,
                                   std::optional<SplitPoint>* cut = nullptr) {
  std::optional<Sources> sources = sources_of(node, 0, result.map, space);
  if (!sources) return std::nullopt;
  std::vector<Piece>& pieces = sources->pieces;
  if (node.is(OpKind::concat)) {  // the last condition says whether it is that part
    const auto found = std::find_if(pieces.begin(), pieces.end(),
                                    [&](const Piece& piece) { return always_holds(piece.map.domain.back(), space); });
    for (size_t i = 0; found == pieces.end() && cut && !*cut && i < pieces.size(); ++i)
      *cut = cut_of(pieces[i].map.domain.back(), space);
    if (found == pieces.end()) return std::nullopt;
    found->map.domain.pop_back();
    pieces = {std::move(*found)};
  }
  if (pieces.size() != 1) return std::nullopt;
  const std::optional<float> fill = sources->fill ? std::optional(static_cast<float>(*sources->fill)) : result.fill;
  if (result.fill && *fill != *result.fill) return std::nullopt;
  return MovedRead{pieces[0].input, {std::move(pieces[0].map), fill}};
}

bool same(const Read& a, const Read& b, const Space& space) {
  return a.map.domain.empty() && b.map.domain.empty() && space.current(a.map.index) == space.current(b.map.index);
}

}  // namespace

bool moves_elements(const Node& node) {
  return permutes_elements(node) || cuts_elements(node) || node.is(OpKind::concat) || node.is(OpKind::slice);
}

bool cuts_elements(const Node& node) {
  if (node.is(OpKind::pad)) return constant_padding_of(&node).has_value();
  const std::optional<Ints> steps = node.is(OpKind::slice) && node.input(4) ? ints_of(node.input(4)) : std::nullopt;
  return steps && std::any_of(steps->begin(), steps->end(), [](int64_t step) { return step != 1; });
}

ExpressionBuilder::ExpressionBuilder(Node* last, const std::vector<Range>& symbols) : space_(symbols), nodes_{last} {
  result_.index = space_.add(last->output()->shape());
  reads_.emplace(last, Read{result_, {}});
}

ExpressionBuilder::ExpressionBuilder(Node* last, Space space, IndexMap result)
    : space_(std::move(space)), result_(std::move(result)), nodes_{last} {
  reads_.emplace(last, Read{result_, {}});
}

bool ExpressionBuilder::is_known() {
  const Node& last = *nodes_.front();
  return !moves_elements(last) || source_of(last, reads_.at(&last), space_);
}

bool ExpressionBuilder::take(std::span<Node* const> nodes) {
  for (size_t i = nodes.size(); i-- > 0;) {
    Node* node = nodes[i];
    if (contains(node)) continue;
    std::optional<Read> common;
    for (const ir::Use& use : node->output()->uses()) {
      if (!contains(use.node)) continue;  // its result is not read here
      if (use.node->is(OpKind::concat)) {
        const std::optional<MovedRead> source = source_of(*use.node, reads_.at(use.node), space_, &cut_);
        if (!source) return false;
        if (source->input != use.index) continue;
      }
      std::optional<Read> read = read_through(use, *node->output());
      if (!read || (common && !same(*common, *read, space_))) return false;
      common = std::move(read);
    }
    if (!common) continue;
    if (moves_elements(*node) ? !source_of(*node, *common, space_, &cut_) : common->fill.has_value()) return false;
    nodes_.push_back(node);
    reads_.emplace(node, *std::move(common));
  }
  return true;
}

// How the user reads the value; nullopt where it broadcasts it.
std::optional<Read> ExpressionBuilder::read_through(const ir::Use& use, const Value& value) {
  const Read& result = reads_.at(use.node);
  if (moves_elements(*use.node)) {
    std::optional<MovedRead> source = source_of(*use.node, result, space_, &cut_);
    return source && source->input == use.index ? std::optional(std::move(source->read)) : std::nullopt;
  }
  return value.shape() == use.node->output()->shape() ? std::optional(result) : std::nullopt;
}

std::optional<Read> ExpressionBuilder::read_of(const Node& node) {
  std::optional<Read> read;
  for (const ir::Use& use : node.output()->uses()) {
    if (!contains(use.node)) return std::nullopt;
    std::optional<Read> through = read_through(use, *node.output());
    if (!through || (read && !same(*read, *through, space_))) return std::nullopt;
    read = std::move(through);
  }
  return read;
}

bool ExpressionBuilder::grow(const std::function<bool(const Node&)>& may_join) {
  for (size_t i = 0; i < nodes_.size(); ++i)
    for (const Value* input : nodes_[i]->inputs()) {
      Node* producer = input ? input->producer() : nullptr;
      if (!producer || contains(producer) || producer->num_outputs() != 1 || input->is_graph_output() ||
          !may_join(*producer))
        continue;
      std::optional<Read> read = read_of(*producer);
      if (!read) continue;
      // The fill is what is read in place of an element, not what would be computed from one.
      const bool moves = moves_elements(*producer);
      if (moves ? !source_of(*producer, *read, space_) : read->fill.has_value()) continue;
      nodes_.push_back(producer);
      reads_.emplace(producer, *std::move(read));
      return true;
    }
  return false;
}

// A reshape of memory that only pointwise nodes read.
bool ExpressionBuilder::is_plain_view(const Node& node) const {
  if (!permutes_elements(node) || reorders_elements(node) || contains(node.input(0)->producer())) return false;
  const std::vector<ir::Use>& uses = node.output()->uses();
  return !is_image(*node.input(0)) &&
         std::none_of(uses.begin(), uses.end(), [](const ir::Use& use) { return moves_elements(*use.node); });
}

void ExpressionBuilder::trim() {
  for (size_t i = nodes_.size(); i-- > 1;)
    if (is_plain_view(*nodes_[i])) {
      reads_.erase(nodes_[i]);
      nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(i));
    }
}

void ExpressionBuilder::drop_last() {
  reads_.erase(nodes_.back());
  nodes_.pop_back();
}

bool ExpressionBuilder::is_movement_only() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node* node) { return permutes_elements(*node); });
}

std::optional<Region> ExpressionBuilder::region(const std::function<size_t(const Node*)>& position) const {
  Node* last = nodes_.front();
  Region region;
  region.kind = RegionKind::pointwise;
  region.root = last;
  region.outputs = {last->output()};
  region.nodes = nodes_;
  std::sort(region.nodes.begin(), region.nodes.end(), [&](Node* a, Node* b) { return position(a) < position(b); });
  Space space = space_;
  IndexedProgram program(nullptr);
  for (const Node* node : region.nodes) {
    const Read& read = reads_.at(node);
    bool added = true;
    if (!moves_elements(*node)) {
      added = program.add(*node, space.current(read.map.index));
    } else {
      const MovedRead source = *source_of(*node, read, space);
      added = contains(node->input(source.input)->producer()) ? program.add_moved(*node, source.input)
                                                              : program.add_moved(*node, source.input, source.read);
    }
    if (!added) return std::nullopt;
  }
  std::optional<Expression> expression = program.finish(region.result(), std::move(space));
  if (!expression) return std::nullopt;
  region.expression = *std::move(expression);
  region.written = result_;
  return region;
}

bool IndexedProgram::add(const Node& node, const Shape& index) {
  for (Value* input : node.inputs()) {
    const auto last = last_indices_.find(input);
    if (last != last_indices_.end() && last->second != index) program_.forget(input);
  }
  if (!program_.add(node)) return false;
  if (reads_.size() == program_.operands().size()) return true;
  while (reads_.size() < program_.operands().size()) {
    std::optional<Shape> own =
        broadcast_index(program_.operands()[reads_.size()]->shape(), node.output()->shape(), index);
    if (!own) return false;
    reads_.push_back({{*std::move(own), {}}, {}});
  }
  for (const Value* input : node.inputs()) last_indices_.insert_or_assign(input, index);
  return true;
}

bool IndexedProgram::add_moved(const Node& node, size_t input, Read read) {
  if (!program_.add_moved(node, input, false)) return false;
  reads_.push_back(std::move(read));
  return true;
}

void IndexedProgram::add_bias(Value* bias, const Shape& index) {
  program_.add_bias(bias);
  reads_.push_back({{{index[1]}, {}}, {}});
}

std::optional<Expression> IndexedProgram::finish(const Value* result, Space space) const {
  if (space.is_split()) space.drop_unit_axes();
  if (space.rank() > plan::kMaxRank) return std::nullopt;
  for (size_t i = 0; i < reads_.size(); ++i) {
    const Shape& dims = program_.operands()[i]->shape();
    if (!access_of(reads_[i].map, dense_strides(dims, Layout::linear), space)) return std::nullopt;
  }
  Expression expression{std::move(space), {}, {}, reads_};
  expression.program = program_.finish(result, expression.operands);
  return expression;
}

}  // namespace lathe
