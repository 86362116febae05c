// SPDX-License-Identifier: Apache-2.0
#include "calibration_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "failure.h"

namespace lathe::cli {
namespace {

namespace fs = std::filesystem;

std::string as_file_name(std::string input) {
  std::replace_if(
      input.begin(), input.end(), [](char c) { return c == '/' || c == ':'; }, '_');
  return input;
}

std::string names_of(const std::vector<InputSpec>& inputs) {
  std::string names;
  for (const InputSpec& input : inputs) names += (names.empty() ? "'" : ", '") + input.name + "'";
  return names;
}

// Any number of samples, where the input has samples.
InputSpec with_open_samples(InputSpec input) {
  if (!input.dims.empty()) input.dims[0] = -1;
  return input;
}

// Samples [begin, begin + count) of the tensor.
HostTensor samples(const HostTensor& tensor, int64_t begin, int64_t count) {
  HostTensor part{tensor.name, tensor.type, tensor.dims, {}};
  part.dims[0] = 1;
  const size_t one = byte_size(part.type, part.dims);
  part.dims[0] = count;
  const auto from = tensor.data.begin() + static_cast<ptrdiff_t>(one * static_cast<size_t>(begin));
  part.data.assign(from, from + static_cast<ptrdiff_t>(one * static_cast<size_t>(count)));
  return part;
}

}  // namespace

CalibrationData::CalibrationData(const std::string& path, std::vector<InputSpec> inputs, int64_t batch)
    : inputs_(std::move(inputs)), batch_(batch) {
  std::error_code error;
  if (fs::is_directory(path, error))
    add_folder(path);
  else if (!fs::exists(path, error))
    throw UsageError(fmt::format("--data: there is no '{}'", path));
  else if (path.ends_with(".npz"))
    sets_.push_back({{"", path}});
  else if (inputs_.size() == 1)
    sets_.push_back({{inputs_[0].name, path}});
  else
    throw UsageError(fmt::format("--data: {} is one file, and the model has the inputs {}: give a .npz or a folder",
                                 path, names_of(inputs_)));
  if (sets_.empty()) throw UsageError(fmt::format("--data: the folder '{}' holds no files", path));
}

void CalibrationData::add_folder(const std::string& folder) {
  std::vector<std::string> files, folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    (entry.is_directory() ? folders : files).push_back(entry.path().string());
  std::ranges::sort(files);
  std::ranges::sort(folders);
  if (!folders.empty() && !files.empty())
    throw UsageError(fmt::format("--data: the folder '{}' holds files and folders; have either", folder));
  for (const std::string& inner : folders) add_folder(inner);
  if (!files.empty()) add_files(folder, files);
}

void CalibrationData::add_files(const std::string& folder, const std::vector<std::string>& files) {
  Set named;
  std::vector<std::string> others;
  for (const std::string& file : files) {
    if (file.ends_with(".npz")) {
      sets_.push_back({{"", file}});
    } else if (const std::string input = input_of(file); !input.empty()) {
      if (!named.emplace(input, file).second)
        throw UsageError(fmt::format("--data: {} and {} are both of input '{}'", named[input], file, input));
    } else if (!fs::path(file).filename().string().starts_with("output_")) {  // of ONNX's test data
      others.push_back(file);
    }
  }
  if (!others.empty() && (inputs_.size() > 1 || !named.empty()))
    throw UsageError(
        fmt::format("--data: {} has the name of no input; the inputs are {}", others[0], names_of(inputs_)));
  for (const std::string& file : others) sets_.push_back({{inputs_[0].name, file}});
  if (named.empty()) return;
  for (const InputSpec& input : inputs_)
    if (!named.contains(input.name))
      throw UsageError(fmt::format("--data: the folder '{}' has no file for input '{}'", folder, input.name));
  sets_.push_back(std::move(named));
}

// Whose file it is by its name; "" = nobody's.
std::string CalibrationData::input_of(const std::string& file) const {
  const std::string stem = fs::path(file).stem().string();
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (stem == as_file_name(inputs_[i].name) || stem == fmt::format("input_{}", i)) return inputs_[i].name;
  return "";
}

HostTensor CalibrationData::read_input(const Set& set, const std::map<std::string, std::string>& arrays,
                                       const InputSpec& input) const {
  const InputSpec expected = with_open_samples(input);
  if (const auto file = set.find(input.name); file != set.end()) return read_tensor_file(file->second, expected);
  const auto array = arrays.find(input.name);
  if (array == arrays.end()) throw Failure(fmt::format("it has no array '{}'", input.name));
  return as_input(parse_npy(array->second), expected);
}

std::vector<Batch> CalibrationData::read(size_t index) const {
  const Set& set = sets_[index];
  const std::string& where = set.begin()->second;
  std::map<std::string, std::string> arrays;
  Batch whole;
  try {
    if (set.contains("")) arrays = parse_npz(read_file(where));
    for (const auto& array : arrays)
      if (std::ranges::none_of(inputs_, [&](const InputSpec& input) { return input.name == array.first; }))
        throw Failure(fmt::format("the model has no input '{}'; the inputs are {}", array.first, names_of(inputs_)));
    for (const InputSpec& input : inputs_) whole.push_back(read_input(set, arrays, input));
    return cut(std::move(whole));
  } catch (const Failure& failure) {
    const std::string_view what = failure.what();
    throw Failure(what.starts_with(where) ? std::string(what) : fmt::format("{}: {}", where, what));
  }
}

std::vector<Batch> CalibrationData::cut(Batch whole) const {
  const int64_t each = samples_of_batch(whole), all = each > 0 ? whole[0].dims[0] : 0;
  if (all <= each) {
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = as_input(std::move(whole[i]), inputs_[i]);
    return {std::move(whole)};
  }
  if (all % each != 0 && inputs_[0].dims[0] >= 0)
    throw Failure(fmt::format("{} samples are no multiple of the model's {}", all, each));
  std::vector<Batch> batches;
  for (int64_t begin = 0; begin < all; begin += each) {
    Batch& batch = batches.emplace_back();
    for (const HostTensor& tensor : whole) batch.push_back(samples(tensor, begin, std::min(each, all - begin)));
  }
  return batches;
}

// 0 where first dimensions are no samples: those of several inputs differ.
int64_t CalibrationData::samples_of_batch(const Batch& whole) const {
  for (size_t i = 0; i < whole.size(); ++i)
    if (whole[i].dims.empty() || whole[i].dims[0] != whole[0].dims[0] || inputs_[i].dims[0] != inputs_[0].dims[0])
      return 0;
  if (whole.empty()) return 0;
  return inputs_[0].dims[0] < 0 ? batch_ : inputs_[0].dims[0];
}

}  // namespace lathe::cli
