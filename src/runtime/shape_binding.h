// SPDX-License-Identifier: Apache-2.0
// The sizes of a context: its profile, the dims of its inputs, and from them every size that the plan speaks of.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/tensor_arg.h"
#include "runtime/engine.h"

namespace lathe {

// A tensor under these values of the plan's symbols, without its address.
Result<TensorArg> tensor_arg(const plan::TensorDesc& tensor, std::span<const int64_t> symbols);

// A plan's sizes are expressions over symbols. read_inputs() gives a value to each symbol that inputs determine; steps
// whose results' sizes depend on data give the others theirs in each run (SymbolSource::computed). Constraints between
// sizes are checked as soon as both sides are known. One thread at a time, as the context that owns it; the engine
// outlives it.
class ShapeBinding {
 public:
  explicit ShapeBinding(const Engine& engine);

  // Setting up. Either may take bind() back.
  size_t profile() const { return profile_; }
  Result<> check_profile(size_t profile) const;  // that it exists
  void set_profile(size_t profile);              // forgets the dims of inputs that have dynamic ones
  Result<> set_input_dims(size_t binding, std::span<const int64_t> dims);
  // Names of inputs whose dims are not set, and of shape inputs without an address. `addresses` are those of bindings.
  std::vector<std::string> missing(std::span<void* const> addresses) const;

  // Whether bind() has been reached, and the shape inputs hold the values that read_inputs() saw.
  bool is_bound(std::span<void* const> addresses) const;
  // In this order: the symbols that inputs determine; whether they go together, which is known of those that went
  // together before; and that this is so.
  Result<> read_inputs(std::span<void* const> addresses);
  Result<> check_sizes() const;
  void bind() { bound_ = true; }
  void unbind() { bound_ = false; }

  // Dims of a binding; -1 for what is not known (yet). bytes() is 0 then.
  Dims dims(size_t binding) const;
  size_t bytes(size_t binding) const;
  Dims tensor_dims(plan::TensorId id) const;  // of any tensor; empty before bind()
  // What a number cannot exceed in any run with these inputs; Range::kUnbounded where nothing tells.
  int64_t largest(const Expr& number) const;
  // Type, dims and strides of a tensor's operand, its address null. Fails where a size is not known or negative.
  Result<TensorArg> resolve(plan::TensorId id) const;
  std::span<const int64_t> symbols() const { return symbols_; }  // values, or Expr::kUnbound

  // Sizes that steps compute: forgotten when a run begins, then found one by one.
  void forget_computed();
  void forget(std::span<const SymbolId> symbols);  // a round of a loop finds them anew
  void bind_count(SymbolId symbol, int64_t value) { symbols_[symbol] = value; }
  // Takes up what an evaluation has made of `tensor`, which must be what the plan says, for its memory is sized by
  // that.
  Result<> bind_computed(const plan::TensorDesc& tensor, DType dtype, const Dims& dims);
  // The same for a value that moves to `tensor`; false where the dims are not what the plan says.
  bool take_dims(const plan::TensorDesc& tensor, std::span<const int64_t> dims);
  Result<> check_due_constraints();
  Result<> check(std::span<const Constraint> constraints) const;  // whose symbols are known

 private:
  int64_t dim(size_t binding, size_t d) const;  // -1 when unknown
  int64_t input_value(const Symbol& symbol, std::span<void* const> addresses) const;
  // `what`() names what has the value.
  template <class What>
  Result<> bind_symbol(SymbolId symbol, int64_t value, What&& what);
  Result<> bind_input_dims(std::span<void* const> addresses);
  Result<> bind_input_values(std::span<void* const> addresses);
  Result<> check_constraint(const Constraint& constraint) const;

  const Engine& engine_;
  const plan::Plan& plan_;
  size_t profile_ = 0;
  bool bound_ = false;
  std::vector<std::optional<Dims>> input_dims_;  // per binding; outputs stay empty
  std::vector<int64_t> symbols_;
  std::vector<int64_t> input_values_;  // elements of shape inputs that were read, in the order of their symbols
  // Constraints of the plan, by index: known before a run, known only while running, of those not yet checked in it.
  std::vector<uint32_t> early_constraints_, data_dependent_constraints_, due_;
};

}  // namespace lathe
