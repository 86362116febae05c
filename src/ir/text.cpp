// SPDX-License-Identifier: Apache-2.0
// The text form of graphs:
//   graph "net" {
//     symbol n in [1, 8]
//     expands n to m
//     input %x: f32[n, 3, 8, 8]
//     %w = constant{value=f32[4, 3, 1, 1]{~7}}(): f32[4, 3, 1, 1]
//     %y = convolution{stride=[1, 1]}(%x, %w): f32[n, 4, 8, 8] @conv1 from [conv1, bn1]
//     output %y "y"
//   }
// The bodies of control flow follow it: "%z = branch(%c, %y): f32[n] body { input %v: f32[n] ... output %r } body { ...
// }". Names with other characters than letters, digits, _ . / : are quoted. The type after a node is optional when
// parsing, and checked when given.
#include <cctype>
#include <charconv>
#include <cmath>
#include <random>

#include "base/encoding.h"
#include "ir/graph.h"
#include "ir/text_syntax.h"

namespace lathe::ir {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Graph> parse() {
    LATHE_TRY(expect("graph"));
    LATHE_ASSIGN(std::string name, read_name());
    Graph graph(std::move(name));
    LATHE_TRY(expect("{"));
    while (!accept("}")) LATHE_TRY(with_line(statement(graph)));
    skip();
    if (!text_.empty()) return with_line(Result<Graph>(fail(ErrorCode::text_syntax, "text after the graph's end")));
    return graph;
  }

 private:
  Result<> statement(Graph& graph) {
    if (accept_word("symbol")) return symbol(graph);
    if (accept_word("expands")) return expansion(graph);
    if (accept_word("input")) return input(graph);
    if (accept_word("output")) return output(graph);
    return node(graph);
  }

  Result<std::unique_ptr<Graph>> body(const Graph& outside, const Attributes& attributes,
                                      const std::vector<Value*>& operands) {
    LATHE_ASSIGN(std::unique_ptr<Graph> graph, outside.make_body("body", attributes, operands));
    std::unordered_map<std::string, Value*> values;
    std::swap(values, values_);
    ++depth_;
    LATHE_TRY(expect("{"));
    for (Value* input : graph->inputs()) LATHE_TRY(body_input(*graph, input));
    while (!accept("}")) LATHE_TRY(statement(*graph));
    --depth_;
    std::swap(values, values_);
    return graph;
  }

  // Their types are those of what comes in; the text repeats them for its reader.
  Result<> body_input(Graph& graph, Value* input) {
    LATHE_TRY(expect("input"));
    LATHE_ASSIGN(std::string name, read_value_name());
    graph.rename(input, name);
    values_[name] = input;
    text_.remove_prefix(std::min(text_.size(), text_.find(']')));
    return expect("]");
  }

  Result<> symbol(Graph& graph) {
    LATHE_ASSIGN(std::string name, read_name());
    Range range{0, Range::kUnbounded};
    if (accept_word("in")) {
      LATHE_TRY(expect("["));
      LATHE_ASSIGN(range.min, read_int());
      LATHE_TRY(expect(","));
      if (!accept_word("inf")) {
        LATHE_ASSIGN(range.max, read_int());
      }
      LATHE_TRY(expect("]"));
    }
    graph.dim_symbol(name, range);
    return {};
  }

  // That the first symbol is the second or 1.
  Result<> expansion(Graph& graph) {
    LATHE_ASSIGN(const std::string from, read_name());
    LATHE_TRY(expect("to"));
    LATHE_ASSIGN(const std::string to, read_name());
    graph.add_expansion({Relation::expand, graph.dim_symbol(from), graph.dim_symbol(to), {}});
    return {};
  }

  Result<> input(Graph& graph) {
    LATHE_ASSIGN(std::string name, read_value_name());
    LATHE_TRY(expect(":"));
    LATHE_ASSIGN(std::string type_name, read_name());
    const std::optional<DType> dtype = dtype_from_name(type_name);
    if (!dtype) return fail(ErrorCode::text_syntax, "unknown element type '{}'", type_name);
    LATHE_TRY(expect("["));
    Shape shape;
    while (!accept("]")) {
      skip();
      if (!text_.empty() && std::isdigit(static_cast<unsigned char>(text_[0]))) {
        LATHE_ASSIGN(int64_t dim, read_int());
        shape.push_back(dim);
      } else {
        LATHE_ASSIGN(std::string symbol_name, read_name());
        shape.push_back(graph.dim_symbol(symbol_name));
      }
      accept(",");
    }
    LATHE_ASSIGN(values_[name], graph.add_input(name, *dtype, std::move(shape)));
    return {};
  }

