// SPDX-License-Identifier: Apache-2.0
#include "runtime/shape_binding.h"

#include <algorithm>
#include <array>

#include "plan/validate.h"

namespace lathe {

ShapeBinding::ShapeBinding(const Engine& engine)
    : engine_(engine),
      plan_(engine.plan()),
      input_dims_(plan_.bindings.size()),
      symbols_(plan_.symbols.size(), Expr::kUnbound) {
  for (size_t i = 0; i < plan_.bindings.size(); ++i) {
    const plan::Binding& binding = plan_.bindings[i];
    const std::optional<Dims> fixed = as_constant(plan_.tensors[binding.tensor].dims);
    if (binding.is_input && fixed) input_dims_[i] = *fixed;
  }
  for (uint32_t i = 0; i < plan_.constraints.size(); ++i) {
    const bool depends =
        engine.is_data_dependent(plan_.constraints[i].a) || engine.is_data_dependent(plan_.constraints[i].b);
    (depends ? data_dependent_constraints_ : early_constraints_).push_back(i);
  }
  due_.reserve(data_dependent_constraints_.size());  // running allocates nothing
}

Result<> ShapeBinding::check_profile(size_t profile) const {
  if (profile < plan_.profiles.size()) return {};
  return fail(ErrorCode::invalid_argument, "profile {} does not exist: the engine has {}", profile,
              plan_.profiles.size());
}

void ShapeBinding::set_profile(size_t profile) {
  profile_ = profile;
  bound_ = false;
  for (size_t i = 0; i < plan_.bindings.size(); ++i)
    if (!as_constant(plan_.tensors[plan_.bindings[i].tensor].dims)) input_dims_[i].reset();
}

Result<> ShapeBinding::set_input_dims(size_t i, std::span<const int64_t> dims) {
  if (i >= plan_.bindings.size() || !plan_.bindings[i].is_input)
    return fail(ErrorCode::binding_invalid, "tensor {} is not an input", i);
  const plan::Binding& binding = plan_.bindings[i];
  const Shape& declared = plan_.tensors[binding.tensor].dims;
  if (dims.size() != declared.size())
    return fail(ErrorCode::binding_invalid, "input '{}' has rank {}, got dims {}", binding.name, declared.size(),
                to_string(to_shape(dims)));
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::optional<int64_t> fixed = declared[d].as_constant();
    if (dims[d] < 0 || (fixed && *fixed != dims[d]))
      return fail(ErrorCode::binding_invalid, "input '{}': dimension {} must be {}, got {}", binding.name, d,
                  fixed ? std::to_string(*fixed) : "non-negative", dims[d]);
    const std::optional<SymbolId> symbol = declared[d].as_symbol();
    if (!symbol) continue;
    const plan::SymbolProfile& range = plan_.profiles[profile_].symbols[*symbol];
    if (dims[d] < range.min || dims[d] > range.max)
      return fail(ErrorCode::profile_range, "input '{}': dimension {} is {}, profile {} allows {} to {}", binding.name,
                  d, dims[d], profile_, range.min, range.max);
  }
  Dims wanted(dims.begin(), dims.end());
  if (input_dims_[i] == wanted) return {};
  input_dims_[i] = std::move(wanted);
  bound_ = false;
  return {};
}

std::vector<std::string> ShapeBinding::missing(std::span<void* const> addresses) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < plan_.bindings.size(); ++i) {
    const plan::Binding& binding = plan_.bindings[i];
    if (binding.is_input && (!input_dims_[i] || (binding.is_shape_tensor && !addresses[i])))
      names.push_back(binding.name);
  }
  return names;
}

int64_t ShapeBinding::dim(size_t i, size_t d) const {
  if (input_dims_[i]) return (*input_dims_[i])[d];
  const Expr& dim = plan_.tensors[plan_.bindings[i].tensor].dims[d];
  return bound_ || dim.is_constant() ? dim.evaluate(symbols_).value_or(-1) : -1;
}

Dims ShapeBinding::dims(size_t i) const {
  Dims dims(plan_.tensors[plan_.bindings[i].tensor].dims.size());
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = dim(i, d);
  return dims;
}

Dims ShapeBinding::tensor_dims(plan::TensorId id) const {
  Dims dims;
  if (!bound_) return dims;
  for (const Expr& dim : plan_.tensors[id].dims) dims.push_back(dim.evaluate(symbols_).value_or(-1));
  return dims;
}

size_t ShapeBinding::bytes(size_t i) const {
  const plan::TensorDesc& tensor = plan_.tensors[plan_.bindings[i].tensor];
  std::array<int64_t, kMaxRank> dims;
  for (size_t d = 0; d < tensor.dims.size(); ++d) dims[d] = dim(i, d);
  const std::optional<int64_t> count = checked_volume({dims.data(), tensor.dims.size()});
  return static_cast<size_t>(bytes_of(tensor.dtype, count.value_or(-1)).value_or(0));
}

