// SPDX-License-Identifier: Apache-2.0
#include "case_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

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
    if (&tensor == &tensors[0]) elements.dims.assign(tensor.dims.begin(), tensor.dims.end());
    elements.has_dims &= tensor.dims.size() == elements.dims.size();
    for (size_t d = 0; elements.has_dims && d < elements.dims.size(); ++d)
      if (elements.dims[d] != tensor.dims[d]) elements.dims[d] = -1;
  }
  return elements;
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
