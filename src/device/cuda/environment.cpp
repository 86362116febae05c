// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/environment.h"

#include <link.h>

#include <set>

#include "device/cuda/architecture.h"
#include "device/cuda/cublaslt.h"
#include "device/cuda/cudnn.h"
#include "device/cuda/device_properties.h"
#include "device/cuda/toolchain.h"

namespace lathe::cuda {
namespace {

Survey::Check problem(std::string name, const Error& error) {
  return {std::move(name), false, std::string(title_of(error.code)), error.message};
}

// Paths of the loaded libraries whose file name begins so.
std::set<std::string> loaded(std::string_view prefix) {
  struct Search {
    std::string_view prefix;
    std::set<std::string> paths;
  } search{prefix, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        auto& wanted = *static_cast<Search*>(context);
        const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
        if (path.substr(path.rfind('/') + 1).starts_with(wanted.prefix)) wanted.paths.emplace(path);
        return 0;
      },
      &search);
  return search.paths;
}

void check_copies(std::string_view prefix, Survey& found) {
  const std::set<std::string> paths = loaded(prefix);
  if (paths.size() < 2) return;
  std::string list;
  for (const std::string& path : paths) list += (list.empty() ? "" : ", ") + path;
  found.checks.push_back({fmt::format("copies of {}", prefix), false, list,
                          "several versions in one process can break each other: remove all but one from "
                          "LD_LIBRARY_PATH"});
}

void survey_device(const Driver& driver, int ordinal, Survey& found) {
  const std::string name = fmt::format("cuda:{}", ordinal);
  Result<DeviceProperties> properties = read_properties(driver, ordinal);
  if (!properties) return found.checks.push_back(problem(name, properties.error()));
  const Result<const Architecture*> architecture = find_architecture(properties->architecture());
  const std::string target = architecture ? target_name(**architecture) : "";
  found.checks.push_back(architecture ? Survey::Check{name, true, fmt::format("{}, {}", properties->name, target), ""}
                                      : problem(name, architecture.error()));
  found.devices.push_back({name,
                           properties->name,
                           target,
                           {{"compute_capability", fmt::format("{}.{}", properties->major, properties->minor)},
                            {"multiprocessors", properties->multiprocessors},
                            {"memory_bytes", static_cast<int64_t>(properties->memory_bytes)}}});
}

void survey_driver(Survey& found) {
  const Result<const Driver*> opened = driver();
  if (!opened) return found.checks.push_back(problem("CUDA driver", opened.error()));
  const Driver& driver = **opened;
  found.checks.push_back(
      {"CUDA driver", true, fmt::format("supports CUDA {}, {}", version_text(driver.version), driver.path), ""});
  const Result<int> count = count_devices(driver);
  if (!count) return found.checks.push_back(problem("CUDA devices", count.error()));
  if (*count == 0)
    found.checks.push_back(problem("CUDA devices", driver_error(CUDA_ERROR_NO_DEVICE, "counting the devices")));
  for (int ordinal = 0; ordinal < *count; ++ordinal) survey_device(driver, ordinal, found);
}

void check_compiler(const NvrtcInfo& nvrtc, Survey& found) {
  Survey::Check check{"NVRTC", true, fmt::format("{}.{}, {}", nvrtc.major, nvrtc.minor, nvrtc.path), ""};
  const Result<const Driver*> opened = driver();
  if (opened && nvrtc.major > (*opened)->version / 1000) {
    check.good = false;
    check.remedy = fmt::format("its code needs a driver for CUDA {}: install a newer driver, or NVRTC of CUDA {}",
                               nvrtc.major, (*opened)->version / 1000);
  }
  found.checks.push_back(std::move(check));
}

struct LastWarning final : Log {
  void write(Severity severity, std::string_view line) override {
    if (severity == Severity::warning) text = line;
  }
  std::string text;
};

// As a build would find them.
void survey_compiler(Survey& found) {
  LastWarning warning;
  CompilerOptions options;
  options.log = &warning;
  const Result<std::unique_ptr<Toolchain>> opened = open_toolchain(options);
  if (opened) {
    check_compiler((*opened)->nvrtc(), found);
  } else {
    found.checks.push_back(problem("NVRTC", opened.error()));
  }
  const Result<std::string> program = compiler_program(std::nullopt);
  Survey::Check check{"lathe-compiler", warning.text.empty(), "not used: LATHE_COMPILER is empty", ""};
  if (program && !program->empty()) check.detail = *program;
  if (!check.good) {
    check.detail = warning.text;
    check.remedy = "install lathe-compiler of the same version beside the library, or set LATHE_COMPILER to its path";
  }
  found.checks.push_back(std::move(check));
}

// Only engines that were built with a library need it.
template <class Library>
void survey_library(const char* name, const Result<const Library*>& opened, Survey& found) {
  if (!opened) return found.checks.push_back(problem(name, opened.error()));
  found.checks.push_back({name, true, fmt::format("{}, {}", (*opened)->version_text(), (*opened)->path), ""});
}

}  // namespace

Survey survey() {
  Survey found;
  survey_driver(found);
  survey_compiler(found);
  survey_library("cuBLASLt", cublaslt(), found);
  survey_library("cuDNN", cudnn(), found);
  for (const char* prefix : {"libcuda.so", "libnvrtc.so", "libcublasLt.so", "libcudnn.so"}) check_copies(prefix, found);
  return found;
}

}  // namespace lathe::cuda
