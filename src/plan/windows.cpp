// SPDX-License-Identifier: Apache-2.0
#include "plan/windows.h"

#include <algorithm>
#include <array>

#include "plan/conditional_tensors.h"
#include "plan/limits.h"
#include "plan/validate.h"

namespace lathe::plan {
namespace {

using Wide = __int128;

std::string_view kind_name(StorageKind kind) {
  switch (kind) {
    case StorageKind::arena:
      return "arena buffer";
    case StorageKind::constant:
      return "constant";
    case StorageKind::binding:
      return "binding";
    case StorageKind::dynamic:
      return "dynamic slot";
  }
  return "storage";
}

std::string describe(const Plan& plan, const TensorDesc& t) {
  return fmt::format("tensor {} ('{}') in {} {}", &t - plan.tensors.data(), t.name, kind_name(t.storage), t.index);
}

// Size of the storage of `t`, which is not dynamic: those are as large as their windows.
Expr storage_bytes(const Plan& plan, const TensorDesc& t) {
  if (t.storage == StorageKind::arena) return plan.buffers[t.index].bytes;
  if (t.storage == StorageKind::constant) return Expr(static_cast<int64_t>(plan.constants[t.index].bytes));
  const TensorDesc& whole = plan.tensors[plan.bindings[t.index].tensor];
  return bytes_of(whole.dtype, volume(whole.dims));
}

// Whole elements that so many bytes hold.
Wide room_for(DType type, int64_t bytes) {
  return is_packed(type) ? Wide{bytes} * (8 / bits_of(type)) : Wide{bytes / static_cast<int64_t>(size_of(type))};
}

// The elements [low, high] that a window with known numbers touches.
struct Window {
  Wide low, high;
};
enum class WindowState { ok, empty, negative_dim, overflow };

WindowState find_window(std::span<const int64_t> dims, std::span<const int64_t> strides, int64_t offset,
                        Window& window) {
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) return WindowState::negative_dim;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return WindowState::empty;
  window = {offset, offset};
  Wide dense = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    Wide reach;
    const bool overflow =
        __builtin_mul_overflow(strides.empty() ? dense : Wide{strides[i]}, Wide{dims[i] - 1}, &reach) ||
        __builtin_mul_overflow(dense, Wide{dims[i]}, &dense);
    Wide& end = reach < 0 ? window.low : window.high;
    if (overflow || __builtin_add_overflow(end, reach, &end)) return WindowState::overflow;
  }
  return WindowState::ok;
}

bool uses_unbound(const Expr& e, std::span<const int64_t> values) {
  std::vector<SymbolId> symbols;
  e.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(), [&](SymbolId id) { return values[id] == Expr::kUnbound; });
}

enum class Evaluated { ok, unbound, overflow };

Evaluated evaluate(const Expr& e, std::span<const int64_t> values, int64_t& out) {
  const auto value = e.evaluate(values);
  if (!value) return uses_unbound(e, values) ? Evaluated::unbound : Evaluated::overflow;
  out = *value;
  return Evaluated::ok;
}

Evaluated evaluate(const Shape& shape, std::span<const int64_t> values, std::array<int64_t, kMaxRank>& out) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (const Evaluated state = evaluate(shape[i], values, out[i]); state != Evaluated::ok) return state;
  return Evaluated::ok;
}

struct Numbers {
  std::array<int64_t, kMaxRank> dims, strides;
  int64_t offset = 0;
  int64_t storage = INT64_MAX;  // bytes
};

// The product of a binding's dimensions, without building it as an expression.
Evaluated evaluate_binding_bytes(const TensorDesc& whole, std::span<const int64_t> values, int64_t& bytes) {
  std::array<int64_t, kMaxRank> dims;
  if (const Evaluated state = evaluate(whole.dims, values, dims); state != Evaluated::ok) return state;
  int64_t elements = 1;
  for (size_t i = 0; i < whole.dims.size(); ++i)
    if (dims[i] < 0 || __builtin_mul_overflow(elements, dims[i], &elements)) return Evaluated::overflow;
  const std::optional<int64_t> needed = bytes_of(whole.dtype, elements);
  bytes = needed.value_or(0);
  return needed ? Evaluated::ok : Evaluated::overflow;
}

Evaluated evaluate(const Plan& plan, const TensorDesc& t, std::span<const int64_t> values, Numbers& out) {
  Evaluated state = evaluate(t.dims, values, out.dims);
  if (state == Evaluated::ok) state = evaluate(t.strides, values, out.strides);
  if (state == Evaluated::ok) state = evaluate(t.offset, values, out.offset);
  if (state != Evaluated::ok) return state;
  switch (t.storage) {
    case StorageKind::arena:
      return evaluate(plan.buffers[t.index].bytes, values, out.storage);
    case StorageKind::constant:
      out.storage = static_cast<int64_t>(plan.constants[t.index].bytes);
      break;
    case StorageKind::binding:
      return evaluate_binding_bytes(plan.tensors[plan.bindings[t.index].tensor], values, out.storage);
    case StorageKind::dynamic:
      break;
  }
  return state;
}

