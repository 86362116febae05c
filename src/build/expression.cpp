// SPDX-License-Identifier: Apache-2.0
#include "build/expression.h"

#include <algorithm>

#include "plan/limits.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// Those write channels-last, which no reshape can be a view of.
bool is_image(const Value& value) {
  const Node* producer = value.producer();
  return producer && value.rank() >= 3 &&
         (producer->is(OpKind::convolution) || producer->is(OpKind::deconvolution) || producer->is(OpKind::pooling) ||
          producer->is(OpKind::resize));
}

}  // namespace

Expression::Expression(Node* last) : space_(last->output()->shape()), nodes_{last} {
  views_.emplace(last, space_.whole());
}

bool Expression::is_known() {
  const Node& last = *nodes_.front();
  return !moves_elements(last) || space_.before(last, space_.whole());
}

// How the reader sees the value: only where it does not broadcast it.
std::optional<AxisView> Expression::view_through(const ir::Use& use, const Value& value) {
  if (may_be_excerpt(*use.node)) return std::nullopt;  // it reads memory
  const AxisView output = views_.at(use.node);
  if (moves_elements(*use.node)) return use.index == 0 ? space_.before(*use.node, output) : std::nullopt;
  return value.shape() == output.shape ? std::optional(output) : std::nullopt;
}

std::optional<AxisView> Expression::view_of(const Node& node) {
  std::optional<AxisView> view;
  for (const ir::Use& use : node.output()->uses()) {
    if (!contains(use.node)) return std::nullopt;
    std::optional<AxisView> through = view_through(use, *node.output());
    if (!through || (view && !space_.same(*view, *through))) return std::nullopt;
    view = std::move(through);
  }
  return view;
}

bool Expression::grow(const std::function<bool(const Node&)>& may_join) {
  for (size_t i = 0; i < nodes_.size(); ++i)
    for (const Value* input : nodes_[i]->inputs()) {
      Node* producer = input ? input->producer() : nullptr;
      if (!producer || contains(producer) || producer->num_outputs() != 1 || input->is_graph_output() ||
          !may_join(*producer))
        continue;
      std::optional<AxisView> view = view_of(*producer);
      // What it reads must be known to consist of axes, too.
      if (!view || (moves_elements(*producer) && !space_.before(*producer, *view))) continue;
      nodes_.push_back(producer);
      views_.emplace(producer, *std::move(view));
      return true;
    }
  return false;
}

// A reshape of memory that only pointwise nodes read.
bool Expression::is_plain_view(const Node& node) const {
  if (!moves_elements(node) || reorders_elements(node) || contains(node.input(0)->producer())) return false;
  const std::vector<ir::Use>& uses = node.output()->uses();
  return !is_image(*node.input(0)) &&
         std::none_of(uses.begin(), uses.end(), [](const ir::Use& use) { return moves_elements(*use.node); });
}

void Expression::trim() {
  for (size_t i = nodes_.size(); i-- > 1;)
    if (is_plain_view(*nodes_[i])) {
      views_.erase(nodes_[i]);
      nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(i));
    }
}

void Expression::drop_last() {
  views_.erase(nodes_.back());
  nodes_.pop_back();
}

bool Expression::is_movement_only() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node* node) { return moves_elements(*node); });
}

std::optional<Region> Expression::region(const std::function<size_t(const Node*)>& position) const {
  Node* last = nodes_.front();
  Region region;
  region.kind = RegionKind::pointwise;
  region.root = last;
  region.outputs = {last->output()};
  region.nodes = nodes_;
  std::sort(region.nodes.begin(), region.nodes.end(), [&](Node* a, Node* b) { return position(a) < position(b); });
  AxisSpace space = space_;
  ArrangedProgram program(space, nullptr);
  for (const Node* node : region.nodes) {
    bool added = true;
    if (may_be_excerpt(*node))
      added = program.add_excerpt(*node, views_.at(node));
    else if (!moves_elements(*node))
      added = program.add(*node, views_.at(node));
    else if (contains(node->input(0)->producer()))
      added = program.add_moved(*node);
    else
      added = program.add_moved(*node, *space.before(*node, views_.at(node)));
    if (!added) return std::nullopt;
  }
  if (!program.knows_excerpts() || space.extents().size() > plan::kMaxRank) return std::nullopt;
  region.program = program.program().finish(region.result(), region.operands);
  if (std::any_of(nodes_.begin(), nodes_.end(),
                  [](const Node* node) { return moves_elements(*node) || may_be_excerpt(*node); }))
    region.arrangement = program.arrangement(views_.at(last));
  return region;
}

bool ArrangedProgram::add(const Node& node, const AxisView& view) {
  for (Value* input : node.inputs()) {
    const auto last = last_views_.find(input);
    if (last != last_views_.end() && !space_->same(last->second, view)) program_.forget(input);
  }
  const size_t before = program_.num_operands();
  if (!program_.add(node)) return false;
  note_views(view);
  if (program_.num_operands() == before) return true;
  for (const Value* input : node.inputs()) last_views_.insert_or_assign(input, view);
  return true;
}

bool ArrangedProgram::add_moved(const Node& node, const AxisView& input) {
  if (!program_.add_moved(node, false)) return false;
  note_views(input);
  return true;
}

bool ArrangedProgram::add_excerpt(const Node& node, const AxisView& view) {
  if (!program_.add_moved(node, false)) return false;
  note_views(view);
  excerpts_.back() = excerpt_of(node);
  return true;
}

bool ArrangedProgram::knows_excerpts() const {
  for (size_t i = 0; i < excerpts_.size(); ++i) {
    const AxisView view = space_->finished(views_[i]);
    for (size_t d = 0; excerpts_[i] && d < view.axes.size(); ++d)
      if (!excerpts_[i]->whole[d] && view.axes[d].size() != 1) return false;
  }
  return true;
}

Region::Arrangement ArrangedProgram::arrangement(const AxisView& result) const {
  Region::Arrangement arrangement{space_->extents(), {}, excerpts_, space_->finished(result), {}};
  for (const AxisView& view : views_) arrangement.operands.push_back(space_->finished(view));
  return arrangement;
}

}  // namespace lathe