template <class What>
Result<> ShapeBinding::bind_symbol(SymbolId symbol, int64_t value, What&& what) {
  int64_t& bound = symbols_[symbol];
  if (bound == Expr::kUnbound) bound = value;
  if (bound != value)
    return fail(ErrorCode::binding_invalid,
                "{} is {}, but dimension '{}' is already {}: equal names mean equal dimensions", what(), value,
                plan_.symbols[symbol].name, bound);
  return {};
}

Result<> ShapeBinding::bind_input_dims(std::span<void* const> addresses) {
  if (const std::vector<std::string> names = missing(addresses); !names.empty())
    return fail(ErrorCode::binding_missing,
                "input '{}' has no shape (or, for a shape input, no address): set it before running", names[0]);
  for (size_t i = 0; i < plan_.bindings.size(); ++i) {
    if (!plan_.bindings[i].is_input) continue;
    const Shape& declared = plan_.tensors[plan_.bindings[i].tensor].dims;
    for (size_t d = 0; d < declared.size(); ++d)
      if (const std::optional<SymbolId> symbol = declared[d].as_symbol())
        LATHE_TRY(bind_symbol(*symbol, (*input_dims_[i])[d],
                              [&] { return fmt::format("input '{}' dimension {}", plan_.bindings[i].name, d); }));
  }
  return {};
}

// The element of a shape input that the symbol stands for. Its index was checked when the shapes were bound.
int64_t ShapeBinding::input_value(const Symbol& symbol, std::span<void* const> addresses) const {
  const DType dtype = plan_.tensors[plan_.bindings[symbol.tensor].tensor].dtype;
  return Tensor::view(dtype, *input_dims_[symbol.tensor], addresses[symbol.tensor], nullptr).at(symbol.index);
}

// Reads the shape inputs. Their values are part of the shapes: a change takes the binding back.
Result<> ShapeBinding::bind_input_values(std::span<void* const> addresses) {
  input_values_.clear();
  for (SymbolId id = 0; id < plan_.symbols.size(); ++id) {
    const Symbol& symbol = plan_.symbols[id];
    if (symbol.source != SymbolSource::input_value) continue;
    const std::string& name = plan_.bindings[symbol.tensor].name;
    const int64_t elements = checked_volume(*input_dims_[symbol.tensor]).value_or(0);
    if (symbol.index >= static_cast<uint64_t>(elements))
      return fail(ErrorCode::binding_invalid, "shape input '{}' has {} elements, element {} is needed", name, elements,
                  symbol.index);
    const int64_t value = input_value(symbol, addresses);
    const plan::SymbolProfile& range = plan_.profiles[profile_].symbols[id];
    if (value < range.min || value > range.max)
      return fail(ErrorCode::profile_range, "shape input '{}': element {} is {}, profile {} allows {} to {}", name,
                  symbol.index, value, profile_, range.min, range.max);
    LATHE_TRY(bind_symbol(id, value, [&] { return fmt::format("shape input '{}' element {}", name, symbol.index); }));
    input_values_.push_back(value);
  }
  return {};
}

Result<> ShapeBinding::check_constraint(const Constraint& constraint) const {
  const std::optional<int64_t> a = constraint.a.evaluate(symbols_), b = constraint.b.evaluate(symbols_);
  if (a && b && holds(constraint.relation, *a, *b)) return {};
  std::vector<std::string> names;
  for (const Symbol& symbol : plan_.symbols) names.push_back(symbol.name);
  const auto text = [](std::optional<int64_t> value) { return value ? std::to_string(*value) : "no value"; };
  return fail(ErrorCode::shapes_inconsistent, "{} needs {}, but these shapes give {} and {}", constraint.where,
              to_string(constraint, names), text(a), text(b));
}

Result<> ShapeBinding::check(std::span<const Constraint> constraints) const {
  for (const Constraint& constraint : constraints) LATHE_TRY(check_constraint(constraint));
  return {};
}

// Constraints on sizes that steps have computed are checked as soon as the last of them is known.
Result<> ShapeBinding::check_due_constraints() {
  for (size_t i = due_.size(); i-- > 0;) {
    const Constraint& constraint = plan_.constraints[due_[i]];
    const std::vector<SymbolId> used = symbols_of(constraint);
    if (std::any_of(used.begin(), used.end(), [&](SymbolId id) { return symbols_[id] == Expr::kUnbound; })) continue;
    due_[i] = due_.back();
    due_.pop_back();
    LATHE_TRY(check_constraint(constraint));
  }
  return {};
}

bool ShapeBinding::is_bound(std::span<void* const> addresses) const {
  if (!bound_) return false;
  size_t k = 0;
  return std::all_of(plan_.symbols.begin(), plan_.symbols.end(), [&](const Symbol& symbol) {
    return symbol.source != SymbolSource::input_value || input_value(symbol, addresses) == input_values_[k++];
  });
}