// The window under these values; nullopt where it touches nothing or some symbol is unbound.
Result<std::optional<Window>> known_window(const Plan& plan, const TensorDesc& t, std::span<const int64_t> values,
                                           Numbers& numbers) {
  switch (evaluate(plan, t, values, numbers)) {
    case Evaluated::ok:
      break;
    case Evaluated::unbound:
      return std::optional<Window>();
    case Evaluated::overflow:
      return fail(ErrorCode::shape_mismatch, "{}: its shape overflows for these input shapes", describe(plan, t));
  }
  Window window;
  const std::span<const int64_t> strides(numbers.strides.data(), t.strides.size());
  switch (find_window(std::span<const int64_t>(numbers.dims.data(), t.dims.size()), strides, numbers.offset, window)) {
    case WindowState::ok:
      return std::optional(window);
    case WindowState::empty:
      return std::optional<Window>();
    case WindowState::overflow:
      return fail(ErrorCode::shape_mismatch, "{}: its size overflows for these input shapes", describe(plan, t));
    case WindowState::negative_dim:
      return fail(ErrorCode::shape_mismatch, "{}: a dimension is negative for these input shapes", describe(plan, t));
  }
  return std::optional<Window>();
}

// The last element of a window whose strides are not negative and whose dimensions are not 0.
Expr last_element(const TensorDesc& t) {
  Expr last = t.offset;
  if (t.strides.empty()) return last + volume(t.dims) - 1;
  for (size_t i = 0; i < t.dims.size(); ++i) last += (t.dims[i] - 1) * t.strides[i];
  return last;
}

// Symbolic products are built only where they stay small, so that a hostile plan costs time linear in its size.
bool is_small(const TensorDesc& t) {
  size_t work = t.offset.size();
  for (const Expr& e : t.dims) work = std::min<size_t>(work * e.size(), 1024);
  for (const Expr& e : t.strides) work += e.size();
  return work <= 256;
}

bool is_constant(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Expr& e) { return e.is_constant(); });
}

bool is_static(const Plan& plan, const TensorDesc& t) {
  if (!is_constant(t.dims) || !is_constant(t.strides) || !t.offset.is_constant()) return false;
  if (t.storage == StorageKind::arena) return plan.buffers[t.index].bytes.is_constant();
  return t.storage != StorageKind::binding || is_constant(plan.tensors[plan.bindings[t.index].tensor].dims);
}

Result<> check_proof(const Plan& plan, const TensorDesc& t, std::span<const Range> ranges) {
  if (is_static(plan, t)) return check_window(plan, t, {});
  bool may_be_empty = false, forward = true;
  for (const Expr& dim : t.dims) {
    const Range range = dim.range(ranges);
    if (range.max < 0) return fail(ErrorCode::plan_malformed, "{} has a negative dimension", describe(plan, t));
    may_be_empty |= range.min <= 0;
  }
  for (const Expr& stride : t.strides) forward &= stride.range(ranges).min >= 0;
  if (may_be_empty || !forward) return {};
  if (t.offset.range(ranges).max < 0)
    return fail(ErrorCode::plan_malformed, "{} starts before its storage", describe(plan, t));
  if (t.storage == StorageKind::dynamic || !is_small(t)) return {};
  if (t.storage == StorageKind::binding && !is_small(plan.tensors[plan.bindings[t.index].tensor])) return {};
  const Expr slack = storage_bytes(plan, t) - bytes_of(t.dtype, last_element(t) + 1);
  if (slack.range(ranges).max < 0) return fail(ErrorCode::plan_malformed, "{} leaves its storage", describe(plan, t));
  return {};
}

}  // namespace

Expr bytes_of(DType type, const Expr& elements) {
  return is_packed(type) ? ceildiv(elements, 8 / bits_of(type)) : elements * static_cast<int64_t>(size_of(type));
}

Result<> check_window_proofs(const Plan& plan, std::span<const Range> ranges) {
  const std::vector<bool> conditional = find_conditional_tensors(plan);
  for (size_t id = 0; id < plan.tensors.size(); ++id)
    if (!conditional[id]) LATHE_TRY(check_proof(plan, plan.tensors[id], ranges));
  return {};
}

Result<> check_window(const Plan& plan, const TensorDesc& t, std::span<const int64_t> values) {
  Numbers numbers;
  LATHE_ASSIGN(const std::optional<Window> window, known_window(plan, t, values, numbers));
  if (!window) return {};
  // Compared in elements: the last byte's number might overflow.
  const bool beyond = window->high >= room_for(t.dtype, numbers.storage);
  if (window->low < 0 || beyond)
    return fail(ErrorCode::plan_malformed, "{} leaves its storage of {} bytes for these input shapes",
                describe(plan, t), numbers.storage);
  return {};
}

Result<> check_windows(const Plan& plan, std::span<const int64_t> symbol_values, const std::vector<bool>& left_out) {
  if (symbol_values.size() != plan.symbols.size())
    return fail(ErrorCode::invalid_argument, "{} symbol values for {} symbols", symbol_values.size(),
                plan.symbols.size());
  for (size_t id = 0; id < plan.tensors.size(); ++id)
    if (left_out.empty() || !left_out[id]) LATHE_TRY(check_window(plan, plan.tensors[id], symbol_values));
  return {};
}

Result<std::optional<int64_t>> window_end(const Plan& plan, const TensorDesc& t, std::span<const int64_t> values) {
  Numbers numbers;
  LATHE_ASSIGN(const std::optional<Window> window, known_window(plan, t, values, numbers));
  if (!window) return std::optional<int64_t>();
  if (window->low < 0 || window->high >= INT64_MAX / static_cast<int64_t>(size_of(t.dtype)))
    return fail(ErrorCode::plan_malformed, "{} leaves its storage for these input shapes", describe(plan, t));
  return std::optional(static_cast<int64_t>(window->high) + 1);
}

}  // namespace lathe::plan
