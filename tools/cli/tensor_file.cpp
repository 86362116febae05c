// SPDX-License-Identifier: Apache-2.0
#include "tensor_file.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "failure.h"
#include "lathe.h"

namespace lathe::cli {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

std::string lower_ending(const std::string& path) {
  const size_t dot = path.rfind('.');
  std::string ending = dot == std::string::npos ? "" : path.substr(dot);
  for (char& c : ending) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return ending;
}

// Bare bytes have the input's shape; one open size is found from the length of the file.
HostTensor parse_raw(std::string_view bytes, const InputSpec& expected) {
  HostTensor tensor{expected.name, expected.type, expected.dims, {}};
  int64_t known = type_info(expected.type).bits, open = -1;  // bits
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] >= 0) {
      known *= tensor.dims[i];
    } else if (open >= 0) {
      throw Failure(fmt::format("a file of bare bytes does not tell the sizes of {}; use .npy", to_text(tensor.dims)));
    } else {
      open = static_cast<int64_t>(i);
    }
  }
  const auto size = static_cast<int64_t>(bytes.size()) * 8;
  if (open >= 0 && known > 0) tensor.dims[static_cast<size_t>(open)] = size / known;
  if (open >= 0 ? known == 0 || size % known != 0 : bytes.size() != byte_size(expected.type, expected.dims))
    throw Failure(fmt::format("{} bytes do not make a {} tensor of shape {}", bytes.size(), type_name(expected.type),
                              to_text(expected.dims)));
  tensor.data.resize(bytes.size());
  if (!bytes.empty()) std::memcpy(tensor.data.data(), bytes.data(), bytes.size());
  return tensor;
}

HostTensor parse(const std::string& path, const InputSpec& expected) {
  const std::string bytes = read_file(path), ending = lower_ending(path);
  if (ending == ".npy") return parse_npy(bytes);
  if (ending == ".pb") return parse_tensor_proto(bytes);
  if (ending == ".png" || ending == ".jpg" || ending == ".jpeg") return parse_image(bytes, expected);
  return parse_raw(bytes, expected);
}

}  // namespace

HostTensor as_input(HostTensor tensor, const InputSpec& expected) {
  // numpy has no bfloat16: two bytes are taken as such.
  const bool same_type = tensor.type == expected.type ||
                         (expected.type == DataType::kBF16 && (tensor.type == kUINT16 || tensor.type == kINT16));
  if (!same_type)
    throw Failure(fmt::format("it holds {}, but input '{}' is {}; convert it (numpy: a.astype('{}'))",
                              type_name(tensor.type), expected.name, type_name(expected.type),
                              type_name(expected.type)));
  bool fits = tensor.dims.size() == expected.dims.size();
  for (size_t i = 0; fits && i < expected.dims.size(); ++i)
    fits = expected.dims[i] < 0 || expected.dims[i] == tensor.dims[i];
  if (!fits)
    throw Failure(fmt::format("its shape is {}, but input '{}' has shape {}", to_text(tensor.dims), expected.name,
                              to_text(expected.dims)));
  tensor.name = expected.name;
  tensor.type = expected.type;
  return tensor;
}

std::string read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw Failure(fmt::format("{}: {}", path, std::strerror(errno)));
  std::string bytes;
  char buffer[1 << 16];
  while (const size_t count = std::fread(buffer, 1, sizeof(buffer), file.get())) bytes.append(buffer, count);
  if (std::ferror(file.get())) throw Failure(fmt::format("{}: reading failed: {}", path, std::strerror(errno)));
  return bytes;
}

void check_writable(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Failure(fmt::format("{}: its folder cannot be written to: {}", path, std::strerror(errno)));
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw Failure(path + " is a folder; name a file");
}

void write_file(const std::string& path, std::string_view bytes) {
  if (!lathe::saveFile(bytes.data(), bytes.size(), path.c_str())) throw Failure(lathe::lastError());
}

HostTensor read_tensor_file(const std::string& path, const InputSpec& expected) {
  try {
    return as_input(parse(path, expected), expected);
  } catch (const Failure& failure) {
    const std::string_view what = failure.what();
    throw Failure(what.starts_with(path) ? std::string(what) : fmt::format("{}: {}", path, what));
  }
}

}  // namespace lathe::cli
