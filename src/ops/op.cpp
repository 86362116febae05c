// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include <algorithm>

#include "base/encoding.h"
#include "ops/result_types.h"

namespace lathe {

#define LATHE_OP(name, Name, min_in, max_in, min_out, max_out, traits, attributes) \
  Result<> infer_##name(InferContext& context);                                    \
  Result<> eval_##name(EvalContext& context);
#include "ops/ops.def"
#undef LATHE_OP

namespace {

const OpInfo kOps[] = {
#define LATHE_OP(name, Name, min_in, max_in, min_out, max_out, traits, attributes) \
  {OpKind::name, #name, min_in, max_in, min_out, max_out, traits, infer_##name, eval_##name},
#include "ops/ops.def"
#undef LATHE_OP
};

Result<> check_arity(const OpInfo& info, std::span<const ValueType* const> inputs, size_t num_outputs) {
  if (static_cast<int>(inputs.size()) < info.min_inputs || static_cast<int>(inputs.size()) > info.max_inputs ||
      static_cast<int>(num_outputs) < info.min_outputs || static_cast<int>(num_outputs) > info.max_outputs)
    return fail(ErrorCode::graph_invalid, "{} does not take {} inputs and {} outputs", info.name, inputs.size(),
                num_outputs);
  for (int i = 0; i < info.min_inputs; ++i)
    if (!inputs[static_cast<size_t>(i)])
      return fail(ErrorCode::graph_invalid, "{}: input {} is required", info.name, i);
  return {};
}

// Evaluations that move elements see those of storage types as codes, a byte each.
bool has_codes(const OpInfo& info, std::span<const ValueType> inputs, std::span<const ValueType> outputs) {
  const auto is_stored = [](const ValueType& type) { return is_storage_only(type.dtype); };
  return !(info.traits & (kConverts | kFloat8)) &&
         (std::ranges::any_of(inputs, is_stored) || std::ranges::any_of(outputs, is_stored));
}

Result<Tensor> to_codes(const Tensor& tensor) {
  if (!is_storage_only(tensor.dtype())) return tensor;
  if (!is_packed(tensor.dtype())) return Tensor::view(DType::u8, tensor.dims(), tensor.data(), tensor.owner());
  LATHE_ASSIGN(Tensor codes, Tensor::allocate(DType::u8, tensor.dims()));
  unpack(tensor.dtype(), tensor.data(), tensor.volume(), codes.mutable_as<uint8_t>());
  return codes;
}

Result<> eval_codes(const OpInfo& info, const Attributes& attributes, std::span<const Tensor> inputs,
                    std::span<Tensor> outputs, std::span<const ValueType> output_types) {
  std::vector<Tensor> from(inputs.size()), to(outputs.size());
  std::vector<ValueType> types(output_types.begin(), output_types.end());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined()) {
      LATHE_ASSIGN(from[i], to_codes(inputs[i]));
    }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_storage_only(types[i].dtype)) types[i].dtype = DType::u8;
    if (!outputs[i].defined()) continue;
    to[i] = outputs[i];
    if (types[i].dtype != outputs[i].dtype()) {
      LATHE_ASSIGN(to[i], Tensor::allocate(DType::u8, outputs[i].dims()));
    }
  }
  EvalContext eval(attributes, from, to, types);
  LATHE_TRY(info.eval(eval));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_storage_only(output_types[i].dtype)) {
      outputs[i] = to[i];
      continue;
    }
    if (!outputs[i].defined()) {
      LATHE_ASSIGN(outputs[i], Tensor::allocate(output_types[i].dtype, to[i].dims()));
    }
    pack(outputs[i].dtype(), to[i].as<uint8_t>(), to[i].volume(), outputs[i].mutable_data());
  }
  return {};
}

// Integer contents of small tensors, which shape rules read (shapes, axes, pads, ...).
constexpr int64_t kMaxElements = 1024;

}  // namespace

Result<> infer_op(const OpInfo& info, InferContext& context) {
  const bool moves = info.traits & (kStored | kView | kMovement);
  const auto check = [&](DType type, bool taken) -> Result<> {
    if (taken || !is_storage_only(type)) return {};
    return fail(ErrorCode::dtype_unsupported,
                "{} does not compute with {}, which is a type to store tensors in; cast or dequantise to a wider one",
                info.name, name_of(type));
  };
  for (size_t i = 0; i < context.num_inputs(); ++i)
    if (context.has(i))
      LATHE_TRY(check(context.dtype(i), moves || (info.traits & kConverts) ||
                                            ((info.traits & kFloat8) && is_factor_float8(context.dtype(i)))));
  LATHE_TRY(info.infer(context));
  for (const InferContext::Output& output : context.outputs())
    LATHE_TRY(check(output.type.dtype, moves || (info.traits & kConverts)));
  return {};
}

