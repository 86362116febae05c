// SPDX-License-Identifier: Apache-2.0
// What building for a target takes.
#pragma once

#include "lowering/build.h"
#include "tuning/backend.h"

namespace lathe::api {

// Owns what it puts into the options: keep it until the plan is built.
class TargetBuild {
 public:
  // Fills in tactics, the device to measure on, the compiler, keys. `target` as in setTarget().
  Result<> prepare(std::string_view target, int cpu_threads, BuildOptions& options, LibrarySources sources = {},
                   const CompilerOptions& compiler = {});
  const BackendTraits& traits() const { return build_.traits; }

 private:
  BackendBuild build_;
};

}  // namespace lathe::api
