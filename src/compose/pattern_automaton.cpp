// SPDX-License-Identifier: Apache-2.0
// From a pattern to an automaton without a choice, and from that to one that is in one state at a time.
#include <algorithm>
#include <map>

#include "base/utf8.h"
#include "compose/character_class.h"
#include "compose/pattern.h"

namespace lathe {
namespace {

constexpr size_t kMostNodes = 100'000;    // of the automaton with choices
constexpr size_t kMostStates = 10'000;    // of that without
constexpr size_t kMostWork = 50'000'000;  // looks at nodes: below a second, and 0.4 GB
constexpr uint32_t kSurrogates = 0xd800, kBehindSurrogates = 0xe000;

enum class NodeKind : uint8_t { end, byte, fork, text_begin, text_end, word_edge, no_word_edge };

// A byte from `first` to `last` leads to `next`; a fork to both without reading any; others to `next` where they hold.
struct Node {
  NodeKind kind = NodeKind::end;
  uint8_t first = 1, last = 0;
  size_t next = 0, other = 0;
};

// Nodes are made from the pattern's end to its begin: `next` is what comes behind.
class Nodes {
 public:
  bool is_full() const { return nodes_.size() >= kMostNodes; }
  const std::vector<Node>& all() const { return nodes_; }

  size_t add(const Pattern& pattern, size_t next) {
    if (is_full()) return next;
    switch (pattern.kind) {
      case PatternKind::characters:
        return add_characters(pattern.ranges, next);
      case PatternKind::sequence:
        for (auto part = pattern.parts.rbegin(); part != pattern.parts.rend(); ++part) next = add(*part, next);
        return next;
      case PatternKind::choice: {
        size_t begin = add(pattern.parts.back(), next);
        for (size_t i = pattern.parts.size() - 1; i-- > 0;) begin = fork(add(pattern.parts[i], next), begin);
        return begin;
      }
      case PatternKind::repetition:
        return add_repetition(pattern, next);
      case PatternKind::text_begin:
        return add({NodeKind::text_begin, 1, 0, next});
      case PatternKind::text_end:
        return add({NodeKind::text_end, 1, 0, next});
      case PatternKind::word_edge:
        return add({NodeKind::word_edge, 1, 0, next});
      case PatternKind::no_word_edge:
        return add({NodeKind::no_word_edge, 1, 0, next});
    }
    return next;
  }

 private:
  size_t add(Node node) {
    nodes_.push_back(node);
    return nodes_.size() - 1;
  }
  size_t fork(size_t next, size_t other) { return add({NodeKind::fork, 1, 0, next, other}); }

  size_t add_repetition(const Pattern& pattern, size_t next) {
    const Pattern& part = pattern.parts[0];
    size_t begin = next;
    if (pattern.most == kNoMost) {
      begin = fork(next, next);
      const size_t round = add(part, begin);
      nodes_[begin].next = round;
    }
    for (int i = pattern.least; i < pattern.most && !is_full(); ++i) begin = fork(add(part, begin), next);
    for (int i = 0; i < pattern.least && !is_full(); ++i) begin = add(part, begin);
    return begin;
  }

  size_t add_characters(const std::vector<CodeRange>& ranges, size_t next) {
    size_t begin = add({NodeKind::byte, 1, 0, next});  // reads nothing
    const auto add_range = [&](uint32_t first, uint32_t last) {
      if (first <= last) add_codes(first, last, next, begin);
    };
    for (const CodeRange& range : ranges) {
      add_range(range.first, std::min(range.last, kSurrogates - 1));
      add_range(std::max(range.first, kBehindSurrogates), range.last);
    }
    return begin;
  }

  // Puts characters in front of `begin` as sequences of bytes, each byte of which is in a range of its own.
  void add_codes(uint32_t first, uint32_t last, size_t next, size_t& begin) {
    const auto cut = [&](uint32_t behind) {
      add_codes(first, behind, next, begin);
      add_codes(behind + 1, last, next, begin);
    };
    for (const uint32_t longest : {0x7fu, 0x7ffu, 0xffffu})
      if (first <= longest && longest < last) return cut(longest);
    const std::string from = to_utf8(first), to = to_utf8(last);
    for (size_t i = 1; i < from.size(); ++i) {
      const uint32_t rest = (1u << 6 * i) - 1;
      if ((first | rest) == (last | rest)) continue;
      if ((first & rest) != 0) return cut(first | rest);
      if ((last & rest) != rest) return cut((last & ~rest) - 1);
    }
    size_t at = next;
    for (size_t i = from.size(); i-- > 0;)
      at = add({NodeKind::byte, static_cast<uint8_t>(from[i]), static_cast<uint8_t>(to[i]), at});
    begin = fork(at, begin);
  }

  std::vector<Node> nodes_ = {Node()};
};

// What lies beside a place in a string.
enum class Beside : uint8_t { nothing, word, other };

class States {
 public:
  explicit States(const std::vector<Node>& nodes) : nodes_(nodes) {
    looks_aside_ = std::ranges::any_of(nodes, [](const Node& node) { return node.kind > NodeKind::fork; });
    give_classes();
  }

