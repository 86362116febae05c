// SPDX-License-Identifier: Apache-2.0
#include "plugin/field_bytes.h"

#include <cstring>
#include <optional>

#include "base/divide.h"

namespace lathe::plugin {
namespace {

namespace nv = nvinfer1;

constexpr size_t kMostBytes = size_t{8} << 20;  // the metadata of a plan holds them as text

// Bits of an element; nullopt = there is no such type.
std::optional<size_t> bits_of(nv::PluginFieldType type) {
  switch (type) {
    case nv::PluginFieldType::kINT4:
    case nv::PluginFieldType::kFP4:
      return 4;
    case nv::PluginFieldType::kINT8:
    case nv::PluginFieldType::kCHAR:
    case nv::PluginFieldType::kFP8:
    case nv::PluginFieldType::kUNKNOWN:  // bytes
      return 8;
    case nv::PluginFieldType::kFLOAT16:
    case nv::PluginFieldType::kBF16:
    case nv::PluginFieldType::kINT16:
      return 16;
    case nv::PluginFieldType::kFLOAT32:
    case nv::PluginFieldType::kINT32:
      return 32;
    case nv::PluginFieldType::kFLOAT64:
    case nv::PluginFieldType::kINT64:
      return 64;
    case nv::PluginFieldType::kDIMS:
      return 8 * sizeof(nv::Dims);
  }
  return std::nullopt;
}

void put(std::vector<std::byte>& bytes, const void* data, size_t size) {
  const auto* from = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), from, from + size);
}

void put(std::vector<std::byte>& bytes, uint32_t number) { put(bytes, &number, sizeof number); }

tl::unexpected<Error> malformed() {
  return fail(ErrorCode::plan_malformed, "the fields of a plugin are cut off or of an unknown type");
}

// Takes from the front.
bool take(std::span<const std::byte>& bytes, void* to, size_t size) {
  if (size > bytes.size()) return false;
  if (size > 0) std::memcpy(to, bytes.data(), size);
  bytes = bytes.subspan(size);
  return true;
}

}  // namespace

Result<std::vector<std::byte>> encode_fields(const nv::PluginFieldCollection& fields) {
  if (fields.nbFields < 0 || (fields.nbFields > 0 && !fields.fields))
    return fail(ErrorCode::invalid_argument, "{} fields at {}", fields.nbFields,
                static_cast<const void*>(fields.fields));
  std::vector<std::byte> bytes;
  put(bytes, static_cast<uint32_t>(fields.nbFields));
  for (int32_t i = 0; i < fields.nbFields; ++i) {
    const nv::PluginField& field = fields.fields[i];
    const std::optional<size_t> bits = bits_of(field.type);
    if (!field.name) return fail(ErrorCode::invalid_argument, "field {} has no name", i);
    if (!bits || field.length < 0 || (field.length > 0 && !field.data))
      return fail(ErrorCode::invalid_argument, "field '{}' has {} elements of type {} at {}", field.name, field.length,
                  static_cast<int>(field.type), field.data);
    const size_t size = ceil_div(static_cast<size_t>(field.length) * *bits, size_t{8});
    const size_t name = std::strlen(field.name);
    if (bytes.size() + name + size > kMostBytes)
      return fail(ErrorCode::invalid_argument,
                  "field '{}' makes the fields longer than {} bytes; give large data to the plugin as an input",
                  field.name, kMostBytes);
    put(bytes, static_cast<uint32_t>(name));
    put(bytes, field.name, name);
    put(bytes, static_cast<uint32_t>(field.type));
    put(bytes, static_cast<uint32_t>(field.length));
    put(bytes, field.data, size);
  }
  return bytes;
}

Result<Fields> Fields::decode(std::span<const std::byte> bytes) {
  Fields fields;
  uint32_t count = 0;
  if (!take(bytes, &count, sizeof count)) return malformed();
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t name = 0, type = 0, length = 0;
    if (!take(bytes, &name, sizeof name) || name > bytes.size()) return malformed();
    std::string& text = fields.names_.emplace_back(name, '\0');
    take(bytes, text.data(), name);
    if (!take(bytes, &type, sizeof type) || !take(bytes, &length, sizeof length) || length > INT32_MAX)
      return malformed();
    const std::optional<size_t> bits = bits_of(static_cast<nv::PluginFieldType>(type));
    const size_t size = bits ? ceil_div(length * *bits, size_t{8}) : 0;
    if (!bits || size > bytes.size()) return malformed();
    auto& data = fields.elements_.emplace_back(
        std::make_unique<std::max_align_t[]>(ceil_div(size, sizeof(std::max_align_t)) + 1));
    take(bytes, data.get(), size);
    fields.fields_.emplace_back(text.c_str(), length > 0 ? data.get() : nullptr, static_cast<nv::PluginFieldType>(type),
                                static_cast<int32_t>(length));
  }
  return bytes.empty() ? Result<Fields>(std::move(fields)) : malformed();
}

}  // namespace lathe::plugin
