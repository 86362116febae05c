// SPDX-License-Identifier: Apache-2.0
// Attribute structs, made from ops.def, and what can be done with any of them: visit, compare, hash, print, parse.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/tensor.h"

namespace lathe {

using Ints = std::vector<int64_t>;

enum class UnaryOp : int {
#define LATHE_UNARY(name, traits, formula, integers) name,
#include "base/scalars.def"
};
enum class ElementwiseOp : int {
#define LATHE_BINARY(name, traits, formula, integers) name,
#include "base/scalars.def"
};
enum class ActivationOp : int {
#define LATHE_ACTIVATION(name, parameters, formula) name,
#include "base/scalars.def"
};

#define V(name) name,
#define LATHE_ENUM(Type, values) enum class Type : int { values };
#include "ops/enums.def"
#undef LATHE_ENUM
#undef V

enum class OpKind : uint16_t {
#define LATHE_OP(name, Name, min_in, max_in, min_out, max_out, traits, attributes) name,
#include "ops/ops.def"
#undef LATHE_OP
};

// Names of an enumeration's values, in order.
struct EnumInfo {
  std::string_view type;
  std::span<const std::string_view> values;
};

// Sees every field of an attribute struct in order. Enumerations arrive as their index and their names.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(std::string_view name, bool& value) = 0;
  virtual void field(std::string_view name, int64_t& value) = 0;
  virtual void field(std::string_view name, double& value) = 0;
  virtual void field(std::string_view name, std::string& value) = 0;
  virtual void field(std::string_view name, Ints& value) = 0;
  virtual void field(std::string_view name, DType& value) = 0;
  virtual void field(std::string_view name, Tensor& value) = 0;
  virtual void enumeration(std::string_view name, int& value, const EnumInfo& info) = 0;
};

struct Attributes {
  virtual ~Attributes() = default;
  virtual OpKind kind() const = 0;
  virtual std::unique_ptr<Attributes> clone() const = 0;
  virtual void visit(FieldVisitor& visitor) = 0;
};

#define F(type, name, ...) type name = __VA_ARGS__;
#define LATHE_OP(name, Name, min_in, max_in, min_out, max_out, traits, attributes) \
  struct Name##Attrs final : Attributes {                                          \
    attributes OpKind kind() const override { return OpKind::name; }               \
    std::unique_ptr<Attributes> clone() const override;                            \
    void visit(FieldVisitor& visitor) override;                                    \
  };
#include "ops/ops.def"
#undef LATHE_OP
#undef F

// What kernels may round a product's factors of f32 to; nullopt for other ops, and those whose kernels never do.
std::optional<DType> factors_of(const Attributes& attributes);

std::unique_ptr<Attributes> make_attributes(OpKind kind);  // all fields at their defaults

bool equal(const Attributes& a, const Attributes& b);  // same kind, every field the same (tensors by content)
uint64_t hash(const Attributes& attributes);           // equal attributes hash alike

// "{axis=1, op=relu, pads_begin=[1, 1]}", fields at their defaults left out; "" when all are. Tensors print as
// f32[2]{1, 2}, floats so that they read back exactly.
std::string to_text(const Attributes& attributes);
Result<std::unique_ptr<Attributes>> parse_attributes(OpKind kind, std::string_view text);

std::string to_text(const Tensor& tensor);
Result<Tensor> parse_tensor(std::string_view& text);  // consumes what it reads

}  // namespace lathe
