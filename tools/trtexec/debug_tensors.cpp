// SPDX-License-Identifier: Apache-2.0
#include "trtexec/debug_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/tensor_file.h"
#include "trtexec/build.h"
#include "trtexec/report.h"
#include "trtexec/values.h"

namespace lathe::trtexec {
namespace {

std::string safe_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\\' || c == ':'; }, '_');
  return name;
}

std::string summary(const cli::HostTensor& tensor) {
  double least = INFINITY, largest = -INFINITY, sum = 0;
  int64_t no_numbers = 0;
  const int64_t count = cli::volume(tensor.dims);
  for (int64_t i = 0; i < count; ++i) {
    const double value = cli::element(tensor, i);
    if (std::isnan(value)) {
      ++no_numbers;
      continue;
    }
    least = std::min(least, value);
    largest = std::max(largest, value);
    sum += value;
  }
  const auto numbers = static_cast<double>(std::max<int64_t>(count - no_numbers, 1));
  return fmt::format("{} {}: min = {:.6g}, max = {:.6g}, mean = {:.6g}, NaN: {} of {}", cli::type_name(tensor.type),
                     cli::to_text(tensor.dims), least, largest, sum / numbers, no_numbers, count);
}

}  // namespace

void DebugTensorFiles::attach(nvinfer1::IExecutionContext& context) {
  bool done = context.setDebugListener(this);
  if (!options_.debug_formats.empty()) {
    done = done && context.setAllTensorsDebugState(true);
    if (done) context.setUnfusedTensorsDebugState(true);
  }
  for (const auto& entry : options_.save_debug_tensors)
    done = done && context.setTensorDebugState(entry.first.c_str(), true);
  if (!done) fail_as_reported("Debug tensors were refused; mark them with --markDebug when building");
}

bool DebugTensorFiles::processDebugTensor(const void* address, nvinfer1::TensorLocation location,
                                          nvinfer1::DataType type, const nvinfer1::Dims& shape, const char* name,
                                          cudaStream_t stream) {
  try {
    cli::HostTensor tensor{name, type, cli::to_vector(shape), {}};
    tensor.data.resize(cli::byte_size(type, tensor.dims));
    if (calls_ && location == nvinfer1::TensorLocation::kDEVICE) {
      check_cuda(*calls_,
                 calls_->to_host(tensor.data.data(), reinterpret_cast<unsigned long long>(address), tensor.data.size(),
                                 stream),
                 "copying a debug tensor");
      check_cuda(*calls_, calls_->synchronize(stream), "copying a debug tensor");
    } else if (!tensor.data.empty()) {
      std::memcpy(tensor.data.data(), address, tensor.data.size());
    }
    save(tensor, seen_[name]++);
    return true;
  } catch (const std::exception& error) {
    log_.error("Debug tensor {}: {}", name, error.what());
    return false;
  }
}

void DebugTensorFiles::save(const cli::HostTensor& tensor, int inference) const {
  const std::string_view raw(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  if (const std::string* path = find_named(options_.save_debug_tensors, tensor.name)) cli::write_file(*path, raw);
  const std::string stem = fmt::format("{:04}_{}", inference, safe_name(tensor.name));
  for (const std::string& format : options_.debug_formats) {
    if (format == "summary") log_.info("Debug tensor {} (inference {}): {}", tensor.name, inference, summary(tensor));
    if (format == "numpy") cli::write_file(stem + ".npy", cli::npy_bytes(tensor));
    if (format == "raw") cli::write_file(stem + ".raw", raw);
    if (format != "string") continue;
    std::string text;
    for (int64_t i = 0; i < cli::volume(tensor.dims); ++i) text += value_text(tensor, i) + "\n";
    cli::write_file(stem + ".txt", text);
  }
}

}  // namespace lathe::trtexec