  Result<> output(Graph& graph) {
    LATHE_ASSIGN(std::string name, read_value_name());
    const auto it = values_.find(name);
    if (it == values_.end()) return fail(ErrorCode::text_syntax, "value %{} is not defined", name);
    skip();
    std::string given;
    if (!text_.empty() && text_[0] == '"') {
      LATHE_ASSIGN(given, read_name());
    }
    graph.add_output(it->second, given);
    return {};
  }

  Result<> node(Graph& graph) {
    NodeName names;
    do {
      LATHE_ASSIGN(std::string name, read_value_name());
      names.outputs.push_back(std::move(name));
    } while (accept(","));
    LATHE_TRY(expect("="));
    LATHE_ASSIGN(std::string op, read_name());
    const OpInfo* info = find_op(op);
    if (!info) return fail(ErrorCode::text_syntax, "unknown op '{}'", op);
    LATHE_ASSIGN(std::string attribute_text, read_attributes());
    LATHE_ASSIGN(std::unique_ptr<Attributes> attributes, read_op_attributes(info->kind, attribute_text));
    std::vector<Value*> inputs;
    LATHE_TRY(expect("("));
    while (!accept(")")) {
      if (accept("_")) {
        inputs.push_back(nullptr);
      } else {
        LATHE_ASSIGN(std::string name, read_value_name());
        const auto it = values_.find(name);
        if (it == values_.end()) return fail(ErrorCode::text_syntax, "value %{} is not defined", name);
        inputs.push_back(it->second);
      }
      accept(",");
    }
    std::string types;
    if (accept(":")) types = read_types();
    names.name = names.outputs[0];
    if (accept("@")) {
      LATHE_ASSIGN(names.name, read_name());
    }
    if (accept_word("from")) {
      LATHE_TRY(expect("["));
      while (!accept("]")) {
        LATHE_ASSIGN(std::string name, read_name());
        names.origin.push_back(std::move(name));
        accept(",");
      }
    }
    std::vector<std::unique_ptr<Graph>> bodies;
    while (accept_word("body")) {
      LATHE_ASSIGN(bodies.emplace_back(), body(graph, *attributes, inputs));
    }
    const size_t wanted = info->kind == OpKind::loop ? 1 : info->kind == OpKind::branch ? 2 : 0;
    if (bodies.size() != wanted)
      return fail(ErrorCode::text_syntax, "%{}: {} has {} bodies, not {}", names.name, op, wanted, bodies.size());
    const std::vector<std::string> outputs = names.outputs;
    LATHE_ASSIGN(Node * node,
                 graph.add(*attributes, std::move(bodies), std::move(inputs), std::move(names), outputs.size()));
    std::string inferred;
    for (size_t i = 0; i < outputs.size(); ++i) {
      values_[outputs[i]] = node->output(i);
      inferred += (i ? ", " : "") + to_string(node->output(i)->type(), graph);
    }
    if (!types.empty() && types != inferred && depth_ == 0)
      return fail(ErrorCode::text_syntax, "%{} is {}, the text says {}", outputs[0], inferred, types);
    return {};
  }

