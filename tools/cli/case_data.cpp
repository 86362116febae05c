// SPDX-License-Identifier: Apache-2.0
#include "case_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "failure.h"

namespace lathe::cli {
namespace {

// With the name it carries, if that is one of `names`, or the one at its place.
HostTensor parse_named(const std::string& file, size_t place, const std::vector<std::string>& names) {
  HostTensor tensor = parse_tensor_proto(file);
  if (std::find(names.begin(), names.end(), tensor.name) != names.end()) return tensor;
  if (place >= names.size()) throw Failure(fmt::format("the model has {} of what file {} is for", names.size(), place));
  tensor.name = names[place];
  return tensor;
}

Elements describe(const std::vector<HostTensor>& tensors) {
  Elements elements{static_cast<int32_t>(tensors.size()), {}, !tensors.empty()};
  for (const HostTensor& tensor : tensors) {
    const std::span<const int64_t> dims(tensor.dims.data(), tensor.dims.size() - (tensor.is_text ? 1 : 0));
    if (&tensor == &tensors[0]) elements.dims.assign(dims.begin(), dims.end());
    elements.has_dims &= dims.size() == elements.dims.size();
    for (size_t d = 0; elements.has_dims && d < elements.dims.size(); ++d)
      if (elements.dims[d] != dims[d]) elements.dims[d] = -1;
  }
  return elements;
}

// Strings as rows of `width` bytes.
HostTensor in_width(const HostTensor& text, int64_t width) {
  HostTensor wide = text;
  const auto from = static_cast<size_t>(text.dims.back()), to = static_cast<size_t>(width);
  wide.dims.back() = width;
  if (from == 0) throw Failure(fmt::format("the strings of '{}' have no bytes to be read from", text.name));
  wide.data.assign(text.data.size() / from * to, std::byte{0});
  for (size_t row = 0; row * from < text.data.size(); ++row)
    std::copy_n(text.data.begin() + static_cast<ptrdiff_t>(row * from), std::min(from, to),
                wide.data.begin() + static_cast<ptrdiff_t>(row * to));
  return wide;
}

// What stands for a sequence whose length only running tells: the elements of all tensors, of the type of `got`, and
// their dims, -1 behind those of tensors that have fewer than others.
void add_list(const std::vector<HostTensor>& tensors, const HostTensor& got, const HostTensor& got_dims,
              std::vector<HostTensor>& wanted) {
  const bool is_text = std::ranges::any_of(tensors, &HostTensor::is_text);
  HostTensor elements{got.name, got.type, got.dims, {}, is_text};
  HostTensor dims{got_dims.name, got_dims.type, got_dims.dims, {}, false};
  elements.dims.at(0) = 0;
  for (const HostTensor& tensor : tensors)
    if (is_text) elements.dims.back() = std::max(elements.dims.back(), tensor.dims.back());
  std::vector<int64_t> all;
  for (const HostTensor& tensor : tensors) {
    if (tensor.type != got.type)
      throw Failure(
          fmt::format("output '{}' is {} instead of {}", got.name, type_name(got.type), type_name(tensor.type)));
    const HostTensor part = is_text ? in_width(tensor, elements.dims.back()) : tensor;
    elements.data.insert(elements.data.end(), part.data.begin(), part.data.end());
    std::vector<int64_t> own = tensor.dims;
    if (is_text) own.pop_back();
    elements.dims[0] += volume(own);
    const auto most_dims = static_cast<size_t>(dims.dims.at(1));
    if (own.size() > most_dims)
      throw Failure(
          fmt::format("output '{}' is of tensors of {} dims at most instead of {}", got.name, most_dims, own.size()));
    own.resize(most_dims, -1);
    all.insert(all.end(), own.begin(), own.end());
  }
  dims.dims[0] = static_cast<int64_t>(tensors.size());
  dims.data.resize(all.size() * sizeof(int64_t));
  std::memcpy(dims.data.data(), all.data(), dims.data.size());
  wanted.push_back(std::move(elements));
  wanted.push_back(std::move(dims));
}

}  // namespace

std::vector<std::string> read_numbered(const std::filesystem::path& folder, const std::string& kind) {
  std::map<int, std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kind + "_") && name.ends_with(".pb"))
      paths[std::atoi(name.c_str() + kind.size() + 1)] = entry.path().string();
  }
  std::vector<std::string> files;
  for (const auto& numbered : paths) files.push_back(read_file(numbered.second));
  return files;
}

CaseInputs parse_inputs(const std::vector<std::string>& files, const ModelNames& names) {
  CaseInputs inputs;
  for (size_t i = 0; i < files.size(); ++i) {
    const InputKind kind = i < names.kinds.size() ? names.kinds[i] : InputKind::tensor;
    if (kind == InputKind::tensor) {
      inputs.tensors.push_back(parse_named(files[i], i, names.inputs));
      inputs.files[inputs.tensors.back().name] = files[i];
      continue;
    }
    std::vector<HostTensor> parts = parse_sequence_proto(files[i]);
    const std::string& name = names.inputs[i];
    Elements elements = describe(parts);
    if (kind == InputKind::optional && parts.empty()) elements.count = -1;
    inputs.elements[name] = elements;
    for (size_t k = 0; k < parts.size(); ++k) {
      parts[k].name = kind == InputKind::optional ? name : fmt::format("{}_{}", name, k);
      inputs.tensors.push_back(std::move(parts[k]));
    }
  }
  return inputs;
}

std::vector<HostTensor> parse_outputs(const std::vector<std::string>& files, const ModelNames& names,
                                      const std::vector<HostTensor>& outputs) {
  std::vector<HostTensor> wanted;
  for (size_t i = 0; i < files.size(); ++i) {
    if (i < names.outputs.size() && find(outputs, names.outputs[i] + "_is_there")) {
      const std::vector<HostTensor> parts = parse_sequence_proto(files[i]);
      const auto is_there = static_cast<std::byte>(!parts.empty());
      wanted.push_back({names.outputs[i] + "_is_there", DataType::kBOOL, {}, {is_there}, false});
      if (parts.empty()) continue;
      if (find(outputs, names.outputs[i])) {
        wanted.push_back(parts[0]);
        wanted.back().name = names.outputs[i];
        continue;
      }
    }
    const HostTensor* got = i < names.outputs.size() ? find(outputs, names.outputs[i] + "_elements") : nullptr;
    if (const HostTensor* dims = got ? find(outputs, names.outputs[i] + "_dims") : nullptr) {
      add_list(parse_sequence_proto(files[i]), *got, *dims, wanted);
      continue;
    }
    if (i >= names.outputs.size() || find(outputs, names.outputs[i]) || !find(outputs, names.outputs[i] + "_0")) {
      wanted.push_back(parse_named(files[i], i, names.outputs));
      continue;
    }
    std::vector<HostTensor> elements = parse_sequence_proto(files[i]);
    if (find(outputs, fmt::format("{}_{}", names.outputs[i], elements.size())))
      throw Failure(fmt::format("output '{}' has more than {} tensors", names.outputs[i], elements.size()));
    for (size_t k = 0; k < elements.size(); ++k) {
      elements[k].name = fmt::format("{}_{}", names.outputs[i], k);
      wanted.push_back(std::move(elements[k]));
    }
  }
  return wanted;
}

const HostTensor* find(const std::vector<HostTensor>& tensors, const std::string& name) {
  for (const HostTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

}  // namespace lathe::cli
