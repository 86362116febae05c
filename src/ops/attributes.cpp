// SPDX-License-Identifier: Apache-2.0
#include "ops/attributes.h"

#include "base/hash.h"

namespace lathe {
namespace {

// The names of each enumeration's values, found by its type.
template <class E>
EnumInfo enum_info();
template <>
EnumInfo enum_info<UnaryOp>() {
  static constexpr std::string_view kNames[] = {
#define LATHE_UNARY(name, traits, formula, integers) #name,
#include "base/scalars.def"
  };
  return {"UnaryOp", kNames};
}
template <>
EnumInfo enum_info<ElementwiseOp>() {
  static constexpr std::string_view kNames[] = {
#define LATHE_BINARY(name, traits, formula, integers) #name,
#include "base/scalars.def"
  };
  return {"ElementwiseOp", kNames};
}
template <>
EnumInfo enum_info<ActivationOp>() {
  static constexpr std::string_view kNames[] = {
#define LATHE_ACTIVATION(name, parameters, formula) #name,
#include "base/scalars.def"
  };
  return {"ActivationOp", kNames};
}
#define V(name) #name,
#define LATHE_ENUM(Type, values)                           \
  template <>                                              \
  EnumInfo enum_info<Type>() {                             \
    static constexpr std::string_view kNames[] = {values}; \
    return {#Type, kNames};                                \
  }
#include "ops/enums.def"
#undef LATHE_ENUM
#undef V

template <class T>
void visit_field(FieldVisitor& visitor, std::string_view name, T& value) {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
    int index = static_cast<int>(value);
    visitor.enumeration(name, index, enum_info<T>());
    value = static_cast<T>(index);
  } else {
    visitor.field(name, value);
  }
}

// Flattens the fields into a byte string that is equal exactly when the fields are.
class Encoder final : public FieldVisitor {
 public:
  void field(std::string_view, bool& value) override { number(value); }
  void field(std::string_view, int64_t& value) override { number(static_cast<uint64_t>(value)); }
  void field(std::string_view, double& value) override { number(std::bit_cast<uint64_t>(value)); }
  void field(std::string_view, std::string& value) override { bytes(std::as_bytes(std::span(value))); }
  void field(std::string_view, Ints& value) override { bytes(std::as_bytes(std::span(value))); }
  void field(std::string_view, DType& value) override { number(static_cast<uint64_t>(value)); }
  void field(std::string_view, Tensor& value) override {
    number(value.defined());
    if (!value.defined()) return;
    number(static_cast<uint64_t>(value.dtype()));
    bytes(std::as_bytes(std::span(value.dims())));
    const Digest digest = digest_of(value.raw());  // tensors may be large; their digest stands for them
    bytes(digest);
  }
  void enumeration(std::string_view, int& value, const EnumInfo&) override { number(static_cast<uint64_t>(value)); }

  std::string code;

 private:
  void number(uint64_t value) { code.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void bytes(std::span<const std::byte> data) {
    number(data.size());
    code.append(reinterpret_cast<const char*>(data.data()), data.size());
  }
};

std::string encode(const Attributes& attributes) {
  Encoder encoder;
  const_cast<Attributes&>(attributes).visit(encoder);  // the encoder only reads
  return std::move(encoder.code);
}

}  // namespace

#define F(type, name, ...) visit_field(visitor, #name, name);
#define LATHE_OP(name, Name, min_in, max_in, min_out, max_out, traits, attributes)                        \
  std::unique_ptr<Attributes> Name##Attrs::clone() const { return std::make_unique<Name##Attrs>(*this); } \
  void Name##Attrs::visit([[maybe_unused]] FieldVisitor& visitor) { attributes }
#include "ops/ops.def"
#undef LATHE_OP
#undef F

std::optional<DType> factors_of(const Attributes& attributes) {
  if (attributes.kind() == OpKind::matmul) return static_cast<const MatmulAttrs&>(attributes).factors;
  if (attributes.kind() == OpKind::attention) return static_cast<const AttentionAttrs&>(attributes).factors;
  if (attributes.kind() == OpKind::expert_matmul) return static_cast<const ExpertMatmulAttrs&>(attributes).factors;
  return std::nullopt;
}

std::unique_ptr<Attributes> make_attributes(OpKind kind) {
  switch (kind) {
#define LATHE_OP(name, Name, min_in, max_in, min_out, max_out, traits, attributes) \
  case OpKind::name:                                                               \
    return std::make_unique<Name##Attrs>();
#include "ops/ops.def"
#undef LATHE_OP
  }
  return nullptr;
}

bool equal(const Attributes& a, const Attributes& b) { return a.kind() == b.kind() && encode(a) == encode(b); }

uint64_t hash(const Attributes& attributes) {
  return Hasher().add(static_cast<uint64_t>(attributes.kind())).add(encode(attributes)).value();
}

}  // namespace lathe
