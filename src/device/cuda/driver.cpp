// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <link.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/text_table.h"
#include "device/cuda/shared_library.h"

namespace lathe::cuda {
namespace {

enum class Need { required, optional };
enum class Fate { kept, lost };

struct ResultRow {
  CUresult result;
  ErrorCode code;
  Fate fate;
};

constexpr ResultRow kResults[] = {
#define LATHE_DRIVER_RESULT(name, number, code, fate, remedy) {name, ErrorCode::code, Fate::fate},
#include "device/cuda/driver_results.def"
#undef LATHE_DRIVER_RESULT
};

using Texts = TextTable<[] {  // name and remedy of each row
  return std::to_array<std::string_view>({
#define LATHE_DRIVER_RESULT(name, number, code, fate, remedy) #name, remedy,
#include "device/cuda/driver_results.def"
#undef LATHE_DRIVER_RESULT
  });
}>;
static_assert(Texts::kCount == 2 * std::size(kResults));

const ResultRow* row_of(CUresult result) {
  for (const ResultRow& row : kResults)
    if (row.result == result) return &row;
  return nullptr;
}

struct Function {
  size_t place;  // in Driver
  Need need;
};

constexpr Function kFunctions[] = {
#define LATHE_DRIVER_FUNCTION(name, symbol, need, parameters) {offsetof(Driver, name), Need::need},
#include "device/cuda/driver.def"
#undef LATHE_DRIVER_FUNCTION
};

using Symbols = TextTable<[] {
  return std::to_array<std::string_view>({
#define LATHE_DRIVER_FUNCTION(name, symbol, need, parameters) #symbol,
#include "device/cuda/driver.def"
#undef LATHE_DRIVER_FUNCTION
  });
}>;
static_assert(Symbols::kCount == std::size(kFunctions));

Result<void*> resolve(const SharedLibrary& library, const char* symbol, Need need) {
  void* const function = library.symbol(symbol);
  if (function || need == Need::optional) return function;
  return fail(ErrorCode::cuda_symbol_missing,
              "'{}' lacks the function {}, which Lathe needs: install an NVIDIA driver for CUDA {} or newer",
              library.path(), symbol, version_text(kMinDriverVersion));
}

Result<> resolve_all(const SharedLibrary& library, Driver& driver) {
  for (size_t i = 0; i < Symbols::kCount; ++i) {
    LATHE_ASSIGN(void* const function, resolve(library, Symbols::at(i), kFunctions[i].need));
    std::memcpy(reinterpret_cast<std::byte*>(&driver) + kFunctions[i].place, &function, sizeof function);
  }
  return {};
}

Result<> check_version(const SharedLibrary& library, Driver& driver) {
  LATHE_ASSIGN(void* const asks, resolve(library, "cuDriverGetVersion", Need::required));
  driver.cuDriverGetVersion = reinterpret_cast<decltype(driver.cuDriverGetVersion)>(asks);
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
          fmt::format("{}: the CUDA driver reports {} ({}): {}", doing, Texts::at(2 * (row - kResults)), int{result},
                      Texts::at(2 * (row - kResults) + 1)),
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
