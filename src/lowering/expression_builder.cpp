// SPDX-License-Identifier: Apache-2.0
#include "lowering/expression_builder.h"

#include <algorithm>

#include "indexing/access.h"
#include "passes/match.h"
#include "passes/padding.h"

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

bool same(const Read& a, const Read& b, const Space& space) {
  const auto same_interval = [&](const Interval& one, const Interval& other) {
    return space.current(one.value) == space.current(other.value) && one.begin == other.begin && one.end == other.end;
  };
  return a.fill == b.fill && space.current(a.map.index) == space.current(b.map.index) &&
         std::ranges::equal(a.map.domain, b.map.domain, same_interval);
}

// Kernels that compute an input as they read it go by the place of the first operand, which is to be there everywhere.
Expression with_whole_operand_first(Expression expression) {
  const auto whole = std::ranges::find_if(expression.reads, [](const Read& read) { return !read.fill; });
  if (whole == expression.reads.begin() || whole == expression.reads.end()) return expression;
  const auto at = static_cast<uint16_t>(whole - expression.reads.begin());
  std::swap(expression.reads[0], expression.reads[at]);
  std::swap(expression.operands[0], expression.operands[at]);
  const auto renamed = [&](uint16_t& reg) { reg = reg == 0 ? at : reg == at ? uint16_t{0} : reg; };
  for (Instruction& instruction : expression.program.code) {
    const auto count = static_cast<size_t>(opcode_info(static_cast<int>(instruction.op))->operands);
    for (size_t i = 0; i < count; ++i) renamed(instruction.operands[i]);
  }
  for (uint16_t& reg : expression.program.outputs) renamed(reg);
  return expression;
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

bool takes_a_copy(const Node& node) {
  const bool is_slice = node.is(OpKind::slice);
  if (!node.has_trait(kView) && !is_slice) return node.is(OpKind::transpose);
  const Node* producer = node.input(0)->producer();
  return producer && ((producer->has_trait(kCuts) && !is_slice) || takes_a_copy(*producer));
}

ExpressionBuilder::ExpressionBuilder(Node* last, const NodeOrder& order)
    : order_(order), space_(order.symbols), nodes_{last} {
  result_.index = space_.add(last->output()->shape());
  reads_.emplace(last, Read{result_, {}});
}

ExpressionBuilder::ExpressionBuilder(Node* last, const NodeOrder& order, Space space, IndexMap result)
    : order_(order), space_(std::move(space)), result_(std::move(result)), nodes_{last} {
  reads_.emplace(last, Read{result_, {}});
}

// null also where it is open which part of a concatenation it reads; then cut() may tell where to cut the space.
const ExpressionBuilder::MovedRead* ExpressionBuilder::source_of(const Node& node) {
  const auto known = sources_.find(&node);
  if (known != sources_.end()) return &known->second;
  std::optional<MovedRead> found = find_source(node);
  return found ? &sources_.emplace(&node, *std::move(found)).first->second : nullptr;
}

std::optional<ExpressionBuilder::MovedRead> ExpressionBuilder::find_source(const Node& node) {
  const Read& result = reads_.at(&node);
  std::optional<Sources> sources = sources_of(node, 0, result.map, space_);
  if (!sources) return std::nullopt;
  std::vector<Piece>& pieces = sources->pieces;
  if (joins_parts_ && node.is(OpKind::concat))
    if (std::optional<MovedRead> part = find_part(node, *sources)) return part;
  if (node.is(OpKind::concat)) {  // the last condition says whether it is that part
    const auto found = std::find_if(pieces.begin(), pieces.end(),
                                    [&](const Piece& piece) { return always_holds(piece.map.domain.back(), space_); });
    for (size_t i = 0; found == pieces.end() && !cut_ && i < pieces.size(); ++i)
      cut_ = cut_of(pieces[i].map.domain.back(), space_);
    if (found == pieces.end()) return std::nullopt;
    found->map.domain.pop_back();
    pieces = {std::move(*found)};
  }
  if (pieces.size() != 1) return std::nullopt;
  const std::optional<float> fill = sources->fill ? std::optional(static_cast<float>(*sources->fill)) : result.fill;
  if (result.fill && *fill != *result.fill) return std::nullopt;
  return MovedRead{pieces[0].input, {std::move(pieces[0].map), fill}};
}

// The part's formula where the rest is, too.
std::optional<ExpressionBuilder::MovedRead> ExpressionBuilder::find_part(const Node& concat, const Sources& sources) {
  const Read& result = reads_.at(&concat);
  if (result.fill || !result.map.domain.empty() || sources.pieces.size() != 2) return std::nullopt;
  std::optional<ComputedPart> part = computed_part(concat);
  if (!part) return std::nullopt;
  parts_.emplace(&concat, Parts{*std::move(part), sources.pieces[0].map.domain.back()});
  return MovedRead{0, {{sources.pieces[0].map.index, {}}, {}}};
}

// Whether nothing but the rest of a tensor is moved by it.
bool ExpressionBuilder::is_rest(const Node& node) const {
  return std::ranges::all_of(node.output()->uses(), [&](const ir::Use& use) {
    if (unread_.contains(use.node)) return permutes_elements(node);
    return contains(use.node) && parts_.contains(use.node) && parts_.at(use.node).of.rest == &node;
  });
}

bool ExpressionBuilder::has_parts_whole() const {
  return std::ranges::all_of(parts_, [&](const auto& each) {
    const ComputedPart& part = each.second.of;
    const auto is_inside = [&](const auto& node) { return contains(node.first); };
    return !contains(each.first) ||
           (contains(part.part) && contains(part.rest) && std::ranges::all_of(part.way, is_inside));
  });
}

bool ExpressionBuilder::is_known() {
  const Node& last = *nodes_.front();
  return !moves_elements(last) || source_of(last);
}

bool ExpressionBuilder::take(std::span<Node* const> nodes) {
  for (size_t i = nodes.size(); i-- > 0;) {
    Node* node = nodes[i];
    if (contains(node)) continue;
    std::optional<Read> common;
    for (const ir::Use& use : node->output()->uses()) {
      if (!contains(use.node)) continue;  // its result is not read here
      if (use.node->is(OpKind::concat)) {
        const MovedRead* const source = source_of(*use.node);
        if (!source) return false;
        if (source->input != use.index) continue;
      }
      std::optional<Read> read = read_through(use, *node->output());
      if (!read || (common && !same(*common, *read, space_))) return false;
      common = std::move(read);
    }
    if (common && !add(node, *std::move(common))) return false;
  }
  return true;
}

// How the user reads the value; nullopt where it broadcasts it.
std::optional<Read> ExpressionBuilder::read_through(const ir::Use& use, const Value& value) {
  if (moves_elements(*use.node)) {
    const MovedRead* const source = source_of(*use.node);
    return source && source->input == use.index ? std::optional(source->read) : std::nullopt;
  }
  if (value.shape() != use.node->output()->shape()) return std::nullopt;
  return read_of_input(*use.node, use.index);
}

// How a node that computes reads an input of its result's shape.
Read ExpressionBuilder::read_of_input(const Node& node, size_t input) const {
  Read read = reads_.at(&node);
  for (const auto& [concat, part] : parts_) {
    const auto next = part.of.way.find(&node);
    if (next == part.of.way.end() || next->second == input) continue;
    read.map.domain.push_back(part.interval);
    read.fill = neutral_number(node);
  }
  return read;
}

std::vector<Read> ExpressionBuilder::reads_of_inputs(const Node& node) const {
  std::vector<Read> reads;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    reads.push_back(read_of_input(node, i));
    reads.back().map.index = space_.current(reads.back().map.index);
  }
  return reads;
}

