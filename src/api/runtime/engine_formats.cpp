// SPDX-License-Identifier: Apache-2.0
// Formats of an engine's inputs and outputs.
#include "api/plan_keys.h"
#include "api/runtime/cuda_engine.h"
#include "api/runtime/type_words.h"

namespace lathe::api {

Result<> EngineCore::find_formats() {
  constexpr std::string_view kLinear = "Row major linear";  // in front of the type's name
  for (size_t i = 0; i < plan().bindings.size(); ++i) {
    const plan::TensorDesc& desc = tensor(static_cast<int>(i));
    std::string& words = format_words.emplace_back(format_sentence(desc.dtype));
    const std::string* text = find_key(plan(), kFormatKey, plan().bindings[i].name);
    if (!text) {
      formats.emplace_back();
      continue;
    }
    LATHE_ASSIGN(const MemoryFormat format, MemoryFormat::parse(*text));
    const Shape expected = format.in_memory(Shape(format.channel_axis() + 1 + format.layout().spatial, Expr(1)));
    if (expected.size() != desc.dims.size())
      return fail(ErrorCode::plan_malformed, "tensor '{}' of {} dimensions has format {}", plan().bindings[i].name,
                  desc.dims.size(), *text);
    words.replace(0, kLinear.size(), format.layout().words);
    formats.emplace_back(format);
  }
  return {};
}

const MemoryFormat* EngineCore::format(int i) const {
  const std::optional<MemoryFormat>& format = formats[static_cast<size_t>(i)];
  return format ? &*format : nullptr;
}

Dims EngineCore::in_network(size_t binding, Dims dims) const {
  return formats[binding] && !dims.empty() ? formats[binding]->in_network(dims) : dims;
}

Result<Dims> EngineCore::in_memory(size_t binding, const Dims& dims) const {
  return formats[binding] ? formats[binding]->in_memory_checked(dims) : dims;
}

Dims EngineCore::strides(size_t binding, const Dims& in_memory) const {
  if (formats[binding]) return formats[binding]->strides(formats[binding]->in_network(in_memory));
  Dims strides(in_memory.size());
  int64_t stride = 1;
  for (size_t d = in_memory.size(); d-- > 0; stride *= in_memory[d]) strides[d] = stride;
  return strides;
}

}  // namespace lathe::api
