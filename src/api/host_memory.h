// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "NvInferRuntime.h"

namespace lathe::api {

// Bytes that the application owns.
class HostMemory final : public nvinfer1::IHostMemory, public nvinfer1::apiv::VHostMemory {
 public:
  explicit HostMemory(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) { mImpl = this; }
  explicit HostMemory(std::span<const std::byte> bytes) : HostMemory(std::vector(bytes.begin(), bytes.end())) {}
  // NUL-terminated; size() leaves the NUL out.
  static HostMemory* of_text(const std::string& text);

  void* data() const noexcept override { return const_cast<std::byte*>(bytes_.data()); }
  std::size_t size() const noexcept override { return bytes_.size() - terminator_; }
  nvinfer1::DataType type() const noexcept override { return nvinfer1::DataType::kINT8; }

 private:
  std::vector<std::byte> bytes_;
  size_t terminator_ = 0;
};

}  // namespace lathe::api