std::optional<Read> ExpressionBuilder::read_of(const Node& node) {
  std::optional<Read> read;
  for (const ir::Use& use : node.output()->uses()) {
    if (!contains(use.node) || unread_.contains(use.node)) return std::nullopt;
    std::optional<Read> through = read_through(use, *node.output());
    if (!through || (read && !same(*read, *through, space_))) return std::nullopt;
    read = std::move(through);
  }
  return read;
}

// Takes in the node if it can be read so: the fill is what is read in place of an element, not what would be computed
// from one, unless that is the same.
bool ExpressionBuilder::add(Node* node, Read read) {
  const bool fills_alike = !parts_.empty() && read.fill == 0.0f && keeps_zeros(*node);
  if (read.fill && !moves_elements(*node) && !fills_alike) return false;
  reads_.emplace(node, std::move(read));
  if (moves_elements(*node) && !source_of(*node)) return reads_.erase(node), false;
  nodes_.push_back(node);
  return true;
}

void ExpressionBuilder::grow(const MayJoin& may_join, size_t most) {
  while (nodes_.size() < most && add_producer(may_join)) {
  }
}

bool ExpressionBuilder::add_producer(const MayJoin& may_join) {
  for (size_t i = 0; i < nodes_.size(); ++i)
    for (const Value* input : nodes_[i]->inputs()) {
      Node* producer = input ? input->producer() : nullptr;
      if (!producer || contains(producer) || producer->num_outputs() != 1 || input->is_graph_output() ||
          !may_join(*producer))
        continue;
      if (is_rest(*producer)) {
        reads_.emplace(producer, Read());
        nodes_.push_back(producer);
        unread_.insert(producer);
        return true;
      }
      if (std::optional<Read> read = read_of(*producer); read && add(producer, *std::move(read))) return true;
    }
  return false;
}

