// SPDX-License-Identifier: Apache-2.0
// What a guest of the other generation of the interface is given in place of the application's objects, and which of
// ours stand for its own (facades.h). Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "api/guest/registry_view.h"

namespace lathe::api::guest {

class LoggerForGuest final : public OtherLogger {
 public:
  explicit LoggerForGuest(nv::ILogger& logger) : logger_(logger) {}
  void log(nv::ILogger::Severity severity, const char* text) noexcept override { logger_.log(severity, text); }
  nv::ILogger& application() const noexcept { return logger_; }
  // The guest takes it for a logger of its interface, whose name is the same.
  nv::ILogger* as_guest_sees() noexcept { return reinterpret_cast<nv::ILogger*>(static_cast<OtherLogger*>(this)); }
  static nv::ILogger* application_of(nv::ILogger* seen) noexcept {
    return seen ? &static_cast<LoggerForGuest*>(reinterpret_cast<OtherLogger*>(seen))->application() : nullptr;
  }

 private:
  nv::ILogger& logger_;
};

class ProfilerForGuest final : public OtherProfiler {
 public:
  void reportLayerTime(const char* layer, float ms) noexcept override { profiler_.load()->reportLayerTime(layer, ms); }
  // Null for null; the one before is called until the guest has let it go.
  nv::IProfiler* as_guest_sees(nv::IProfiler* profiler) noexcept {
    if (!profiler) return nullptr;
    profiler_ = profiler;
    return reinterpret_cast<nv::IProfiler*>(static_cast<OtherProfiler*>(this));
  }
  nv::IProfiler* application_of(nv::IProfiler* seen) const noexcept { return seen ? profiler_.load() : nullptr; }

 private:
  std::atomic<nv::IProfiler*> profiler_{nullptr};
};

class OtherSide {
 public:
  explicit OtherSide(const Reporter& reporter) : first_(*reporter.logger()), parent_(reporter) {}

  // The runtime's own where memory is short.
  nv::ILogger* logger(nv::ILogger& logger) noexcept;
  nv::IPluginRegistry* parent(nv::IPluginRegistry* registry) noexcept;

  // Which object of ours stands for one of the guest's while both live.
  void add(const void* object, void* facade);
  void remove(const void* object) noexcept;
  void* facade_of(const void* object) noexcept;  // or null

 private:
  struct Pair {
    const void* object;
    void* facade;
  };
  Pair* find(const void* object) noexcept;  // the caller holds mutex_

  LoggerForGuest first_;
  ViewForGuest parent_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<LoggerForGuest>> loggers_;
  std::vector<Pair> facades_;
};

}  // namespace lathe::api::guest
