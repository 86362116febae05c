// SPDX-License-Identifier: Apache-2.0
// Inputs of a graph, and the symbols that their dimensions and elements define.
#include "ir/graph.h"

namespace lathe::ir {
namespace {

// Shape values are short; longer integer inputs are data.
constexpr int64_t kMaxInputElements = 64;

}  // namespace

// Symbols

Expr Graph::dim_symbol(const std::string& name, Range range) {
  for (SymbolId id = 0; id < table_->symbols.size(); ++id)
    if (table_->symbols[id].source == SymbolSource::input_dim && table_->symbols[id].name == name)
      return Expr::symbol(id);
  // The input that binds it is filled in by add_input.
  return new_symbol({name, SymbolSource::input_dim, UINT32_MAX, 0, range});
}

Expr Graph::new_symbol(Symbol symbol) {
  table_->ranges.push_back(symbol.range);
  table_->symbols.push_back(std::move(symbol));
  return Expr::symbol(static_cast<SymbolId>(table_->symbols.size() - 1));
}

void Graph::set_range(SymbolId id, Range range) { table_->symbols[id].range = table_->ranges[id] = range; }

std::vector<std::string> Graph::symbol_names() const {
  std::vector<std::string> names;
  for (const Symbol& symbol : table_->symbols) names.push_back(symbol.name);
  return names;
}

void Graph::substitute_input_dims(std::span<const Expr> values) {
  for (Value* input : inputs_view_) {
    ValueType type = input->type();
    for (Expr& dim : type.shape) dim = dim.substitute(values);
    if (type.shape != input->shape()) set_input_type(input, std::move(type));
  }
}

std::vector<Expr> Graph::merge_symbols(SymbolId from, SymbolId to) {
  std::vector<Expr> values(table_->symbols.size());
  for (SymbolId id = 0; id < values.size(); ++id) values[id] = Expr::symbol(id == from ? to : id);
  for (Constraint& expansion : table_->expansions) expansion = substituted(std::move(expansion), values);
  substitute_input_dims(values);
  return values;
}

// Inputs and outputs

Result<Value*> Graph::add_input(std::string name, DType dtype, Shape shape) {
  if (name.empty() || value_names_.contains(name))
    return fail(ErrorCode::graph_invalid, "input name '{}' is empty or already taken", name);
  auto value = std::make_unique<Value>();
  value->name_ = unique(std::move(name), value_names_);
  value->index_ = inputs_.size();
  inputs_view_.push_back(value.get());
  inputs_.push_back(std::move(value));
  set_input_type(inputs_view_.back(), {dtype, std::move(shape)});
  return inputs_view_.back();
}

Result<Value*> Graph::add_input(std::string name, DType dtype, const Dims& dims) {
  Shape shape;
  for (size_t i = 0; i < dims.size(); ++i)
    shape.push_back(dims[i] >= 0 ? Expr(dims[i]) : dim_symbol(fmt::format("{}.{}", name, i)));
  return add_input(std::move(name), dtype, std::move(shape));
}

void Graph::set_input_type(Value* value, ValueType type) {
  value->type_ = std::move(type);
  const auto tensor = static_cast<uint32_t>(value->index_);
  if (is_body_) return;  // no input of the network defines its symbols
  bind_all_dims();
  value->elements_.clear();
  value->has_elements_ = false;
  const std::optional<int64_t> count = volume(value->shape()).as_constant();
  if (!is_integer(value->dtype()) || value->rank() > 1 || !count || *count > kMaxInputElements) return;
  for (uint32_t i = 0; i < *count; ++i)
    value->elements_.push_back(
        new_symbol({fmt::format("{}[{}]", value->name(), i), SymbolSource::input_value, tensor, i, Range{}}));
  value->has_elements_ = true;
}

void Graph::remove_input(Value* value) {
  const size_t removed = value->index_;
  value_names_.erase(value->name_);
  inputs_view_.erase(inputs_view_.begin() + static_cast<ptrdiff_t>(removed));
  inputs_.erase(inputs_.begin() + static_cast<ptrdiff_t>(removed));
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->index_ = i;
  if (is_body_) return;
  for (Symbol& symbol : table_->symbols) {
    if (symbol.source != SymbolSource::input_value || symbol.tensor < removed || symbol.tensor == UINT32_MAX) continue;
    symbol.tensor = symbol.tensor == removed ? UINT32_MAX : symbol.tensor - 1;
  }
  bind_all_dims();
}

// Each symbol of inputs' dimensions to the first input that has it; one that none has any more, to none.
void Graph::bind_all_dims() {
  if (is_body_) return;
  for (Symbol& symbol : table_->symbols)
    if (symbol.source == SymbolSource::input_dim) symbol.tensor = UINT32_MAX;
  for (const Value* input : inputs_view_) bind_dims(*input);
}

// Symbols that no input defines yet take the first dimension of this one that is the symbol alone.
void Graph::bind_dims(const Value& input) {
  for (size_t d = 0; d < input.shape().size(); ++d) {
    const std::optional<SymbolId> id = input.shape()[d].as_symbol();
    if (!id || table_->symbols[*id].source != SymbolSource::input_dim || table_->symbols[*id].tensor != UINT32_MAX)
      continue;
    table_->symbols[*id].tensor = static_cast<uint32_t>(input.index());
    table_->symbols[*id].index = static_cast<uint32_t>(d);
  }
}

}  // namespace lathe::ir