  Result<WordAutomaton> run(size_t begin) {
    number_of({{begin}, Beside::nothing});
    for (size_t at = 0; at < states_.size(); ++at) {
      if (work_ > kMostWork)
        return fail(ErrorCode::op_mode_unsupported, "its pattern has too many parts that may match at once");
      if (states_.size() > kMostStates)
        return fail(ErrorCode::op_mode_unsupported, "its pattern needs more than {} states", kMostStates);
      const State state = states_[at];
      found_.word_at.push_back(closure(state, Beside::nothing).contains_end ? 0 : -1);
      add_transitions(state, static_cast<int32_t>(at));
    }
    return std::move(found_);
  }

 private:
  struct State {
    std::vector<size_t> nodes;  // sorted, before what reads nothing
    Beside before = Beside::nothing;
    auto operator<=>(const State&) const = default;
  };
  struct Closure {
    std::vector<size_t> readers;
    bool contains_end = false;
  };

  static Beside kind_of(size_t byte) { return is_word(static_cast<uint32_t>(byte)) ? Beside::word : Beside::other; }

  // Class 0 is the zero's, which is no part of a string.
  void give_classes() {
    std::array<bool, 257> begins{};
    begins[1] = true;
    for (size_t byte = 1; byte < 256; ++byte) begins[byte] |= kind_of(byte) != kind_of(byte - 1);
    for (const Node& node : nodes_)
      if (node.kind == NodeKind::byte) begins[node.first] = begins[node.last + 1u] = true;
    first_of_class_ = {0};
    for (size_t byte = 1; byte < 256; ++byte) {
      if (begins[byte]) first_of_class_.push_back(byte);
      found_.reader.class_of[byte] = static_cast<uint8_t>(first_of_class_.size() - 1);
    }
    found_.reader.classes = first_of_class_.size();
  }

  int32_t number_of(State state) {
    const auto [known, is_new] = numbers_.emplace(state, static_cast<int32_t>(states_.size()));
    if (is_new) states_.push_back(std::move(state));
    return known->second;
  }

  void add_transitions(const State& state, int32_t self) {
    const Closure before_word = closure(state, Beside::word);
    const Closure before_other = looks_aside_ ? closure(state, Beside::other) : before_word;
    work_ += first_of_class_.size() * (before_word.readers.size() + before_other.readers.size());
    found_.reader.next.push_back(self);
    for (size_t k = 1; k < first_of_class_.size(); ++k) {
      const size_t byte = first_of_class_[k];
      const Beside kind = kind_of(byte);
      State next{{}, looks_aside_ ? kind : Beside::nothing};
      for (const size_t reader : (kind == Beside::word ? before_word : before_other).readers)
        if (nodes_[reader].first <= byte && byte <= nodes_[reader].last) next.nodes.push_back(nodes_[reader].next);
      std::ranges::sort(next.nodes);
      next.nodes.erase(std::unique(next.nodes.begin(), next.nodes.end()), next.nodes.end());
      found_.reader.next.push_back(number_of(std::move(next)));
    }
  }

  static bool holds(NodeKind kind, Beside before, Beside behind) {
    const bool is_edge = (before == Beside::word) != (behind == Beside::word);
    switch (kind) {
      case NodeKind::text_begin:
        return before == Beside::nothing;
      case NodeKind::text_end:
        return behind == Beside::nothing;
      case NodeKind::word_edge:
        return is_edge;
      default:
        return !is_edge;
    }
  }

  // What can be reached without reading.
  Closure closure(const State& state, Beside behind) {
    Closure found;
    std::vector<bool> seen(nodes_.size());
    std::vector<size_t> open = state.nodes;
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      ++work_;
      const Node& node = nodes_[at];
      if (node.kind == NodeKind::end)
        found.contains_end = true;
      else if (node.kind == NodeKind::byte)
        found.readers.push_back(at);
      else if (node.kind == NodeKind::fork)
        open.push_back(node.next), open.push_back(node.other);
      else if (holds(node.kind, state.before, behind))
        open.push_back(node.next);
    }
    return found;
  }

  const std::vector<Node>& nodes_;
  bool looks_aside_ = false;
  WordAutomaton found_;
  std::vector<size_t> first_of_class_;
  std::map<State, int32_t> numbers_;
  std::vector<State> states_;
  size_t work_ = 0;
};

}  // namespace

Result<WordAutomaton> pattern_automaton(const Pattern& pattern) {
  Nodes nodes;
  const size_t begin = nodes.add(pattern, 0);
  if (nodes.is_full())
    return fail(ErrorCode::op_mode_unsupported, "its pattern is too long with its repetitions written out: {} parts",
                nodes.all().size());
  return States(nodes.all()).run(begin);
}

}  // namespace lathe
