// SPDX-License-Identifier: Apache-2.0
// Numbers or strings for numbers or strings, by a list of pairs.
#include <numeric>
#include <tuple>

#include "compose/same_number.h"
#include "compose/text.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

using Op = ElementwiseOp;

// The attributes that may hold one list.
struct ListNames {
  const char *what, *tensor, *integers, *reals, *strings;
};
constexpr ListNames kKeys = {"keys", "keys_tensor", "keys_int64s", "keys_floats", "keys_strings"};
constexpr ListNames kValues = {"values", "values_tensor", "values_int64s", "values_floats", "values_strings"};

// Numbers, or else strings.
struct List {
  Tensor numbers;
  std::vector<std::string> strings;
  bool is_text() const { return !numbers.defined(); }
  int64_t size() const { return is_text() ? static_cast<int64_t>(strings.size()) : numbers.volume(); }
  std::string_view type() const { return is_text() ? "string" : name_of(numbers.dtype()); }
};

// Empty after an error.
List read_list(NodeContext& c, const ListNames& names) {
  if (const TensorData* data = c.tensor(names.tensor)) {
    if (data->type == ElementType::string) return {{}, {data->strings.begin(), data->strings.end()}};
    Result<Tensor> list = to_tensor(*data);
    if (list) return {*std::move(list), {}};
    c.set_error(std::move(list).error());
    return {};
  }
  if (c.has_attribute(names.integers)) {
    const Ints values = c.integers(names.integers);
    return {Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values), {}};
  }
  if (c.has_attribute(names.reals)) {
    const std::vector<double> values = c.reals(names.reals);
    const std::vector<float> floats(values.begin(), values.end());
    return {Tensor::from<float>({static_cast<int64_t>(floats.size())}, floats), {}};
  }
  if (!c.has_attribute(names.strings)) c.invalid("it has no {}", names.what);
  return {{}, c.strings(names.strings)};
}

// Version 1: strings and their numbers, in either direction.
std::pair<List, List> read_classes(NodeContext& c, bool from_text) {
  List names{{}, c.strings("classes_strings")};
  Ints count(names.strings.size());
  std::iota(count.begin(), count.end(), 0);
  List numbers{Tensor::from<int64_t>({static_cast<int64_t>(count.size())}, count), {}};
  return from_text ? std::pair(names, numbers) : std::pair(numbers, names);
}

// What becomes of x that is no key.
ir::Value* number_fallback(NodeContext& c, DType type) {
  c.ignore({"default_string"});
  const int64_t integer = c.integer("default_int64", -1);
  const double real = c.real("default_float", -0.0);
  if (const TensorData* data = c.tensor("default_tensor")) return c.reshape(c.constant(to_tensor(*data)), Ints{});
  return is_floating(type) ? c.scalar(real, type) : c.cast(c.integer_scalar(integer), type);
}

std::string text_fallback(NodeContext& c) {
  c.ignore({"default_int64", "default_float"});
  std::string given = c.string("default_string", "_Unused");
  const TensorData* data = c.tensor("default_tensor");
  if (!data) return given;
  if (data->strings.size() == 1) return std::string(data->strings[0]);
  c.invalid("its default_tensor is not one string, and its values are strings");
  return given;
}

// The index of each key that x has, or -1. Of equal keys the last one counts; a NaN is one.
ir::Value* find_keys(NodeContext& c, const List& keys) {
  if (keys.is_text()) return find_words(c, c.text(0), keys.strings);
  ir::Value* x = c.require(0);
  ir::Value* each = c.reshape(c.constant(keys.numbers), {-1});
  ir::Value* hits = c.cast(same_number(c, c.unsqueeze(x, {x->rank()}), each), DType::i32);
  ArgReduceAttrs last;
  last.axis = -1, last.keepdims = false, last.select_last = true;
  ir::Value* is_key = c.binary(Op::greater, c.reduce(ReduceOp::max, hits, {-1}, false), 0.0);
  return c.select(is_key, c.add(last, {hits}), c.integer_scalar(-1));
}

}  // namespace

void import_label_encoder(NodeContext& c) {
  ir::Value* text = c.text(0);
  const ir::Value* x = text ? text : c.require(0);
  List keys, values;
  if (c.has_attribute("classes_strings"))
    std::tie(keys, values) = read_classes(c, text != nullptr);
  else
    keys = read_list(c, kKeys), values = read_list(c, kValues);
  if (c.failed()) return;
  const std::string_view type = text ? "string" : name_of(x->dtype());
  if (keys.size() != values.size() || keys.size() == 0 || keys.type() != type)
    return c.invalid("it has {} keys of {} for an input of {}, and {} values; expected as many, of the input's type",
                     keys.size(), keys.type(), type, values.size());
  ir::Value* at = find_keys(c, keys);
  ir::Value* is_key = c.binary(Op::greater_equal, at, 0.0);
  if (values.is_text()) {
    std::vector<std::string> all = values.strings;
    all.push_back(text_fallback(c));
    ir::Value* rows = c.text_constant({static_cast<int64_t>(all.size())}, {all.begin(), all.end()});
    return c.set_text(0, c.gather(rows, c.select(is_key, at, c.integer_scalar(values.size())), 0));
  }
  ir::Value* of_keys = c.gather(c.reshape(c.constant(values.numbers), {-1}), c.binary(Op::max, at, 0.0), 0);
  c.set_output(0, c.select(is_key, of_keys, number_fallback(c, values.numbers.dtype())));
}

}  // namespace lathe::onnx
