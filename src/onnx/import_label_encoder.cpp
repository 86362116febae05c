// SPDX-License-Identifier: Apache-2.0
// Numbers for numbers, by a list of pairs.
#include "compose/same_number.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

using Op = ElementwiseOp;

// The attributes that may hold one list.
struct ListNames {
  const char *what, *tensor, *integers, *reals;
};
constexpr ListNames kKeys = {"keys", "keys_tensor", "keys_int64s", "keys_floats"};
constexpr ListNames kValues = {"values", "values_tensor", "values_int64s", "values_floats"};

// Undefined after an error.
Tensor numbers(NodeContext& c, const ListNames& names) {
  Result<Tensor> list =
      fail(ErrorCode::op_mode_unsupported, "its {} are strings, or there are none; numbers are needed", names.what);
  if (const TensorData* data = c.tensor(names.tensor)) {
    list = to_tensor(*data);
  } else if (c.has_attribute(names.integers)) {
    const Ints values = c.integers(names.integers);
    list = Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values);
  } else if (c.has_attribute(names.reals)) {
    const std::vector<double> values = c.reals(names.reals);
    const std::vector<float> floats(values.begin(), values.end());
    list = Tensor::from<float>({static_cast<int64_t>(floats.size())}, floats);
  }
  if (list) return *std::move(list);
  c.set_error(std::move(list).error());
  return {};
}

// What a number becomes that is no key.
ir::Value* fallback(NodeContext& c, DType type) {
  c.ignore({"default_string"});
  const int64_t integer = c.integer("default_int64", -1);
  const double real = c.real("default_float", -0.0);
  if (const TensorData* data = c.tensor("default_tensor")) return c.reshape(c.constant(to_tensor(*data)), Ints{});
  return is_floating(type) ? c.scalar(real, type) : c.cast(c.integer_scalar(integer), type);
}

}  // namespace

// Of equal keys the last one counts; a NaN is one.
void import_label_encoder(NodeContext& c) {
  ir::Value* x = c.require(0);
  if (c.has_attribute("classes_strings")) return c.unsupported("its classes are strings, which no network has");
  const Tensor keys = numbers(c, kKeys), values = numbers(c, kValues);
  if (c.failed()) return;
  if (keys.volume() != values.volume() || keys.volume() == 0 || keys.dtype() != x->dtype())
    return c.invalid("it has {} keys of {} for numbers of {}, and {} values; expected as many, of the input's type",
                     keys.volume(), name_of(keys.dtype()), name_of(x->dtype()), values.volume());
  ir::Value* each = c.reshape(c.constant(keys), {-1});
  ir::Value* wide = c.unsqueeze(x, {x->rank()});
  ir::Value* hits = c.cast(same_number(c, wide, each), DType::i32);
  ArgReduceAttrs last;
  last.axis = -1, last.keepdims = false, last.select_last = true;
  ir::Value* found = c.gather(c.reshape(c.constant(values), {-1}), c.add(last, {hits}), 0);
  ir::Value* is_key = c.binary(Op::greater, c.reduce(ReduceOp::max, hits, {-1}, false), 0.0);
  c.set_output(0, c.select(is_key, found, fallback(c, values.dtype())));
}

}  // namespace lathe::onnx
