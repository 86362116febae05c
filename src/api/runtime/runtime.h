// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/registry_report.h"
#include "api/report.h"
#include "api/settings.h"
#include "plugin/registry.h"

namespace lathe::api {

// What a runtime shares with its engines, and what therefore outlives it.
struct RuntimeCore {
  explicit RuntimeCore(std::shared_ptr<Reporter> reporter) : reporter(std::move(reporter)) {}

  std::shared_ptr<Reporter> reporter;
  SettingNotices notices;  // of the runtime
  plugin::Registry registry{&plugin::global_registry(), registry_report(reporter), logger_finder()};
  // Threads may load engines while another changes these.
  std::atomic<nv::IGpuAllocator*> allocator{nullptr};
  std::atomic<int32_t> cpu_threads{0};       // lathe::setCpuThreads
  std::atomic<bool> inspection_only{false};  // lathe::setInspectionOnly
};

class Runtime final : public nv::IRuntime, public nv::apiv::VRuntime {
 public:
  explicit Runtime(nv::ILogger* logger) : core_(std::make_shared<RuntimeCore>(std::make_shared<Reporter>(logger))) {
    mImpl = this;
  }
  ~Runtime() noexcept override = default;

  RuntimeCore& core() { return *core_; }

  nv::IRuntime* getPImpl() noexcept override { return this; }
  nv::ICudaEngine* deserializeCudaEngine(const void* blob, std::size_t size) noexcept override;
  void setDLACore(int32_t dlaCore) noexcept override;
  int32_t getDLACore() const noexcept override { return 0; }
  int32_t getNbDLACores() const noexcept override { return 0; }
  void setGpuAllocator(nv::IGpuAllocator* allocator) noexcept override;
  void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override { core_->reporter->set_recorder(recorder); }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return core_->reporter->recorder(); }
  nv::ILogger* getLogger() const noexcept override { return core_->reporter->logger(); }
  bool setMaxThreads(int32_t maxThreads) noexcept override;
  int32_t getMaxThreads() const noexcept override { return max_threads_; }
  void setTemporaryDirectory(const char* path) noexcept override;
  const char* getTemporaryDirectory() const noexcept override { return temporary_directory_.c_str(); }
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

  std::shared_ptr<RuntimeCore> core_;
  std::string temporary_directory_;
  std::atomic<nv::TempfileControlFlags> tempfile_flags_{kTempfileFlags};
  std::atomic<int32_t> max_threads_{1};
  std::atomic<bool> host_code_allowed_{false};
};

}  // namespace lathe::api
