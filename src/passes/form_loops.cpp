// SPDX-License-Identifier: Apache-2.0
// Loops that are written flat get their bodies: what depends on a loop's arguments and leads to what it ends with. What
// does not depend on them stays outside and is computed once.
#include <algorithm>

#include "ir/builder.h"
#include "passes/body_writer.h"
#include "passes/carry_slices.h"

namespace lathe {
namespace {

constexpr size_t kControls = 2;  // trip count and condition, before the carried values

// A loop as it is written in the graph.
struct FlatLoop {
  explicit FlatLoop(ir::Node* node) : end(node), condition(node->input(1)) {
    const auto count = static_cast<size_t>(node->attrs<LoopEndAttrs>().carried);
    for (size_t i = kControls; i < node->num_inputs(); ++i) {
      std::vector<ir::Value*>& list = i < kControls + count ? carried : i < kControls + 2 * count ? next : scanned;
      list.push_back(node->input(i));
    }
    for (const ir::Use& use : node->output()->uses())
      (use.node->attrs<LoopResultAttrs>().stacks ? stacks : lasts).push_back(use.node);
  }
  static const LoopArgumentAttrs& attrs_of(const ir::Value* argument) {
    return argument->producer()->attrs<LoopArgumentAttrs>();
  }

  ir::Node* end;
  ir::Value* condition;
  std::vector<ir::Value*> carried, next, scanned;
  std::vector<ir::Node*> stacks, lasts;  // its results
  NodeSet arguments;
  NodeSet body;
};

Result<> check_arguments(FlatLoop& loop) {
  for (const auto* list : {&loop.carried, &loop.scanned})
    for (const ir::Value* argument : *list) {
      const ir::Node* node = argument ? argument->producer() : nullptr;
      if (!node || !node->is(OpKind::loop_argument) ||
          node->attrs<LoopArgumentAttrs>().carried != (list == &loop.carried))
        return fail(ErrorCode::graph_invalid, "loop '{}': what it carries or scans is no loop_argument",
                    loop.end->name());
      loop.arguments.insert(node);
    }
  return {};
}

// Fails where a value leaves the loop other than by a result.
Result<> find_body(const ir::Graph& graph, FlatLoop& loop) {
  NodeSet dependent;
  const auto varies = [&](const ir::Value* value) {
    return value && (dependent.contains(value->producer()) || loop.arguments.contains(value->producer()));
  };
  const NodeSet results = [&] {
    NodeSet all = {loop.end};
    for (const auto* list : {&loop.stacks, &loop.lasts}) all.insert(list->begin(), list->end());
    return all;
  }();
  for (const auto& node : graph.nodes())
    if (!results.contains(node.get()) && std::ranges::any_of(node->inputs(), varies)) dependent.insert(node.get());
  std::vector<const ir::Value*> ends(loop.next.begin(), loop.next.end());
  ends.push_back(loop.condition);
  for (const ir::Node* result : loop.stacks) ends.push_back(result->input(0));
  loop.body = producers_of(std::move(ends), dependent);
  const auto leaves = [&](const ir::Value* value, const std::string& reader) {
    return fail(ErrorCode::graph_invalid,
                "'{}' is a value of each round of loop '{}', but {} outside of the loop reads it: add a loop output",
                value->name(), loop.end->name(), reader);
  };
  for (const auto& node : graph.nodes())
    if (dependent.contains(node.get()) && !loop.body.contains(node.get()))
      return leaves(*std::ranges::find_if(node->inputs(), varies), fmt::format("'{}'", node->name()));
  for (const ir::Output& output : graph.outputs())
    if (varies(output.value)) return leaves(output.value, fmt::format("network output '{}'", output.name));
  return {};
}

// Whether two numbers, one of them in a value of one element, are known to be equal.
bool is_equal(const ir::Value* number, const Expr& other) {
  return number && number->elements() && number->elements()->at(0) == other;
}

class LoopFormer {
 public:
  LoopFormer(ir::Graph& graph, FlatLoop loop)
      : graph_(graph), loop_(std::move(loop)), builder_(graph, {loop_.end->name(), loop_.end->origin(), {}}) {}

