// SPDX-License-Identifier: Apache-2.0
// Compiled device code by source text: what the tuner tried and the builder then emits is compiled once.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/device.h"
#include "tuning/tactic.h"

namespace lathe {

// Thread-safe.
class Modules {
 public:
  using Module = std::shared_ptr<const std::vector<std::byte>>;
  // Without a compiler every request fails.
  explicit Modules(Compiler* compiler) : compiler_(compiler) {}

  // Compiles what is not there yet, each source once however many threads ask; a failure is kept like code.
  Result<Module> find(const std::string& source);
  // As Compiler::headers_of().
  std::vector<SourceFile> headers_of(std::string_view source) const {
    return compiler_ ? compiler_->headers_of(source) : std::vector<SourceFile>();
  }

 private:
  Result<Module> compile(const std::string& source) const;

  Compiler* compiler_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Result<Module>>> modules_;  // that the first to ask compiles
};

// An emission's launches with their modules, as a step's record needs them.
struct StepModules {
  std::vector<Launch> launches;
  std::vector<Modules::Module> modules;   // by Launch::code
  std::vector<std::string_view> sources;  // likewise; of the emission's
  std::vector<std::span<const std::byte>> code() const;
};
Result<StepModules> modules_of(const Emission& emission, Modules& modules);

}  // namespace lathe
