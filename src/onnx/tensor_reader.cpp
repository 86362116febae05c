// SPDX-License-Identifier: Apache-2.0
#include "onnx/tensor_reader.h"

#include <cstring>

namespace lathe::onnx {
namespace {

// The content fields of a TensorProto; which of them may be used depends on the type, which may come last.
struct Content {
  std::vector<std::byte> reals32, reals64, integers32, integers64;
  size_t values = 0;  // in the typed fields together
  std::string_view raw;
  bool has_raw = false;
  bool external = false;
  ExternalReference reference;
};

template <class T>
void append(std::vector<std::byte>& bytes, T value, size_t width = sizeof(T)) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + width);
}

void read_external(WireCursor cursor, ExternalReference& reference) {
  std::string_view key, value;
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        key = cursor.bytes();
        break;
      case 2:
        value = cursor.bytes();
        break;
      default:
        cursor.skip();
    }
  }
  if (key == "location") reference.location = value;
  if (key == "offset") reference.offset = value;
  if (key == "length") reference.length = value;
}

// The typed field that holds elements of this type, and the bytes that each of its entries stands for.
std::vector<std::byte>* typed_field(ElementType type, Content& content, size_t& width) {
  switch (type) {
    case ElementType::float32:
    case ElementType::complex64:
      width = 4;
      return &content.reals32;
    case ElementType::float64:
    case ElementType::complex128:
      width = 8;
      return &content.reals64;
    case ElementType::int64:
      width = 8;
      return &content.integers64;
    case ElementType::uint32:
      width = 4;
      return &content.integers64;
    case ElementType::uint64:
      width = 8;
      return &content.integers64;
    default:
      width = static_cast<size_t>(std::max(8, bits_of(type)) / 8);
      return &content.integers32;
  }
}

Error problem(const TensorData& tensor, std::string text) {
  return Error{ErrorCode::model_invalid, fmt::format("tensor '{}': {}", tensor.name, text), {}};
}

std::string dims_text(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += fmt::format("{}{}", i ? ", " : "", dims[i]);
  return text + "]";
}

Result<> take_typed(TensorData& tensor, Content& content, uint64_t need) {
  size_t width = 0;
  std::vector<std::byte>* field = typed_field(tensor.type, content, width);
  const size_t stored = field == &content.integers64 ? 8 : field == &content.reals64 ? 8 : 4;
  if (field->size() / stored != content.values)
    return fail(
        problem(tensor, fmt::format("its content is in a field that does not belong to {}", name_of(tensor.type))));
  if (content.values * width != need)
    return fail(
        problem(tensor, fmt::format("{} of dims {} needs {} bytes, but its content has {}", name_of(tensor.type),
                                    dims_text(tensor.dims), need, content.values * width)));
  auto bytes = std::make_shared<std::vector<std::byte>>(std::move(*field));
  if (width != stored) {
    for (size_t i = 0; i < content.values; ++i)
      std::memmove(bytes->data() + i * width, bytes->data() + i * stored, width);
    bytes->resize(need);
    bytes->shrink_to_fit();
  }
  tensor.bytes = *bytes;
  tensor.owner = std::move(bytes);
  return {};
}

Result<> take_content(TensorReader& reader, TensorData& tensor, Content& content) {
  if (!is_known(tensor.type)) return fail(problem(tensor, fmt::format("{} does not exist", name_of(tensor.type))));
  const std::optional<uint64_t> need = storage_bytes(tensor.type, tensor.dims);
  if (!need) return fail(problem(tensor, fmt::format("dims {} are negative or too large", dims_text(tensor.dims))));
  if (tensor.type == ElementType::string) {
    if (content.has_raw || content.external || content.values)
      return fail(problem(tensor, "strings must be in string_data"));
    if (tensor.strings.size() != element_count(tensor.dims))
      return fail(
          problem(tensor, fmt::format("dims {} do not fit {} strings", dims_text(tensor.dims), tensor.strings.size())));
    return {};
  }
  if (!tensor.strings.empty())
    return fail(problem(tensor, fmt::format("string_data does not belong to {}", name_of(tensor.type))));
  if ((content.has_raw && content.values) || (content.external && (content.values || content.has_raw)))
    return fail(problem(tensor, "more than one field holds its content"));
  if (content.external) {
    Result<ExternalData::Piece> piece = reader.external.find(tensor.name, content.reference, *need);
    if (!piece && !reader.may_miss_external) return fail(std::move(piece).error());
    if (!piece) {
      tensor.missing = std::make_shared<const Error>(std::move(piece).error());
      return {};
    }
    tensor.bytes = piece->bytes;
    tensor.owner = std::move(piece->file);
    tensor.copies = reader.copies;
    return {};
  }
  if (!content.has_raw) return take_typed(tensor, content, *need);
  if (content.raw.size() != *need)
    return fail(problem(tensor, fmt::format("{} of dims {} needs {} bytes, but raw_data has {}", name_of(tensor.type),
                                            dims_text(tensor.dims), *need, content.raw.size())));
  tensor.bytes = std::as_bytes(std::span(content.raw.data(), content.raw.size()));
  tensor.owner = reader.owner;
  if (reader.is_file) tensor.copies = reader.copies;
  return {};
}

}  // namespace

void TensorReader::read(WireCursor cursor, TensorData& tensor) {
  Content content;
  const auto add64 = [&](int64_t value) { ++content.values, append(content.integers64, value); };
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        cursor.integers([&](int64_t dim) { tensor.dims.push_back(dim); });
        break;
      case 2:
        tensor.type = static_cast<ElementType>(cursor.integer32());
        break;
      case 4:
        cursor.reals32([&](float value) { ++content.values, append(content.reals32, value); });
        break;
      case 5:
        cursor.integers(
            [&](int64_t value) { ++content.values, append(content.integers32, static_cast<int32_t>(value)); });
        break;
      case 6:
        if (cursor.charge(sizeof(std::string_view))) tensor.strings.push_back(cursor.bytes());
        break;
      case 7:
        cursor.integers(add64);
        break;
      case 8:
        tensor.name = cursor.bytes();
        break;
      case 9:
        content.raw = cursor.bytes(), content.has_raw = true;
        break;
      case 10:
        cursor.reals64([&](double value) { ++content.values, append(content.reals64, value); });
        break;
      case 11:
        cursor.integers(add64);
        break;
      case 13:
        read_external(cursor.message("StringStringEntryProto"), content.reference);
        break;
      case 14:
        content.external = cursor.integer() == 1;
        break;
      default:
        cursor.skip();
    }
  }
  if (cursor.failed()) return;
  auto taken = take_content(*this, tensor, content);
  if (!taken) problems.push_back(std::move(taken).error());
}

void TensorReader::read(WireCursor cursor, SparseTensorData& tensor) {
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        read(cursor.message("TensorProto"), tensor.values);
        break;
      case 2:
        read(cursor.message("TensorProto"), tensor.indices);
        break;
      case 3:
        cursor.integers([&](int64_t dim) { tensor.dims.push_back(dim); });
        break;
      default:
        cursor.skip();
    }
  }
}

}  // namespace lathe::onnx
