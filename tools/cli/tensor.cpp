// SPDX-License-Identifier: Apache-2.0
#include "tensor.h"

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <random>

#include "failure.h"

namespace lathe::cli {
namespace {

constexpr const char* kBytes = "|V1";

constexpr TypeInfo kTypes[] = {
    {DataType::kFLOAT, "float32", 32, "<f4", 1},
    {DataType::kUINT8, "uint8", 8, "|u1", 2},
    {DataType::kINT8, "int8", 8, "|i1", 3},
    {kUINT16, "uint16", 16, "<u2", 4},
    {kINT16, "int16", 16, "<i2", 5},
    {DataType::kINT32, "int32", 32, "<i4", 6},
    {DataType::kINT64, "int64", 64, "<i8", 7},
    {DataType::kBOOL, "bool", 8, "|b1", 9},
    {DataType::kHALF, "float16", 16, "<f2", 10},
    {kDOUBLE, "float64", 64, "<f8", 11},
    {kUINT32, "uint32", 32, "<u4", 12},
    {kUINT64, "uint64", 64, "<u8", 13},
    {DataType::kBF16, "bfloat16", 16, "|V2", 16},
    {DataType::kFP8, "float8e4m3fn", 8, kBytes, 17},
    {kFP8_E4M3FNUZ, "float8e4m3fnuz", 8, kBytes, 18},
    {kFP8_E5M2, "float8e5m2", 8, kBytes, 19},
    {kFP8_E5M2FNUZ, "float8e5m2fnuz", 8, kBytes, 20},
    {kUINT4, "uint4", 4, kBytes, 21},
    {DataType::kINT4, "int4", 4, kBytes, 22},
    {DataType::kFP4, "float4e2m1", 4, kBytes, 23},
    {DataType::kE8M0, "float8e8m0", 8, kBytes, 24},
    {kUINT2, "uint2", 2, kBytes, 25},
    {kINT2, "int2", 2, kBytes, 26},
};

template <class T>
T load(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

// A sign, so many bits of exponent and of fraction, and no infinities or NaN.
double finite(unsigned bits, int exponent_bits, int fraction_bits, int bias) {
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int one = 1 << fraction_bits, fraction = static_cast<int>(bits) & (one - 1);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                         : std::ldexp(one + fraction, exponent - bias - fraction_bits);
  return bits >> (exponent_bits + fraction_bits) ? -magnitude : magnitude;
}

// The largest exponent is that of infinities and NaN.
double ieee(unsigned bits, int exponent_bits, int fraction_bits) {
  const unsigned magnitude = bits & ((1u << (exponent_bits + fraction_bits)) - 1);
  const unsigned infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  if (magnitude > infinity) return NAN;
  if (magnitude == infinity) return bits > magnitude ? -INFINITY : INFINITY;
  return finite(bits, exponent_bits, fraction_bits, (1 << (exponent_bits - 1)) - 1);
}

double signed_value(unsigned bits, int width) {
  return static_cast<double>(bits) - (bits >> (width - 1) ? 1 << width : 0);
}

// Of types of 8 bits and less that C++ lacks.
double code_to_double(DataType type, unsigned bits) {
  switch (static_cast<int32_t>(type)) {
    case static_cast<int32_t>(DataType::kFP8):
      return (bits & 0x7f) == 0x7f ? NAN : finite(bits, 4, 3, 7);
    case static_cast<int32_t>(kFP8_E4M3FNUZ):
      return bits == 0x80 ? NAN : finite(bits, 4, 3, 8);
    case static_cast<int32_t>(kFP8_E5M2):
      return ieee(bits, 5, 2);
    case static_cast<int32_t>(kFP8_E5M2FNUZ):
      return bits == 0x80 ? NAN : finite(bits, 5, 2, 16);
    case static_cast<int32_t>(DataType::kE8M0):
      return bits == 0xff ? NAN : std::ldexp(1.0, static_cast<int>(bits) - 127);
    case static_cast<int32_t>(DataType::kFP4):
      return finite(bits, 2, 1, 1);
    case static_cast<int32_t>(DataType::kINT4):
      return signed_value(bits, 4);
    case static_cast<int32_t>(kINT2):
      return signed_value(bits, 2);
    case static_cast<int32_t>(kUINT4):
    case static_cast<int32_t>(kUINT2):
      return bits;
    default:
      throw Failure(fmt::format("values of type {} cannot be shown", static_cast<int>(type)));
  }
}

double bfloat_to_double(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// Of a value in [0, 1).
uint16_t to_half(double value) {
  if (value < 0x1p-14) return static_cast<uint16_t>(value * 0x1p24);
  int exponent;
  const double fraction = std::frexp(value, &exponent);
  return static_cast<uint16_t>(((exponent + 14) << 10) + static_cast<int>((fraction * 2 - 1) * 1024));
}

void store_float(DataType type, std::byte* at, double value) {
  const auto narrow = static_cast<float>(value);
  if (type == kDOUBLE) {
    std::memcpy(at, &value, sizeof(value));
  } else if (type == DataType::kFLOAT) {
    std::memcpy(at, &narrow, sizeof(narrow));
  } else if (type == DataType::kBF16) {
    std::memcpy(at, reinterpret_cast<const std::byte*>(&narrow) + 2, 2);
  } else {
    const uint16_t bits = to_half(value);
    std::memcpy(at, &bits, sizeof(bits));
  }
}

}  // namespace

const TypeInfo* find_type(DataType type) {
  for (const TypeInfo& info : kTypes)
    if (info.type == type) return &info;
  return nullptr;
}

const TypeInfo* find_onnx_type(int64_t onnx) {
  for (const TypeInfo& info : kTypes)
    if (info.onnx == onnx) return &info;
  return nullptr;
}

const TypeInfo* find_numpy_type(std::string_view text) {
  for (const TypeInfo& info : kTypes) {
    if (info.numpy == kBytes) continue;
    const bool native = !text.starts_with('>') || info.bits == 8;
    if (native && !text.empty() && text.substr(1) == std::string_view(info.numpy).substr(1)) return &info;
  }
  return nullptr;
}

const TypeInfo& type_info(DataType type) {
  if (const TypeInfo* info = find_type(type)) return *info;
  throw Failure(fmt::format("tensors of type {} cannot be read or written yet", static_cast<int>(type)));
}

std::string type_name(DataType type) {
  const TypeInfo* info = find_type(type);
  return info ? info->name : fmt::format("type {}", static_cast<int>(type));
}

int64_t volume(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(count, d, &count) || count > (int64_t{1} << 56))
      throw Failure(fmt::format("a tensor of shape {} cannot exist", to_text(dims)));
  return count;
}

size_t byte_size(DataType type, const std::vector<int64_t>& dims) {
  const int bits = type_info(type).bits;
  return (static_cast<size_t>(volume(dims)) * static_cast<size_t>(bits) + 7) / 8;
}

unsigned code(DataType type, const std::byte* data, int64_t i) {
  const int bits = type_info(type).bits, per_byte = 8 / bits;
  const auto byte = std::to_integer<unsigned>(data[i / per_byte]);
  return byte >> (i % per_byte * bits) & ((1u << bits) - 1);
}

double element(DataType type, const std::byte* data, int64_t i) {
  switch (static_cast<int32_t>(type)) {
    case static_cast<int32_t>(DataType::kFLOAT):
      return load<float>(data, i);
    case static_cast<int32_t>(kDOUBLE):
      return load<double>(data, i);
    case static_cast<int32_t>(DataType::kHALF):
      return ieee(load<uint16_t>(data, i), 5, 10);
    case static_cast<int32_t>(DataType::kBF16):
      return bfloat_to_double(load<uint16_t>(data, i));
    case static_cast<int32_t>(DataType::kINT8):
      return load<int8_t>(data, i);
    case static_cast<int32_t>(DataType::kUINT8):
    case static_cast<int32_t>(DataType::kBOOL):
      return load<uint8_t>(data, i);
    case static_cast<int32_t>(kINT16):
      return load<int16_t>(data, i);
    case static_cast<int32_t>(kUINT16):
      return load<uint16_t>(data, i);
    case static_cast<int32_t>(DataType::kINT32):
      return load<int32_t>(data, i);
    case static_cast<int32_t>(kUINT32):
      return load<uint32_t>(data, i);
    case static_cast<int32_t>(DataType::kINT64):
      return static_cast<double>(load<int64_t>(data, i));
    case static_cast<int32_t>(kUINT64):
      return static_cast<double>(load<uint64_t>(data, i));
    default:
      return code_to_double(type, code(type, data, i));
  }
}

bool is_float(DataType type) {
  return type == DataType::kFLOAT || type == DataType::kHALF || type == DataType::kBF16 || type == kDOUBLE;
}

std::vector<int64_t> to_vector(const nvinfer1::Dims& dims) {
  return {dims.d, dims.d + (dims.nbDims > 0 ? dims.nbDims : 0)};
}

nvinfer1::Dims to_dims(const std::vector<int64_t>& dims) {
  if (dims.size() > nvinfer1::Dims::MAX_DIMS)
    throw Failure(fmt::format("shape {} has {} dimensions; at most {} are supported", to_text(dims), dims.size(),
                              static_cast<int>(nvinfer1::Dims::MAX_DIMS)));
  nvinfer1::Dims out{};
  out.nbDims = static_cast<int32_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) out.d[i] = dims[i];
  return out;
}

std::string to_text(const std::vector<int64_t>& dims) {
  if (dims.empty()) return "scalar";
  std::string text;
  for (int64_t d : dims) text += (text.empty() ? "" : "x") + (d < 0 ? std::string("?") : std::to_string(d));
  return text;
}

HostTensor make_input(std::string name, DataType type, std::vector<int64_t> dims, uint64_t seed) {
  HostTensor tensor{std::move(name), type, std::move(dims), {}};
  tensor.data.resize(byte_size(type, tensor.dims));
  std::mt19937_64 random(seed);
  const size_t bytes = static_cast<size_t>(type_info(type).bits + 7) / 8;
  for (size_t at = 0; at < tensor.data.size(); at += bytes) {
    if (is_float(type)) store_float(type, &tensor.data[at], static_cast<double>(random() >> 11) * 0x1p-53);
    if (type == DataType::kBOOL) tensor.data[at] = static_cast<std::byte>(random() >> 63);
  }
  return tensor;
}

}  // namespace lathe::cli
