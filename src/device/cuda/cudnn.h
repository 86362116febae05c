// SPDX-License-Identifier: Apache-2.0
// cuDNN: a table of its functions, filled when it is first asked for, its handle on one GPU, and its descriptors.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/context.h"
#include "device/cuda/cudnn_types.h"

namespace lathe::cuda {

struct Cudnn {
#define LATHE_CUDNN_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#include "device/cuda/cudnn.def"
#undef LATHE_CUDNN_FUNCTION
  std::string path;    // of the library
  size_t version = 0;  // 91900

  std::string version_text() const;  // "9.19.0"
};

// Opens the first of `names` that is there, and checks its version.
Result<std::unique_ptr<const Cudnn>> open_cudnn(std::span<const std::string> names);

// The process's cuDNN: what the environment variable LATHE_CUDNN names, or version 9 of the system's.
Result<const Cudnn*> cudnn();
std::vector<std::string> cudnn_names();  // where cudnn() looks, in order

// cuDNN on one GPU.
class CudnnHandle {
 public:
  static Result<std::shared_ptr<const CudnnHandle>> create(std::shared_ptr<PrimaryContext> context,
                                                           const Cudnn& library);
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  const Cudnn& library() const { return library_; }
  cudnnHandle_t get() const { return handle_; }
  PrimaryContext& context() const { return *context_; }
  // The library lets one thread use a handle at a time; hold this around calls that take it.
  std::mutex& mutex() const { return mutex_; }
  Result<> check(cudnnStatus_t status, std::string_view call) const;

 private:
  CudnnHandle(std::shared_ptr<PrimaryContext> context, const Cudnn& library)
      : context_(std::move(context)), library_(library) {}

  std::shared_ptr<PrimaryContext> context_;
  const Cudnn& library_;
  cudnnHandle_t handle_ = nullptr;
  mutable std::mutex mutex_;
};

// A descriptor: attributes by name, fixed by finalize(). The handle must outlive it.
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;  // none
  static Result<CudnnDescriptor> create(const CudnnHandle& handle, cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : handle_(other.handle_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~CudnnDescriptor();

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  template <class T>
  Result<> set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<const T> values) {
    return set_raw(name, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  Result<> set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set_raw(name, type, 1, &value);
  }
  Result<> set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
  }
  // Fills `values`, and gives how many there are: maybe more.
  template <class T>
  Result<int64_t> read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<T> values) const {
    return get_raw(name, type, static_cast<int64_t>(values.size()), values.data());
  }
  // What lies in the attribute, `count` of them at most, as descriptors of that type.
  Result<std::vector<CudnnDescriptor>> read(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                            size_t count) const;
  Result<> finalize() {
    return handle_->check(handle_->library().cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize");
  }
  // The same for what the library may decline: false where it does.
  Result<bool> try_finalize();

 private:
  CudnnDescriptor(const CudnnHandle& handle, cudnnBackendDescriptor_t descriptor)
      : handle_(&handle), descriptor_(descriptor) {}
  Result<> set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                   const void* values);
  Result<int64_t> get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                          void* values) const;

  const CudnnHandle* handle_ = nullptr;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace lathe::cuda
