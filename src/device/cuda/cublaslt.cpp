// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cublaslt.h"

#include "device/cuda/optional_library.h"

namespace lathe::cuda {
namespace {

constexpr LibraryInfo kInfo = {"cuBLASLt", "LATHE_CUBLASLT", "nvidia-cublas", "12 or 13"};
constexpr size_t kMinMajor = 12, kMaxMajor = 13;  // whose stored algorithms and descriptors have the size we know

size_t major_of(size_t version) { return version / 10000; }

Result<> check_version(const CublasLt& library) {
  const size_t major = major_of(library.version);
  if (major < kMinMajor || major > kMaxMajor)
    return fail(ErrorCode::library_unsuitable, "'{}' is cuBLASLt {}, and Lathe calls version {}", library.path,
                library.version_text(), kInfo.versions);
  const Result<const Driver*> running = driver();
  if (running && major > static_cast<size_t>((*running)->version) / 1000)
    return fail(ErrorCode::library_unsuitable,
                "'{}' is cuBLASLt {}, and the driver supports CUDA {}: install a newer driver, or cuBLASLt of CUDA {}",
                library.path, library.version_text(), version_text((*running)->version), (*running)->version / 1000);
  return {};
}

}  // namespace

std::string CublasLt::version_text() const {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Result<std::unique_ptr<const CublasLt>> open_cublaslt(std::span<const std::string> names) {
  LATHE_ASSIGN(const SharedLibrary library, open_library(kInfo, names));
  auto table = std::make_unique<CublasLt>();
  table->path = library.path();
#define LATHE_CUBLASLT_FUNCTION(result, name, parameters) \
  LATHE_TRY(resolve_symbol(kInfo, library, #name, reinterpret_cast<void**>(&table->name)));
#include "device/cuda/cublaslt.def"
#undef LATHE_CUBLASLT_FUNCTION
  table->version = table->cublasLtGetVersion();
  LATHE_TRY(check_version(*table));
  return table;
}

std::vector<std::string> cublaslt_names() {
  std::vector<std::string> files = {"libcublasLt.so.13", "libcublasLt.so.12"};
  const Result<const Driver*> running = driver();
  if (running && (*running)->version / 1000 == 12) std::swap(files[0], files[1]);
  return toolkit_names(kInfo.variable, files);
}

Result<const CublasLt*> cublaslt() {
  static std::mutex mutex;
  static const CublasLt* opened = nullptr;  // lives as long as the process
  return open_once(mutex, opened, [] { return open_cublaslt(cublaslt_names()); });
}

Result<std::shared_ptr<const CublasLtHandle>> CublasLtHandle::create(std::shared_ptr<PrimaryContext> context,
                                                                     const CublasLt& library) {
  std::shared_ptr<CublasLtHandle> handle(new CublasLtHandle(std::move(context), library));
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*handle->context_));
  LATHE_TRY(handle->check(library.cublasLtCreate(&handle->handle_), "cublasLtCreate"));
  return handle;
}

CublasLtHandle::~CublasLtHandle() {
  if (!handle_) return;
  const ContextScope scope(*context_);
  library_.cublasLtDestroy(handle_);
}

Result<> CublasLtHandle::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  LATHE_TRY(context_->usable());
  const char* name = library_.cublasLtGetStatusName(status);
  return fail(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::library_call_failed,
              "{} of cuBLASLt {} reports {} ({})", call, library_.version_text(), name ? name : "an unknown status",
              int{status});
}

}  // namespace lathe::cuda
