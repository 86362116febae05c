// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cudnn.h"

#include "device/cuda/optional_library.h"

namespace lathe::cuda {
namespace {

constexpr LibraryInfo kInfo = {"cuDNN", "LATHE_CUDNN", "nvidia-cudnn-cu13", "9"};
constexpr size_t kMajor = 9;

// Version 8 counted in thousands.
size_t major_of(size_t version) { return version < 10000 ? version / 1000 : version / 10000; }

bool is_declined(cudnnStatus_t status) {
  const int kind = status / 1000 * 1000;
  return kind == CUDNN_STATUS_NOT_SUPPORTED || kind == CUDNN_STATUS_BAD_PARAM;
}

}  // namespace

std::string Cudnn::version_text() const {
  const size_t unit = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / unit, version / 100 % (unit / 100), version % 100);
}

Result<std::unique_ptr<const Cudnn>> open_cudnn(std::span<const std::string> names) {
  LATHE_ASSIGN(const SharedLibrary library, open_library(kInfo, names));
  auto table = std::make_unique<Cudnn>();
  table->path = library.path();
#define LATHE_CUDNN_FUNCTION(result, name, parameters) \
  LATHE_TRY(resolve_symbol(kInfo, library, #name, reinterpret_cast<void**>(&table->name)));
#include "device/cuda/cudnn.def"
#undef LATHE_CUDNN_FUNCTION
  table->version = table->cudnnGetVersion();
  if (major_of(table->version) != kMajor)
    return fail(ErrorCode::library_unsuitable, "'{}' is cuDNN {}, and Lathe calls version {}", table->path,
                table->version_text(), kInfo.versions);
  return table;
}

std::vector<std::string> cudnn_names() { return toolkit_names(kInfo.variable, {"libcudnn.so.9"}); }

Result<const Cudnn*> cudnn() {
  static std::mutex mutex;
  static const Cudnn* opened = nullptr;  // lives as long as the process
  return open_once(mutex, opened, [] { return open_cudnn(cudnn_names()); });
}

Result<std::shared_ptr<const CudnnHandle>> CudnnHandle::create(std::shared_ptr<PrimaryContext> context,
                                                               const Cudnn& library) {
  std::shared_ptr<CudnnHandle> handle(new CudnnHandle(std::move(context), library));
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*handle->context_));
  LATHE_TRY(handle->check(library.cudnnCreate(&handle->handle_), "cudnnCreate"));
  return handle;
}

CudnnHandle::~CudnnHandle() {
  if (!handle_) return;
  const ContextScope scope(*context_);
  library_.cudnnDestroy(handle_);
}

Result<> CudnnHandle::check(cudnnStatus_t status, std::string_view call) const {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  LATHE_TRY(context_->usable());
  const bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  const char* name = library_.cudnnGetErrorString(status);
  return fail(memory ? ErrorCode::out_of_memory : ErrorCode::library_call_failed, "{} of cuDNN {} reports {} ({})",
              call, library_.version_text(), name ? name : "an unknown status", int{status});
}

Result<CudnnDescriptor> CudnnDescriptor::create(const CudnnHandle& handle, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  LATHE_TRY(
      handle.check(handle.library().cudnnBackendCreateDescriptor(type, &descriptor), "cudnnBackendCreateDescriptor"));
  return CudnnDescriptor(handle, descriptor);
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_) handle_->library().cudnnBackendDestroyDescriptor(descriptor_);
}

Result<> CudnnDescriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                                  const void* values) {
  const cudnnStatus_t status = handle_->library().cudnnBackendSetAttribute(descriptor_, name, type, count, values);
  if (status == CUDNN_STATUS_SUCCESS) return {};
  return handle_->check(status, fmt::format("cudnnBackendSetAttribute {}", int{name}));
}

Result<int64_t> CudnnDescriptor::get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                         int64_t count, void* values) const {
  int64_t found = 0;
  const cudnnStatus_t status =
      handle_->library().cudnnBackendGetAttribute(descriptor_, name, type, count, &found, values);
  if (status == CUDNN_STATUS_SUCCESS) return found;
  LATHE_TRY(handle_->check(status, fmt::format("cudnnBackendGetAttribute {}", int{name})));
  return found;
}

Result<std::vector<CudnnDescriptor>> CudnnDescriptor::read(cudnnBackendAttributeName_t name,
                                                           cudnnBackendDescriptorType_t type, size_t count) const {
  std::vector<CudnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (size_t i = 0; i < count; ++i) {
    LATHE_ASSIGN(CudnnDescriptor each, create(*handle_, type));
    raw.push_back(each.get());
    found.push_back(std::move(each));
  }
  LATHE_ASSIGN(const int64_t there, read(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::span(raw)));
  if (there < static_cast<int64_t>(count)) found.erase(found.begin() + std::max<int64_t>(there, 0), found.end());
  return found;
}

Result<bool> CudnnDescriptor::try_finalize() {
  const cudnnStatus_t status = handle_->library().cudnnBackendFinalize(descriptor_);
  if (is_declined(status)) return false;
  LATHE_TRY(handle_->check(status, "cudnnBackendFinalize"));
  return true;
}

}  // namespace lathe::cuda