// A reshape of memory that only pointwise nodes read; one of a window, such as a slice, would be a copy.
bool ExpressionBuilder::is_plain_view(const Node& node) const {
  if (!permutes_elements(node) || reorders_elements(node) || contains(node.input(0)->producer())) return false;
  const std::vector<ir::Use>& uses = node.output()->uses();
  const Node* from = node.input(0)->producer();
  while (from && from->has_trait(kView)) from = from->input(0)->producer();
  if (from && from->has_trait(kCuts)) return false;
  return !is_image(*node.input(0)) &&
         std::none_of(uses.begin(), uses.end(), [](const ir::Use& use) { return moves_elements(*use.node); });
}

void ExpressionBuilder::forget(const Node* node) {
  reads_.erase(node);
  sources_.erase(node);
  parts_.erase(node);
  unread_.erase(node);
}

void ExpressionBuilder::trim() {
  for (size_t i = nodes_.size(); i-- > 1;)
    if (is_plain_view(*nodes_[i])) {
      forget(nodes_[i]);
      nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(i));
    }
}

void ExpressionBuilder::drop_last() {
  forget(nodes_.back());
  nodes_.pop_back();
}

bool ExpressionBuilder::is_movement_only() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node* node) { return permutes_elements(*node); });
}

std::optional<Region> ExpressionBuilder::region() {
  Region region;
  region.kind = RegionKind::pointwise;
  region.root = nodes_.front();
  region.outputs = {region.root->output()};
  region.nodes = nodes_;
  order_.sort(region.nodes);
  if (!is_known() || !has_parts_whole()) return std::nullopt;
  ProgramBuilder program(nullptr);
  for (const Node* node : region.nodes) {
    if (unread_.contains(node)) continue;
    if (!moves_elements(*node)) {
      if (!program.add(*node, reads_of_inputs(*node))) return std::nullopt;
      continue;
    }
    const MovedRead& source = sources_.at(node);
    if (contains(node->input(source.input)->producer()))
      program.add_moved(*node, source.input);
    else if (!program.add_moved(*node, source.input, source.read))
      return std::nullopt;
  }
  std::optional<Expression> expression = program.finish(region.result(), space_);
  if (!expression) return std::nullopt;
  region.expression = with_whole_operand_first(*std::move(expression));
  region.written = result_;
  return region;
}

}  // namespace lathe
