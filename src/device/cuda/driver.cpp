// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <link.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "device/cuda/shared_library.h"

namespace lathe::cuda {
namespace {

enum class Need { required, optional };
enum class Fate { kept, lost };

struct ResultRow {
  CUresult result;
  std::string_view name;
  ErrorCode code;
  Fate fate;
  std::string_view remedy;
};

constexpr ResultRow kResults[] = {
#define LATHE_DRIVER_RESULT(name, number, code, fate, remedy) {name, #name, ErrorCode::code, Fate::fate, remedy},
#include "device/cuda/driver_results.def"
#undef LATHE_DRIVER_RESULT
};

const ResultRow* row_of(CUresult result) {
  for (const ResultRow& row : kResults)
    if (row.result == result) return &row;
  return nullptr;
}

template <class F>
Result<> resolve(const SharedLibrary& library, const char* symbol, Need need, F& function) {
  function = reinterpret_cast<F>(library.symbol(symbol));
  if (function || need == Need::optional) return {};
  return fail(ErrorCode::cuda_symbol_missing,
              "'{}' lacks the function {}, which Lathe needs: install an NVIDIA driver for CUDA {} or newer",
              library.path(), symbol, version_text(kMinDriverVersion));
}

Result<> resolve_all(const SharedLibrary& library, Driver& driver) {
#define LATHE_DRIVER_FUNCTION(name, symbol, need, parameters) \
  LATHE_TRY(resolve(library, #symbol, Need::need, driver.name));
#include "device/cuda/driver.def"
#undef LATHE_DRIVER_FUNCTION
  return {};
}

Result<> check_version(const SharedLibrary& library, Driver& driver) {
  LATHE_TRY(resolve(library, "cuDriverGetVersion", Need::required, driver.cuDriverGetVersion));
  const CUresult result = driver.cuDriverGetVersion(&driver.version);
  if (result != CUDA_SUCCESS)
    return fail(driver_error(result, fmt::format("asking '{}' for its version", library.path())));
  if (driver.version >= kMinDriverVersion) return {};
  return fail(ErrorCode::cuda_driver_too_old,
              "the driver '{}' supports CUDA {}, and Lathe needs {} or newer: install a newer NVIDIA driver",
              library.path(), version_text(driver.version), version_text(kMinDriverVersion));
}

std::atomic<const Driver*> opened_driver = nullptr;  // the process's; lives as long as it

std::string driver_path() {
  const char* path = std::getenv("LATHE_CUDA_DRIVER");
  return path && *path ? path : "libcuda.so.1";
}

// How often this process has loaded a library. Looking one up by name searches folders, and is for when this has
// changed.
unsigned long long library_loads() {
  unsigned long long loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;
      },
      &loads);
  return loads;
}

}  // namespace

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Error driver_error(CUresult result, std::string_view doing) {
  const ResultRow* row = row_of(result);
  if (!row)
    return {ErrorCode::device_call_failed, fmt::format("{}: the CUDA driver reports error {}", doing, int{result}), {}};
  return {row->code,
          fmt::format("{}: the CUDA driver reports {} ({}): {}", doing, row->name, int{result}, row->remedy),
          {}};
}

bool is_lost(CUresult result) {
  const ResultRow* row = row_of(result);
  return row && row->fate == Fate::lost;
}

Result<std::unique_ptr<const Driver>> open_driver(const std::string& path) {
  Result<SharedLibrary> library = SharedLibrary::open(std::array{path}, ErrorCode::cuda_driver_missing);
  if (!library)
    return fail(ErrorCode::cuda_driver_missing,
                "the CUDA driver cannot be loaded ({}): install the NVIDIA driver, or give the container access to the "
                "GPU; the CPU needs neither",
                library.error().message);
  auto driver = std::make_unique<Driver>();
  driver->path = library->path();
  LATHE_TRY(check_version(*library, *driver));
  LATHE_TRY(resolve_all(*library, *driver));
  const CUresult result = driver->cuInit(0);
  if (result == CUDA_SUCCESS) return driver;
  Error error = driver_error(result, fmt::format("starting CUDA ('{}')", driver->path));
  if (error.code == ErrorCode::device_call_failed || error.code == ErrorCode::device_fault)
    error.code = ErrorCode::cuda_unavailable;
  return fail(std::move(error));
}

Result<const Driver*> driver() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (const Driver* driver = opened_driver) return driver;
  LATHE_ASSIGN(std::unique_ptr<const Driver> driver, open_driver(driver_path()));
  return opened_driver = driver.release();
}

const Driver* driver_in_use() {
  static std::atomic<bool> fails = false;
  static std::atomic<unsigned long long> loads_without = 0;  // the driver's library was not there after so many
  if (const Driver* driver = opened_driver) return driver;
  const unsigned long long loads = library_loads();
  if (fails || loads == loads_without) return nullptr;
  if (!SharedLibrary::find_loaded(std::array{driver_path()})) {
    loads_without = loads;
    return nullptr;
  }
  const Result<const Driver*> opened = driver();
  fails = !opened;
  return opened ? *opened : nullptr;
}

}  // namespace lathe::cuda