Result<> ShapeBinding::read_inputs(std::span<void* const> addresses) {
  bound_ = false;
  symbols_.assign(symbols_.size(), Expr::kUnbound);
  LATHE_TRY(bind_input_dims(addresses));
  return bind_input_values(addresses);
}

Result<> ShapeBinding::check_sizes() const {
  for (const uint32_t i : early_constraints_) LATHE_TRY(check_constraint(plan_.constraints[i]));
  return plan::check_windows(plan_, symbols_, engine_.conditional_tensors());
}

int64_t ShapeBinding::largest(const Expr& number) const {
  std::vector<Range> ranges;
  for (SymbolId id = 0; id < symbols_.size(); ++id) {
    const plan::SymbolProfile& bounds = plan_.profiles[profile_].symbols[id];
    const bool varies = plan_.symbols[id].source == SymbolSource::computed || symbols_[id] == Expr::kUnbound;
    ranges.push_back(varies ? Range{bounds.min, bounds.max} : Range{symbols_[id], symbols_[id]});
  }
  for (const uint32_t i : data_dependent_constraints_) {
    const Constraint& constraint = plan_.constraints[i];
    const std::optional<SymbolId> symbol = constraint.a.as_symbol();
    if (!symbol || constraint.relation != Relation::at_most) continue;
    ranges[*symbol].max = std::min(ranges[*symbol].max, constraint.b.range(ranges).max);
  }
  return number.range(ranges).max;
}

Result<TensorArg> tensor_arg(const plan::TensorDesc& tensor, std::span<const int64_t> symbols) {
  TensorArg arg;
  arg.dtype = tensor.dtype;
  arg.rank = static_cast<int>(tensor.dims.size());
  for (int d = 0; d < arg.rank; ++d) {
    const std::optional<int64_t> dim = tensor.dims[static_cast<size_t>(d)].evaluate(symbols);
    if (!dim || *dim < 0)
      return fail(ErrorCode::shape_mismatch, "tensor '{}': dimension {} is {} for these input shapes", tensor.name, d,
                  dim ? std::to_string(*dim) : "undefined");
    arg.dims[d] = *dim;
  }
  int64_t dense = 1;
  for (int d = arg.rank; d-- > 0;) {
    if (tensor.strides.empty()) {
      arg.strides[d] = dense;
      dense *= arg.dims[d];
    } else {
      const std::optional<int64_t> stride = tensor.strides[static_cast<size_t>(d)].evaluate(symbols);
      if (!stride) return fail(ErrorCode::internal, "tensor '{}': stride {} is undefined", tensor.name, d);
      arg.strides[d] = *stride;
    }
  }
  return arg;
}

Result<TensorArg> ShapeBinding::resolve(plan::TensorId id) const {
  return id == plan::kNoTensor ? TensorArg() : tensor_arg(plan_.tensors[id], symbols_);
}

void ShapeBinding::forget_computed() {
  for (SymbolId id = 0; id < plan_.symbols.size(); ++id)
    if (plan_.symbols[id].source == SymbolSource::computed) symbols_[id] = Expr::kUnbound;
  due_ = data_dependent_constraints_;
}

void ShapeBinding::forget(std::span<const SymbolId> symbols) {
  if (symbols.empty()) return;
  for (const SymbolId id : symbols) symbols_[id] = Expr::kUnbound;
  for (const uint32_t i : data_dependent_constraints_) {
    const std::vector<SymbolId> used = symbols_of(plan_.constraints[i]);
    const bool unknown =
        std::any_of(used.begin(), used.end(), [&](SymbolId id) { return symbols_[id] == Expr::kUnbound; });
    if (unknown && std::find(due_.begin(), due_.end(), i) == due_.end()) due_.push_back(i);
  }
}

Result<> ShapeBinding::bind_computed(const plan::TensorDesc& tensor, DType dtype, const Dims& dims) {
  if (dtype != tensor.dtype || dims.size() != tensor.dims.size())
    return fail(ErrorCode::plan_malformed, "tensor '{}' came out as {} of rank {}, its plan expects {} of rank {}",
                tensor.name, name_of(dtype), dims.size(), name_of(tensor.dtype), tensor.dims.size());
  if (!take_dims(tensor, dims))
    return fail(ErrorCode::execution_failed, "tensor '{}' came out with dims {}, its plan expects {}", tensor.name,
                to_string(to_shape(dims)), to_string(tensor.dims));
  return check_due_constraints();
}

bool ShapeBinding::take_dims(const plan::TensorDesc& tensor, std::span<const int64_t> dims) {
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::optional<SymbolId> symbol = tensor.dims[d].as_symbol();
    if (symbol && symbols_[*symbol] == Expr::kUnbound && plan_.symbols[*symbol].source == SymbolSource::computed)
      symbols_[*symbol] = dims[d];
  }
  for (size_t d = 0; d < dims.size(); ++d)  // some depend on others
    if (tensor.dims[d].evaluate(symbols_) != dims[d]) return false;
  return true;
}

}  // namespace lathe