const OpInfo& op_info(OpKind kind) { return kOps[static_cast<size_t>(kind)]; }

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo& info : kOps)
    if (info.name == name) return &info;
  return nullptr;
}

std::span<const OpInfo> all_ops() { return kOps; }

std::optional<Ints> InferContext::constant_elements(size_t i) const {
  const std::vector<Expr>* known = elements(i);
  if (!known) return std::nullopt;
  Ints values;
  for (const Expr& element : *known) {
    if (!element.is_constant()) return std::nullopt;
    values.push_back(*element.as_constant());
  }
  return values;
}

bool InferContext::expands(const Expr& from, const Expr& to) const {
  return expansions_ &&
         std::ranges::find(*expansions_, Constraint{Relation::expand, from, to, {}}) != expansions_->end();
}

bool InferContext::assume(Relation relation, const Expr& a, const Expr& b) {
  // What overflows is the size of no tensor: the dimension or the allocation that it belongs to is refused.
  if (!a.is_valid() || !b.is_valid()) return true;
  const bool stretches = relation == Relation::expand || relation == Relation::broadcast;
  if (stretches && (expands(a, b) || (relation == Relation::broadcast && expands(b, a)))) return true;
  Constraint constraint{relation, a, b, {}};
  const std::optional<bool> proven = decide(constraint, ranges());
  if (!proven) constraints_.push_back(std::move(constraint));
  return proven.value_or(true);
}

Result<> EvalContext::allocate(size_t i, Dims dims) {
  LATHE_ASSIGN(outputs_[i], Tensor::allocate(output_types_[i].dtype, std::move(dims)));
  return {};
}

Result<std::vector<ValueType>> result_types(const Attributes& attributes, std::span<const ValueType* const> types,
                                            std::span<const Tensor> contents, size_t num_outputs) {
  const OpInfo& info = op_info(attributes.kind());
  LATHE_TRY(check_arity(info, types, num_outputs));
  std::vector<std::vector<Expr>> elements(types.size());
  std::vector<InferContext::Input> inputs(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const Tensor& tensor = contents[i];
    inputs[i] = {types[i], tensor.defined() ? &tensor : nullptr, nullptr};
    if (!tensor.defined() || !is_integral(tensor.dtype()) || tensor.rank() > 1 || tensor.volume() > kMaxElements)
      continue;
    for (int64_t e = 0; e < tensor.volume(); ++e) elements[i].push_back(tensor.at(e));
    inputs[i].elements = &elements[i];
  }
  InferContext infer(attributes, inputs, num_outputs, [](std::string_view, size_t) { return Expr::invalid(); });
  LATHE_TRY(infer_op(info, infer));
  std::vector<ValueType> results;
  for (InferContext::Output& output : infer.outputs()) results.push_back(std::move(output.type));
  return results;
}

Result<std::vector<Tensor>> run_op(const Attributes& attributes, std::span<const Tensor> inputs, size_t num_outputs,
                                   const PlaceOutput& place) {
  const OpInfo& info = op_info(attributes.kind());
  std::vector<ValueType> types(inputs.size());
  std::vector<const ValueType*> given(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    types[i] = {inputs[i].dtype(), to_shape(inputs[i].dims())};
    given[i] = &types[i];
  }
  LATHE_ASSIGN(const std::vector<ValueType> output_types, result_types(attributes, given, inputs, num_outputs));

  std::vector<Tensor> outputs(num_outputs);
  for (size_t i = 0; i < num_outputs; ++i) {
    const std::optional<Dims> dims = as_constant(output_types[i].shape);
    if (!dims && !(info.traits & kDataDependent))
      return fail(ErrorCode::shape_mismatch, "{}: a dimension of output {} overflows", info.name, i);
    if (!dims) continue;
    if (place) {
      LATHE_ASSIGN(outputs[i], place(i, output_types[i].dtype, *dims));
    }
    if (!outputs[i].defined()) {
      LATHE_ASSIGN(outputs[i], Tensor::allocate(output_types[i].dtype, *dims));
    }
    outputs[i].clear_end();
  }
  if (has_codes(info, types, output_types)) {
    LATHE_TRY(eval_codes(info, attributes, inputs, outputs, output_types));
    return outputs;
  }
  EvalContext eval(attributes, inputs, outputs, output_types);
  LATHE_TRY(info.eval(eval));
  return outputs;
}

}  // namespace lathe
