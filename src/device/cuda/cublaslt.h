// SPDX-License-Identifier: Apache-2.0
// cuBLASLt: a table of its functions, filled when it is first asked for, and its handle on one GPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/context.h"
#include "device/cuda/cublaslt_types.h"

namespace lathe::cuda {

struct CublasLt {
#define LATHE_CUBLASLT_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#include "device/cuda/cublaslt.def"
#undef LATHE_CUBLASLT_FUNCTION
  std::string path;    // of the library
  size_t version = 0;  // 130100

  std::string version_text() const;  // "13.1.0"
};

// Opens the first of `names` that is there, and checks its version.
Result<std::unique_ptr<const CublasLt>> open_cublaslt(std::span<const std::string> names);

// The process's cuBLASLt: what the environment variable LATHE_CUBLASLT names, or version 13 or 12 of the system's.
Result<const CublasLt*> cublaslt();
std::vector<std::string> cublaslt_names();  // where cublaslt() looks, in order

// cuBLASLt on one GPU. Thread-safe.
class CublasLtHandle {
 public:
  static Result<std::shared_ptr<const CublasLtHandle>> create(std::shared_ptr<PrimaryContext> context,
                                                              const CublasLt& library);
  ~CublasLtHandle();
  CublasLtHandle(const CublasLtHandle&) = delete;
  CublasLtHandle& operator=(const CublasLtHandle&) = delete;

  const CublasLt& library() const { return library_; }
  cublasLtHandle_t get() const { return handle_; }
  PrimaryContext& context() const { return *context_; }
  Result<> check(cublasStatus_t status, const char* call) const;

 private:
  CublasLtHandle(std::shared_ptr<PrimaryContext> context, const CublasLt& library)
      : context_(std::move(context)), library_(library) {}

  std::shared_ptr<PrimaryContext> context_;
  const CublasLt& library_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace lathe::cuda