  // "{~seed}" in a constant: content drawn from a normal distribution, so that tests need no long literals.
  Result<std::unique_ptr<Attributes>> read_op_attributes(OpKind kind, std::string_view text) {
    const size_t tilde = text.find("{~");
    if (kind != OpKind::constant || tilde == std::string_view::npos) return parse_attributes(kind, text);
    Parser type(text.substr(text.find('=') + 1));
    LATHE_ASSIGN(std::string type_name, type.read_name());
    const std::optional<DType> dtype = dtype_from_name(type_name);
    if (!dtype) return fail(ErrorCode::text_syntax, "unknown element type '{}'", type_name);
    Dims dims;
    LATHE_TRY(type.expect("["));
    while (!type.accept("]")) {
      LATHE_ASSIGN(int64_t dim, type.read_int());
      dims.push_back(dim);
      type.accept(",");
    }
    LATHE_TRY(type.expect("{~"));
    LATHE_ASSIGN(int64_t seed, type.read_int());
    LATHE_ASSIGN(Tensor value, Tensor::allocate(*dtype, dims));
    std::mt19937 generator(static_cast<uint32_t>(seed));
    std::normal_distribution<float> normal;
    const bool is_stored = is_storage_only(*dtype);
    dispatch(*dtype, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t i = 0; i < value.volume(); ++i) {
        const float x = normal(generator);
        if (is_stored)
          store_code(*dtype, value.mutable_data(), i, encode(*dtype, double{x}));
        else if constexpr (std::is_class_v<T> || std::is_floating_point_v<T>)
          value.mutable_as<T>()[i] = T(x);
        else
          value.mutable_as<T>()[i] = static_cast<T>(std::fabs(x) * 4);
      }
    });
    auto attributes = std::make_unique<ConstantAttrs>();
    attributes->value = std::move(value);
    return std::unique_ptr<Attributes>(std::move(attributes));
  }

  // Tokens

  void skip() {
    for (;;) {
      while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_[0]))) {
        line_ += text_[0] == '\n';
        text_.remove_prefix(1);
      }
      if (!text_.starts_with("//")) return;
      text_.remove_prefix(std::min(text_.size(), text_.find('\n')));
    }
  }

  bool accept(std::string_view token) {
    skip();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  bool accept_word(std::string_view token) {
    skip();
    if (!text_.starts_with(token) || (text_.size() > token.size() && is_name_char(text_[token.size()]))) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  Result<> expect(std::string_view token) {
    if (accept(token)) return {};
    return fail(ErrorCode::text_syntax, "line {}: expected '{}' near '{}'", line_, token, text_.substr(0, 20));
  }

  Result<int64_t> read_int() {
    skip();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return fail(ErrorCode::text_syntax, "expected a number near '{}'", text_.substr(0, 20));
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }

  Result<std::string> read_name() {
    skip();
    std::string name;
    if (!text_.empty() && text_[0] == '"') {
      for (text_.remove_prefix(1); !text_.empty() && text_[0] != '"'; text_.remove_prefix(1)) {
        if (text_[0] == '\\' && text_.size() > 1) text_.remove_prefix(1);
        name += text_[0];
      }
      if (text_.empty()) return fail(ErrorCode::text_syntax, "unterminated string");
      text_.remove_prefix(1);
      return name;
    }
    size_t n = 0;
    while (n < text_.size() && is_name_char(text_[n])) ++n;
    while (n > 0 && text_[n - 1] == ':') --n;  // a final colon is punctuation
    if (n == 0) return fail(ErrorCode::text_syntax, "expected a name near '{}'", text_.substr(0, 20));
    name = text_.substr(0, n);
    text_.remove_prefix(n);
    return name;
  }

  Result<std::string> read_value_name() {
    LATHE_TRY(expect("%"));
    return read_name();
  }

  // The balanced "{...}" that may follow an op's name.
  Result<std::string> read_attributes() {
    skip();
    if (text_.empty() || text_[0] != '{') return std::string();
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (in_string) {
        if (c == '\\')
          ++i;
        else if (c == '"')
          in_string = false;
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{') {
        ++depth;
      } else if (c == '}' && --depth == 0) {
        std::string out(text_.substr(0, i + 1));
        text_.remove_prefix(i + 1);
        return out;
      }
    }
    return fail(ErrorCode::text_syntax, "unterminated attributes");
  }

  // Types run to the end of the line, or to the node's name.
  std::string read_types() {
    skip();
    size_t n = std::min(text_.find('\n'), text_.find(" @"));
    n = std::min({n, text_.find(" from ["), text_.find(" body {"), text_.size()});
    std::string out(text_.substr(0, n));
    while (!out.empty() && std::isspace(static_cast<unsigned char>(out.back()))) out.pop_back();
    text_.remove_prefix(n);
    return out;
  }

  template <class R>
  R with_line(R result) {
    if (result) return result;
    return fail(with_context(std::move(result).error(), fmt::format("line {}", line_)));
  }

  std::string_view text_;
  int line_ = 1;
  int depth_ = 0;  // of bodies: what loops carry may be of other sizes than what they begin with
  std::unordered_map<std::string, Value*> values_;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text) { return Parser(text).parse(); }

}  // namespace lathe::ir
