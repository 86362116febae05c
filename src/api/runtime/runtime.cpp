// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/runtime.h"

#include "api/convert.h"
#include "api/living_products.h"
#include "api/runtime/plan_bytes.h"
#include "base/file.h"

namespace lathe::api {

Runtime::~Runtime() noexcept {
  guests_.clear();  // which hold the core as what they make does
  warn_of_living_products(*core_->reporter, "IRuntime", core_.use_count() > 1);
}

nv::ICudaEngine* Runtime::deserializeCudaEngine(const void* blob, std::size_t size) noexcept {
  return guarded(*core_->reporter, "IRuntime::deserializeCudaEngine", static_cast<nv::ICudaEngine*>(nullptr),
                 [&]() -> Result<nv::ICudaEngine*> {
                   if (!blob) return fail(ErrorCode::invalid_argument, "the plan is null");
                   const auto* begin = static_cast<const std::byte*>(blob);
                   return load({begin, size}, nullptr);
                 });
}

nv::ICudaEngine* Runtime::deserializeCudaEngineV2(nv::IStreamReaderV2& streamReader) noexcept {
  return guarded(*core_->reporter, "IRuntime::deserializeCudaEngine", static_cast<nv::ICudaEngine*>(nullptr),
                 [&]() -> Result<nv::ICudaEngine*> {
                   LATHE_ASSIGN(PlanBytes plan, read_plan(streamReader));
                   return load(plan.bytes, std::move(plan.owner));
                 });
}

nv::ICudaEngine* Runtime::load_file(const char* path) noexcept {
  return guarded(*core_->reporter, "lathe::loadEngineFile", static_cast<nv::ICudaEngine*>(nullptr),
                 [&]() -> Result<nv::ICudaEngine*> {
                   if (!path) return fail(ErrorCode::invalid_argument, "the path is null");
                   LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
                   Result<nv::ICudaEngine*> engine = load(file->bytes(), file);
                   if (!engine) return fail(with_context(std::move(engine).error(), fmt::format("'{}'", path)));
                   return engine;
                 });
}

bool Runtime::setMaxThreads(int32_t maxThreads) noexcept {
  return guarded(*core_->reporter, "IRuntime::setMaxThreads", [&]() -> Result<> {
    if (maxThreads < 1) return fail(ErrorCode::invalid_argument, "{} threads; at least 1 is needed", maxThreads);
    core_->max_threads = maxThreads;
    return {};
  });
}

void Runtime::setTemporaryDirectory(const char* path) noexcept {
  guarded(*core_->reporter, "IRuntime::setTemporaryDirectory", [&]() -> Result<> {
    std::string directory;
    if (path) {
      LATHE_ASSIGN(directory, to_string(path, "directory"));
      LATHE_TRY(guest::check_directory(directory));
    }
    const std::lock_guard lock(mutex_);
    temporary_directory_ = std::move(directory);
    return {};
  });
}

const char* Runtime::getTemporaryDirectory() const noexcept {
  const std::lock_guard lock(mutex_);
  return temporary_directory_.empty() ? nullptr : temporary_directory_.c_str();
}

void Runtime::setDLACore(int32_t dlaCore) noexcept {
  guarded(*core_->reporter, "IRuntime::setDLACore",
          [&] { return dlaCore == 0 ? Result<>() : consult(SettingId::IRuntime_setDLACore); });
}

void Runtime::setGpuAllocator(nv::IGpuAllocator* allocator) noexcept {
  guarded(*core_->reporter, "IRuntime::setGpuAllocator", [&]() -> Result<> {
    if (allocator) LATHE_TRY(consult(SettingId::IRuntime_setGpuAllocator));
    core_->allocator = allocator;
    return {};
  });
}

void Runtime::setTempfileControlFlags(nv::TempfileControlFlags flags) noexcept {
  guarded(*core_->reporter, "IRuntime::setTempfileControlFlags", [&]() -> Result<> {
    LATHE_TRY(core_->notices.consult_flags<nv::TempfileControlFlag>(flags, kTempfileFlags, core_->reporter->log()));
    tempfile_flags_ = flags;
    return {};
  });
}

void Runtime::setPluginRegistryParent(nv::IPluginRegistry* parent) noexcept {
  guarded(*core_->reporter, "IRuntime::setPluginRegistryParent",
          [&] { return core_->registry.set_parent(parent ? parent : &plugin::global_registry()); });
}

void Runtime::setEngineHostCodeAllowed(bool allowed) noexcept {
  guarded(*core_->reporter, "IRuntime::setEngineHostCodeAllowed", [&]() -> Result<> {
    if (allowed) LATHE_TRY(consult(SettingId::IRuntime_setEngineHostCodeAllowed));
    host_code_allowed_ = allowed;
    return {};
  });
}

}  // namespace lathe::api
