// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "api/guest/library.h"
#include "api/registry_report.h"
#include "api/report.h"
#include "api/runtime/trust_policy.h"
#include "api/settings.h"
#include "plan/header.h"
#include "plugin/registry.h"

namespace lathe::api {

// What a runtime shares with its engines, and what therefore outlives it.
struct RuntimeCore {
  explicit RuntimeCore(std::shared_ptr<Reporter> reporter) : reporter(std::move(reporter)) {}
  // That check a plan and make its weights: as many as are to run the engine, unless setMaxThreads() says. 0 = as many
  // as this process may use.
  int loading_threads() const { return max_threads > 0 ? max_threads : cpu_threads; }

  std::shared_ptr<Reporter> reporter;
  SettingNotices notices;  // of the runtime
  TrustPolicy trust;
  // Plugin libraries of plans that were loaded, by the digests of their sections: as long as the registry knows them.
  std::mutex plugins_mutex;
  std::map<Digest, std::vector<std::unique_ptr<guest::PrivateFile>>> plugins;
  plugin::Registry registry{&plugin::global_registry(), registry_report(reporter), logger_finder()};
  struct CachePlace {
    std::string path;  // "": none
    size_t most_bytes = 0;
  };
  std::mutex cache_mutex;
  CachePlace cache_place;  // lathe::setRuntimeCacheFile
  // Threads may load engines while another changes these.
  std::atomic<nv::IGpuAllocator*> allocator{nullptr};
  std::atomic<int32_t> cpu_threads{0};       // lathe::setCpuThreads
  std::atomic<int32_t> max_threads{0};       // IRuntime::setMaxThreads; 0 = not set
  std::atomic<bool> inspection_only{false};  // lathe::setInspectionOnly
};

// An engine of this library for a plan that it reads; the dispatching library has another one make it. `owner` may be
// null: CudaEngine::load(). Null without an error where the other one has reported.
class Runtime;
Result<nv::ICudaEngine*> load_engine(Runtime& runtime, std::span<const std::byte> bytes,
                                     std::shared_ptr<const void> owner);

class Runtime final : public nv::IRuntime, public nv::apiv::VRuntime {
 public:
  explicit Runtime(nv::ILogger* logger) : core_(std::make_shared<RuntimeCore>(std::make_shared<Reporter>(logger))) {
    mImpl = this;
  }
  ~Runtime() noexcept override;

  RuntimeCore& core() { return *core_; }
  const std::shared_ptr<RuntimeCore>& shared_core() const { return core_; }
  // An engine that a runtime of the library makes, with the settings of this one. One runtime is made of each library.
  Result<nv::ICudaEngine*> load_by(std::shared_ptr<const guest::Library> library, std::span<const std::byte> bytes);

  // Those that a plan which this library reads holds, into the registry. False where that has reported a failure.
  Result<bool> load_plugins(std::span<const std::byte> bytes);

  nv::IRuntime* getPImpl() noexcept override { return this; }
  nv::ICudaEngine* deserializeCudaEngine(const void* blob, std::size_t size) noexcept override;
  void setDLACore(int32_t dlaCore) noexcept override;
  int32_t getDLACore() const noexcept override { return 0; }
  int32_t getNbDLACores() const noexcept override { return 0; }
  void setGpuAllocator(nv::IGpuAllocator* allocator) noexcept override;
  void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override;
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return core_->reporter->recorder(); }
  nv::ILogger* getLogger() const noexcept override { return core_->reporter->logger(); }
  bool setMaxThreads(int32_t maxThreads) noexcept override;
  int32_t getMaxThreads() const noexcept override { return std::max(core_->max_threads.load(), 1); }
  void setTemporaryDirectory(const char* path) noexcept override;
  // Null where none has been set.
  const char* getTemporaryDirectory() const noexcept override;
  void setTempfileControlFlags(nv::TempfileControlFlags flags) noexcept override;
  nv::TempfileControlFlags getTempfileControlFlags() const noexcept override { return tempfile_flags_; }
  nv::IPluginRegistry& getPluginRegistry() noexcept override { return core_->registry; }
  void setPluginRegistryParent(nv::IPluginRegistry* parent) noexcept override;
  nv::IRuntime* loadRuntime(const char* path) noexcept override;
  void setEngineHostCodeAllowed(bool allowed) noexcept override;
  bool getEngineHostCodeAllowed() const noexcept override { return host_code_allowed_; }
#if NV_TENSORRT_MAJOR < 11
  nv::ICudaEngine* deserializeCudaEngine(nv::IStreamReader& streamReader) noexcept override;
#endif
  nv::ICudaEngine* deserializeCudaEngineV2(nv::IStreamReaderV2& streamReader) noexcept override;
  nv::ICudaEngine* load_file(const char* path) noexcept;

 private:
  static constexpr nv::TempfileControlFlags kTempfileFlags = 3;  // both
  // What settings.def says of a setting that gets another value than its default.
  Result<> consult(SettingId id) { return core_->notices.consult(id, core_->reporter->log()); }
  Result<nv::ICudaEngine*> load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  Result<nv::ICudaEngine*> load_by_own_runtime(std::span<const std::byte> bytes, const plan::PlanHeader& header);
  Result<nv::IRuntime*> guest_of(const std::shared_ptr<const guest::Library>& library);
  Result<nv::IRuntime*> start(std::shared_ptr<const guest::Library> library) const;
  void pass_settings(nv::IRuntime& runtime, const guest::Library& library) const;
  guest::ImagePolicy image_policy() const;

  std::shared_ptr<RuntimeCore> core_;
  mutable std::mutex mutex_;  // of what follows
  std::string temporary_directory_;
  std::vector<std::pair<std::shared_ptr<const guest::Library>, std::unique_ptr<nv::IRuntime>>> guests_;
  std::atomic<nv::TempfileControlFlags> tempfile_flags_{kTempfileFlags};
  std::atomic<bool> host_code_allowed_{false};
};

}  // namespace lathe::api