  Result<> form() {
    for (const ir::Value* argument : loop_.carried) operands_.push_back(argument->producer()->input(0));
    for (const ir::Value* argument : loop_.scanned) operands_.push_back(scanned(argument));
    LATHE_TRY(add_controls());
    LATHE_TRY(set_attributes());
    ir::CarriedDims varying;
    for (size_t i = 0; i < loop_.carried.size(); ++i)
      for (const int64_t d : FlatLoop::attrs_of(loop_.carried[i]).varying)
        varying[{i, static_cast<size_t>(d)}] = loop_.carried[i]->shape()[static_cast<size_t>(d)];
    LATHE_ASSIGN(std::unique_ptr<ir::Graph> body, graph_.make_body(loop_.end->name(), attrs_, operands_, varying));
    ir::Captured captured;
    LATHE_TRY(write(*body, captured));
    operands_.insert(operands_.end(), captured.values().begin(), captured.values().end());
    std::vector<std::unique_ptr<ir::Graph>> bodies;
    bodies.push_back(std::move(body));
    ir::Node* made =
        builder_.add_node(attrs_, std::move(bodies), std::move(operands_), loop_.carried.size() + loop_.stacks.size());
    if (!made) return fail(*builder_.error());
    LATHE_TRY(give_results(*made));
    erase_flat();
    LATHE_TRY(graph_.sort());
    return graph_.infer_all();
  }

 private:
  // What a scan goes over. The last slice is that of the last round: reversed ones end where the trip count does.
  ir::Value* scanned(const ir::Value* argument) {
    const LoopArgumentAttrs& attrs = FlatLoop::attrs_of(argument);
    ir::Value *x = argument->producer()->input(0), *trip_count = loop_.end->input(0);
    const int64_t axis = attrs.axis < 0 ? attrs.axis + x->rank() : attrs.axis;
    if (!attrs.reversed || !trip_count || is_equal(trip_count, x->shape()[static_cast<size_t>(axis)])) return x;
    ir::Value* count = builder_.reshape(builder_.cast(trip_count, DType::i64), Ints{1});
    return builder_.add(SliceAttrs{}, {x, builder_.ints({0}), count, builder_.ints({axis}), builder_.ints({1})});
  }

  // Trip count and condition of the first round.
  Result<> add_controls() {
    ir::Value* trip_count = loop_.end->input(0);
    if (trip_count) trip_count = builder_.reshape(builder_.cast(trip_count, DType::i64), Ints{});
    ir::Value* holds = nullptr;
    if (loop_.condition) {
      condition_nodes_ = producers_of({loop_.condition}, loop_.body);
      BodyWriter before(graph_, graph_, nullptr);
      for (const ir::Value* argument : loop_.carried) before.bind(argument, argument->producer()->input(0));
      LATHE_TRY(before.copy(condition_nodes_));
      LATHE_ASSIGN(holds, before.inside(loop_.condition));
      holds = builder_.reshape(holds, Ints{});
    }
    operands_.insert(operands_.begin(), {trip_count, holds});
    return {};
  }

  Result<> set_attributes() {
    attrs_.carried = static_cast<int64_t>(loop_.carried.size());
    for (const ir::Value* argument : loop_.scanned) {
      const LoopArgumentAttrs& attrs = FlatLoop::attrs_of(argument);
      attrs_.scan_axes.push_back(attrs.axis < 0 ? attrs.axis + argument->rank() + 1 : attrs.axis);
      attrs_.scan_reversed.push_back(attrs.reversed);
    }
    for (const ir::Node* result : loop_.stacks) {
      const auto& attrs = result->attrs<LoopResultAttrs>();
      attrs_.stack_axes.push_back(attrs.axis < 0 ? attrs.axis + result->output()->rank() : attrs.axis);
      attrs_.stack_reversed.push_back(attrs.reversed);
    }
    if (builder_.failed()) return fail(*builder_.error());
    return {};
  }

  Result<> write(ir::Graph& body, ir::Captured& captured) {
    BodyWriter writer(graph_, body, &captured);
    size_t input = kControls;
    for (const auto* list : {&loop_.carried, &loop_.scanned})
      for (const ir::Value* argument : *list) {
        body.rename(body.inputs()[input], argument->name());
        writer.bind(argument, body.inputs()[input++]);
      }
    LATHE_TRY(writer.copy(loop_.body));
    std::vector<ir::Value*> results = {body.inputs()[1]};  // nothing but the trip count ends it
    std::vector<ir::Value*> yielded = loop_.next;
    for (const ir::Node* stack : loop_.stacks) yielded.push_back(stack->input(0));
    for (ir::Value* value : yielded) {
      LATHE_ASSIGN(ir::Value * result, writer.inside(value));
      results.push_back(result);
    }
    if (loop_.condition) {
      BodyWriter after = writer;
      for (size_t i = 0; i < loop_.carried.size(); ++i) after.bind(loop_.carried[i], results[1 + i]);
      LATHE_TRY(after.copy(condition_nodes_));
      LATHE_ASSIGN(results[0], after.inside(loop_.condition));
      if (results[0]->rank() > 0) {
        LATHE_ASSIGN(results[0], as_scalar(body, results[0]));
      }
    }
    for (ir::Value* result : results) body.add_output(result);
    return {};
  }

