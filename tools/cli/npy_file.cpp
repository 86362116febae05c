// SPDX-License-Identifier: Apache-2.0
// numpy's .npy: "\x93NUMPY", version, length of the header, a Python dict as text, then the elements.
#include <fmt/core.h>

#include <charconv>
#include <cstring>

#include "failure.h"
#include "tensor_file.h"

namespace lathe::cli {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

// The text after "'key':", blanks skipped.
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) throw Failure(fmt::format("the .npy header lacks '{}'", key));
  header.remove_prefix(at + key.size() + 3);
  while (header.starts_with(' ')) header.remove_prefix(1);
  return header;
}

DataType parse_type(std::string_view header) {
  std::string_view text = value_of(header, "descr");
  const size_t end = text.find('\'', 1);
  if (!text.starts_with('\'') || end == std::string_view::npos || end < 3)
    throw Failure("the .npy file holds records, not numbers");
  text = text.substr(1, end - 1);
  if (const TypeInfo* info = find_numpy_type(text)) return info->type;
  throw Failure(fmt::format("elements of numpy type '{}' are not supported", text));
}

std::vector<int64_t> parse_shape(std::string_view header) {
  std::string_view text = value_of(header, "shape");
  if (!text.starts_with('(')) throw Failure("the shape in the .npy header is not a tuple");
  text.remove_prefix(1);
  std::vector<int64_t> dims;
  for (;;) {
    while (text.starts_with(' ') || text.starts_with(',')) text.remove_prefix(1);
    if (text.starts_with(')')) return dims;
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc() || dim < 0 || dims.size() == 64)
      throw Failure("the shape in the .npy header is malformed");
    dims.push_back(dim);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

// Elements in Fortran's order, put into C's.
void reorder(HostTensor& tensor, std::string_view bytes) {
  const size_t size = static_cast<size_t>(type_info(tensor.type).bits) / 8;
  std::vector<int64_t> index(tensor.dims.size(), 0);
  for (size_t from = 0; from < bytes.size(); from += size) {
    size_t to = 0;
    for (size_t d = 0; d < index.size(); ++d)
      to = to * static_cast<size_t>(tensor.dims[d]) + static_cast<size_t>(index[d]);
    std::memcpy(&tensor.data[to * size], &bytes[from], size);
    for (size_t d = 0; d < index.size() && ++index[d] == tensor.dims[d]; ++d) index[d] = 0;
  }
}

}  // namespace

HostTensor parse_npy(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) throw Failure("this is not a .npy file");
  const bool wide = bytes[6] >= 2;
  size_t length = 0;
  for (size_t i = 0; i < (wide ? 4 : 2); ++i)
    length |= static_cast<size_t>(static_cast<uint8_t>(bytes[8 + i])) << 8 * i;
  const size_t start = wide ? 12 : 10;
  if (length > bytes.size() - start) throw Failure("the .npy file is cut short");
  const std::string_view header = bytes.substr(start, length), data = bytes.substr(start + length);
  HostTensor tensor{"", parse_type(header), parse_shape(header), {}};
  if (data.size() != byte_size(tensor.type, tensor.dims))
    throw Failure(fmt::format("the .npy file holds {} bytes of data, but {} of shape {} has {}", data.size(),
                              type_name(tensor.type), to_text(tensor.dims), byte_size(tensor.type, tensor.dims)));
  tensor.data.resize(data.size());
  if (value_of(header, "fortran_order").starts_with("True"))
    reorder(tensor, data);
  else if (!data.empty())
    std::memcpy(tensor.data.data(), data.data(), data.size());
  return tensor;
}

std::string npy_bytes(const HostTensor& tensor) {
  std::string shape;
  for (int64_t d : tensor.dims) shape += std::to_string(d) + ", ";
  if (tensor.dims.size() > 1) shape.resize(shape.size() - 2);
  if (tensor.dims.size() == 1) shape.pop_back();
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type_info(tensor.type).numpy, shape);
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  if (type_info(tensor.type).bits >= 8)
    return out.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  for (int64_t i = 0; i < volume(tensor.dims); ++i) out += static_cast<char>(code(tensor.type, tensor.data.data(), i));
  return out;
}

}  // namespace lathe::cli
