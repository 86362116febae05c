// SPDX-License-Identifier: Apache-2.0
// ONNX's TensorProto: elements as raw bytes or as lists of numbers.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "failure.h"
#include "protobuf.h"
#include "tensor_file.h"

namespace lathe::cli {
namespace {

enum Field : uint32_t {
  kDims = 1,
  kType = 2,
  kFloats = 4,
  kInts = 5,
  kStrings = 6,
  kLongs = 7,
  kName = 8,
  kRaw = 9,
  kDoubles = 10,
  kUnsigned = 11,
  kExternal = 13,
};

constexpr uint64_t kStringType = 8;  // of TensorProto.DataType

// Numbers are stored wider than the element; the low bytes are the element (little-endian).
void append_element(std::string& out, uint64_t value, size_t bytes) {
  out.append(reinterpret_cast<const char*>(&value), bytes);
}

struct Parsed {
  std::vector<int64_t> dims;
  uint64_t type = 0;
  std::string name;
  std::string elements;           // fixed-width lists, and raw data
  std::vector<uint64_t> numbers;  // varint lists
  std::vector<std::string_view> strings;
};

void append_numbers(std::vector<uint64_t>& out, const ProtoField& field) {
  if (field.wire == 0) {
    out.push_back(field.value);
    return;
  }
  ProtoReader list(field.bytes);
  while (const std::optional<uint64_t> value = list.varint()) out.push_back(*value);
}

Parsed parse_fields(std::string_view bytes) {
  Parsed parsed;
  std::vector<uint64_t> dims;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) {
    switch (field.number) {
      case kDims:
        append_numbers(dims, field);
        break;
      case kType:
        parsed.type = field.value;
        break;
      case kName:
        parsed.name = field.bytes;
        break;
      case kFloats:
      case kDoubles:
      case kRaw:
        parsed.elements += field.bytes;
        break;
      case kInts:
      case kLongs:
      case kUnsigned:
        append_numbers(parsed.numbers, field);
        break;
      case kStrings:
        parsed.strings.push_back(field.bytes);
        break;
      case kExternal:
        throw Failure("tensors with external data are not supported here");
      default:
        break;
    }
  }
  parsed.dims.assign(dims.begin(), dims.end());
  return parsed;
}

// As an engine has strings: bytes of one dimension more.
HostTensor text_tensor(Parsed& parsed) {
  HostTensor tensor{std::move(parsed.name), DataType::kUINT8, std::move(parsed.dims), {}, true};
  if (volume(tensor.dims) != static_cast<int64_t>(parsed.strings.size()))
    throw Failure(fmt::format("it holds {} strings, but has shape {}", parsed.strings.size(), to_text(tensor.dims)));
  size_t width = 1;
  for (const std::string_view string : parsed.strings) width = std::max(width, string.size());
  tensor.dims.push_back(static_cast<int64_t>(width));
  tensor.data.resize(byte_size(tensor.type, tensor.dims));
  for (size_t i = 0; i < parsed.strings.size(); ++i)
    std::ranges::copy(std::as_bytes(std::span(parsed.strings[i])),
                      tensor.data.begin() + static_cast<ptrdiff_t>(i * width));
  return tensor;
}

}  // namespace

HostTensor parse_tensor_proto(std::string_view bytes) {
  Parsed parsed = parse_fields(bytes);
  if (parsed.type == kStringType) return text_tensor(parsed);
  const TypeInfo* info = find_onnx_type(static_cast<int64_t>(parsed.type));
  if (!info) throw Failure(fmt::format("tensors of ONNX type {} are not supported", parsed.type));
  HostTensor tensor{std::move(parsed.name), info->type, std::move(parsed.dims), {}, false};
  const size_t width = std::max<size_t>(static_cast<size_t>(info->bits) / 8, 1);  // of packed elements: several
  for (uint64_t number : parsed.numbers) append_element(parsed.elements, number, width);
  const size_t wanted = byte_size(tensor.type, tensor.dims);
  if (parsed.elements.size() != wanted)
    throw Failure(fmt::format("it holds {} bytes of data, but {} of shape {} has {}", parsed.elements.size(),
                              info->name, to_text(tensor.dims), wanted));
  tensor.data.resize(wanted);
  if (wanted > 0) std::memcpy(tensor.data.data(), parsed.elements.data(), wanted);
  return tensor;
}

std::vector<HostTensor> parse_sequence_proto(std::string_view bytes) {
  constexpr uint32_t kTensors = 3, kSequence = 5;  // the latter is that of an OptionalProto
  std::vector<HostTensor> tensors;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) {
    if (field.number == kTensors) tensors.push_back(parse_tensor_proto(field.bytes));
    if (field.number == kSequence) return parse_sequence_proto(field.bytes);
  }
  return tensors;
}

}  // namespace lathe::cli
