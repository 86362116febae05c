// SPDX-License-Identifier: Apache-2.0
// Engines are made here, in this library; with the plugins that their plans hold.
#include "api/runtime/cuda_engine.h"
#include "api/runtime/devices.h"
#include "api/runtime/plan_bytes.h"
#include "api/runtime/runtime.h"
#include "base/processors.h"
#include "plan/compatibility.h"
#include "plan/plugin_libraries.h"
#include "plan/reader.h"
#include "plan/variants.h"

namespace lathe::api {
namespace {

// Where its weights can be used in place.
Result<PlanBytes> take_variant(std::span<const std::byte> plan, size_t index, int threads) {
  PlanBytes variant;
  LATHE_TRY(plan::take_variant(plan, index, threads, [&](size_t size) -> Result<std::span<std::byte>> {
    LATHE_ASSIGN(std::shared_ptr<std::byte> pages, reserve_plan(size));
    const std::span<std::byte> bytes(pages.get(), size);
    variant = {bytes, std::move(pages)};
    return bytes;
  }));
  return variant;
}

}  // namespace

Result<bool> Runtime::load_plugins(std::span<const std::byte> bytes) {
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(bytes));
  LATHE_TRY(plan::check_usable(header, {}));
  const plan::Section* const section = header.find(plan::kPluginLibraries);
  if (!section) return true;
  const std::lock_guard lock(core_->plugins_mutex);
  if (core_->plugins.contains(section->digest)) return true;
  LATHE_ASSIGN(const auto content, plan::host_code(bytes, header, *section));
  LATHE_ASSIGN(const std::vector<plan::PluginLibrary> libraries, plan::unpack_plugin_libraries(content));
  const guest::ImagePolicy policy = image_policy();
  std::vector<std::unique_ptr<guest::PrivateFile>> files;
  for (const plan::PluginLibrary& library : libraries) {
    LATHE_ASSIGN(std::unique_ptr<guest::PrivateFile> file,
                 guest::PrivateFile::make(policy, fmt::format("plugin library '{}' of the plan", library.name)));
    LATHE_TRY(file->add(library.content));
    core_->reporter->log().print(Severity::info, "the plan brings plugin library '{}'", library.name);
    if (!core_->registry.loadLibrary(file->path().c_str())) return false;
    file->hide();
    files.push_back(std::move(file));
  }
  core_->plugins[section->digest] = std::move(files);
  return true;
}

Result<nv::ICudaEngine*> load_engine(Runtime& runtime, std::span<const std::byte> bytes,
                                     std::shared_ptr<const void> owner) {
  if (!runtime.core().inspection_only) {
    LATHE_ASSIGN(const bool loaded, runtime.load_plugins(bytes));
    if (!loaded) return nullptr;
  }
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(bytes));
  if (!header.find(plan::kVariants)) return CudaEngine::load(runtime.shared_core(), bytes, std::move(owner));
  LATHE_TRY(plan::check_usable(header, {}));
  size_t index = 0;  // to be looked at, the first
  if (!runtime.core().inspection_only) {
    LATHE_ASSIGN(index, choose_variant(header, runtime.core().cpu_threads));
  }
  const int threads = runtime.core().loading_threads();
  LATHE_ASSIGN(PlanBytes variant, take_variant(bytes, index, threads > 0 ? threads : allowed_cpus()));
  runtime.core().reporter->log().print(Severity::info, "of the plan's variants, that for '{}' is loaded",
                                       plan::targets_of(header)[index]);
  return CudaEngine::load(runtime.shared_core(), variant.bytes, std::move(variant.owner));
}

}  // namespace lathe::api
