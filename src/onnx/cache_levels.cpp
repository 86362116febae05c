// SPDX-License-Identifier: Apache-2.0
#include "onnx/cache_levels.h"

namespace lathe::onnx {

CacheLevels::CacheLevels(NodeContext& c, std::string_view side, const ir::Value* cache, size_t scale, int64_t heads,
                         DType floats)
    : c_(c), side_(side), type_(cache ? cache->dtype() : floats), floats_(floats) {
  read(cache, scale, heads);
}

void CacheLevels::read(const ir::Value* cache, size_t scale, int64_t heads) {
  const std::string kind = c_.string(side_ + "_quant_type", "NONE");
  const bool is_single = kind == "PER_TENSOR", is_quantized = is_single || kind == "PER_CHANNEL";
  if (!is_quantized && kind != "NONE")
    return c_.invalid("{}_quant_type is '{}', expected NONE, PER_TENSOR or PER_CHANNEL", side_, kind);
  if (is_quantized != c_.has(scale))
    return c_.invalid("{}_scale is given with {}_quant_type PER_TENSOR or PER_CHANNEL, and not without", side_, side_);
  if (!is_quantized && type_ != floats_)
    return c_.unsupported("a {} cache of {} beside a query of {} is not supported without {}_quant_type", side_,
                          name_of(type_), name_of(floats_), side_);
  if (!is_quantized) return;
  if (!cache) return c_.unsupported("{}_quant_type '{}' is not supported without a cache as an input", side_, kind);
  if (type_ != DType::i8 && type_ != DType::f8e4m3fn)
    return c_.unsupported("a quantised {} cache of {} is not supported; give one of int8 or float8e4m3fn", side_,
                          name_of(type_));
  ir::Value* given = c_.input(scale);
  if (given->dtype() != DType::f32) return c_.invalid("{}_scale is {}, expected f32", side_, name_of(given->dtype()));
  const auto count = volume(given->shape()).as_constant(),
             wanted = is_single ? 1 : (Expr(heads) * cache->shape().back()).as_constant();
  if (count && wanted && *count != *wanted)
    return c_.invalid("{}_scale has {} numbers, expected {} for {}_quant_type '{}'", side_, *count, *wanted, side_,
                      kind);
  scale_ = c_.reshape(given, is_single ? Ints{} : Ints{heads, 1, -1});
}

ir::Value* CacheLevels::levels(ir::Value* heads) const {
  if (!scale_) return heads;
  QuantizeAttrs attributes;
  attributes.to = type_;
  return c_.add(attributes, {c_.cast(heads, DType::f32), scale_});
}

ir::Value* CacheLevels::floats(ir::Value* levels) const {
  if (!scale_) return levels;
  DequantizeAttrs attributes;
  attributes.to = floats_;
  return c_.add(attributes, {levels, scale_});
}

}  // namespace lathe::onnx
