// SPDX-License-Identifier: Apache-2.0
#include "api/network/plugin_fields.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "onnx/node_context.h"
#include "ops/rules.h"

namespace lathe::api {
namespace {

namespace nv = nvinfer1;
using nv::PluginFieldType;

struct FieldRow {
  PluginFieldType field;
  DType dtype;
};

constexpr FieldRow kFieldRows[] = {
    {PluginFieldType::kFLOAT16, DType::f16},  {PluginFieldType::kFLOAT32, DType::f32},
    {PluginFieldType::kFLOAT64, DType::f64},  {PluginFieldType::kINT8, DType::i8},
    {PluginFieldType::kINT16, DType::i16},    {PluginFieldType::kINT32, DType::i32},
    {PluginFieldType::kINT64, DType::i64},    {PluginFieldType::kBF16, DType::bf16},
    {PluginFieldType::kFP8, DType::f8e4m3fn}, {PluginFieldType::kINT4, DType::i4},
    {PluginFieldType::kFP4, DType::f4e2m1},
};

template <class T>
Result<Tensor> list_of(const std::vector<T>& values) {
  return Tensor::from(Dims{static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

Result<Tensor> numbers_of(const onnx::Attribute& attribute) {
  switch (attribute.kind) {
    case onnx::AttributeKind::real:
      return list_of(std::vector<float>{attribute.real});
    case onnx::AttributeKind::integer:
      return list_of(std::vector<int64_t>{attribute.integer});
    case onnx::AttributeKind::reals:
      return list_of(attribute.reals);
    case onnx::AttributeKind::integers:
      return list_of(attribute.integers);
    case onnx::AttributeKind::tensor:
      return onnx::to_tensor(attribute.tensors.front());
    default:
      return fail(ErrorCode::attribute_invalid,
                  "attribute '{}' cannot be a plugin's field: numbers, lists of them, strings and tensors can",
                  attribute.name);
  }
}

Result<PluginFieldType> natural_type(const onnx::Attribute& attribute, const Tensor& numbers) {
  if (attribute.kind == onnx::AttributeKind::integer || attribute.kind == onnx::AttributeKind::integers) {
    const std::vector<int64_t> values = to_ints(numbers);
    const auto fits = [](int64_t value) { return wrap_to(DType::i32, value) == value; };
    return std::all_of(values.begin(), values.end(), fits) ? PluginFieldType::kINT32 : PluginFieldType::kINT64;
  }
  for (const FieldRow& row : kFieldRows)
    if (row.dtype == numbers.dtype()) return row.field;
  return fail(ErrorCode::attribute_invalid, "attribute '{}' is a tensor of {}, a type that plugins' fields do not have",
              attribute.name, name_of(numbers.dtype()));
}

Result<Tensor> converted(const onnx::Attribute& attribute, const Tensor& from, DType type) {
  if (from.dtype() == type) return from;
  const auto lost = [&](auto value) {
    return fail(ErrorCode::attribute_invalid, "attribute '{}': the plugin's field is of type {}, which cannot hold {}",
                attribute.name, name_of(type), value);
  };
  LATHE_ASSIGN(Tensor to, Tensor::allocate(type, from.dims()));
  if (is_integer(from.dtype()) && is_integer(type)) {
    const std::vector<int64_t> values = to_ints(from);
    for (const int64_t value : values)
      if (wrap_to(type, value) != value) return lost(value);
    from_ints(values, to);
    return to;
  }
  if (is_storage_only(from.dtype()) || is_storage_only(type))
    return fail(ErrorCode::attribute_invalid, "attribute '{}' is of {}, and the plugin's field of {}", attribute.name,
                name_of(from.dtype()), name_of(type));
  const std::vector<double> values = to_doubles(from);
  for (const double value : values)
    if (is_integer(type) && (!(std::abs(value) < 0x1p53) || value != std::trunc(value) ||
                             wrap_to(type, static_cast<int64_t>(value)) != static_cast<int64_t>(value)))
      return lost(value);
  from_doubles(values, to);
  return to;
}

// The numbers as the dims of one nvinfer1::Dims.
Result<Tensor> as_dims(const onnx::Attribute& attribute, const Tensor& numbers) {
  if (!is_integer(numbers.dtype()) || numbers.volume() > nv::Dims::MAX_DIMS)
    return fail(
        ErrorCode::attribute_invalid,
        "attribute '{}' has {} elements of {}; the plugin's field holds dimensions, which are at most {} integers",
        attribute.name, numbers.volume(), name_of(numbers.dtype()), nv::Dims::MAX_DIMS);
  nv::Dims dims{static_cast<int32_t>(numbers.volume()), {}};
  const std::vector<int64_t> values = to_ints(numbers);
  std::copy(values.begin(), values.end(), dims.d);
  LATHE_ASSIGN(Tensor bytes, Tensor::allocate(DType::u8, {sizeof dims}));
  std::memcpy(bytes.mutable_data(), &dims, sizeof dims);
  return bytes;
}

}  // namespace

std::optional<DType> element_type(PluginFieldType type) {
  for (const FieldRow& row : kFieldRows)
    if (row.field == type) return row.dtype;
  return std::nullopt;
}

Result<> PluginFields::add(const onnx::Attribute& attribute, std::optional<PluginFieldType> wanted) {
  if (wanted == PluginFieldType::kUNKNOWN) wanted = std::nullopt;
  Tensor content;
  PluginFieldType type = PluginFieldType::kCHAR;
  int64_t length = 0;
  const bool is_text = attribute.kind == onnx::AttributeKind::string;
  if (wanted && is_text != (*wanted == PluginFieldType::kCHAR))
    return fail(ErrorCode::attribute_invalid, "attribute '{}' is {}, and the plugin's field of that name is {}",
                attribute.name, is_text ? "a string" : "numbers", is_text ? "numbers" : "a string");
  if (is_text) {
    length = static_cast<int64_t>(attribute.string.size());
    LATHE_ASSIGN(content, Tensor::allocate(DType::u8, {length + 1}));
    std::memset(content.mutable_data(), 0, static_cast<size_t>(length) + 1);
    if (length > 0) std::memcpy(content.mutable_data(), attribute.string.data(), static_cast<size_t>(length));
  } else {
    LATHE_ASSIGN(content, numbers_of(attribute));
    if (!wanted) {
      LATHE_ASSIGN(wanted, natural_type(attribute, content));
    }
    type = *wanted;
    length = type == PluginFieldType::kDIMS ? 1 : content.volume();
    const auto* row =
        std::find_if(std::begin(kFieldRows), std::end(kFieldRows), [&](const auto& r) { return r.field == type; });
    if (type != PluginFieldType::kDIMS && row == std::end(kFieldRows))
      return fail(ErrorCode::attribute_invalid, "the plugin's field '{}' is of type {}, which does not exist",
                  attribute.name, static_cast<int>(type));
    LATHE_ASSIGN(content, type == PluginFieldType::kDIMS ? as_dims(attribute, content)
                                                         : converted(attribute, content, row->dtype));
  }
  names_.emplace_back(attribute.name);
  contents_.push_back(std::move(content));
  fields_.emplace_back(names_.back().c_str(), contents_.back().data(), type, static_cast<int32_t>(length));
  return {};
}

std::string PluginFields::names() const {
  std::string text;
  for (const std::string& name : names_) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace lathe::api