  static Result<ir::Value*> as_scalar(ir::Graph& body, ir::Value* value) {
    ir::GraphBuilder builder(body, {value->name(), {}, {}});
    ir::Value* scalar = builder.reshape(value, Ints{});
    if (builder.failed()) return fail(*builder.error());
    return scalar;
  }

  Result<> give_results(const ir::Node& made) {
    const auto give = [&](ir::Node* result, ir::Value* value) {
      graph_.redirect_uses(result->output(), value);
      const std::string name = result->output()->name();
      graph_.erase(result);
      graph_.rename(value, name);
    };
    for (size_t k = 0; k < loop_.stacks.size(); ++k) {
      ir::Value* value = of_length(loop_.stacks[k], made.output(loop_.carried.size() + k));
      if (builder_.failed()) return fail(*builder_.error());
      give(loop_.stacks[k], value);
    }
    for (ir::Node* result : loop_.lasts) {
      const auto is_it = [&](const ir::Value* value) { return value == result->input(0); };
      auto found = std::ranges::find_if(loop_.carried, is_it) - loop_.carried.begin();
      if (found == std::ssize(loop_.carried)) found = std::ranges::find_if(loop_.next, is_it) - loop_.next.begin();
      if (found == std::ssize(loop_.next))
        return fail(ErrorCode::graph_invalid, "'{}' is the last value of '{}', which loop '{}' does not carry",
                    result->name(), result->input(0)->name(), loop_.end->name());
      give(result, builder_.identity(made.output(static_cast<size_t>(found))));
    }
    return {};
  }

  // The slices of all rounds, cut off or padded with zeros to the length that the result asks for.
  ir::Value* of_length(const ir::Node* result, ir::Value* x) {
    ir::Value* length = result->input(2);
    const auto& attrs = result->attrs<LoopResultAttrs>();
    const int64_t axis = attrs.axis < 0 ? attrs.axis + x->rank() : attrs.axis;
    if (!length || is_equal(length, x->shape()[static_cast<size_t>(axis)])) return builder_.identity(x);
    ir::GraphBuilder& b = builder_;
    length = b.reshape(b.cast(length, DType::i64), Ints{1});
    ir::Value* dims = b.concat({b.shape_of(x, 0, axis), length, b.shape_of(x, axis + 1)}, 0);
    ir::Value* zeros = b.expand(b.scalar_like(0, x), dims);
    ir::Value* both = b.concat(attrs.reversed ? std::vector{zeros, x} : std::vector{x, zeros}, axis);
    ir::Value *begin = b.ints({0}), *end = length;
    if (attrs.reversed) begin = b.shape_of(x, axis, axis + 1), end = b.ints({INT64_MAX});
    ir::Value* cut = b.add(SliceAttrs{}, {both, begin, end, b.ints({axis}), b.ints({1})});
    return b.reshape(cut, dims);
  }

  void erase_flat() {
    graph_.erase(loop_.end);
    erase_all(graph_, loop_.body);
    erase_all(graph_, loop_.arguments);
  }

  ir::Graph& graph_;
  FlatLoop loop_;
  ir::GraphBuilder builder_;  // adds at the graph's end; it is sorted when all is there
  LoopAttrs attrs_;
  std::vector<ir::Value*> operands_;
  NodeSet condition_nodes_;
};

}  // namespace

// A loop's results read its loop_end, so that of nested loops the inner one ends before the outer one does.
Result<bool> form_loops(ir::Graph& graph, PassContext&) {
  std::vector<ir::Node*> ends;
  for (const auto& node : graph.nodes())
    if (node->is(OpKind::loop_end)) ends.push_back(node.get());
  for (ir::Node* written : ends) {
    LATHE_ASSIGN(ir::Node * end, carry_slices_of_condition(graph, written));
    FlatLoop loop(end);
    LATHE_TRY(check_arguments(loop));
    LATHE_TRY(find_body(graph, loop));
    LATHE_TRY(LoopFormer(graph, std::move(loop)).form());
  }
  for (const auto& node : graph.nodes())
    if (node->is(OpKind::loop_argument) || node->is(OpKind::loop_result))
      return fail(ErrorCode::graph_invalid, "'{}' belongs to a loop that has no end", node->name());
  return !ends.empty();
}

}  // namespace lathe
