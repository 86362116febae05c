// SPDX-License-Identifier: Apache-2.0
// Device code in a plan that is being made: each source is one code module of it.
#pragma once

#include "lowering/build.h"

namespace lathe {

class PlanCode {
 public:
  // All references must outlive it.
  PlanCode(BuiltPlan& out, const BuildOptions& options, Modules& modules)
      : out_(out), options_(options), modules_(modules) {}

  // The number of the source's module. `is_open`: the runtime may specialise its kernel for sizes, and needs its text.
  Result<uint32_t> add(std::string_view source, bool is_open);
  // Whether its code compiles and, where the device is there, loads.
  Result<> check(const SourceLaunch& launch);
  // Of a module of the plan.
  const std::string& source_of(uint32_t code) const { return out_.code_sources[code]; }
  // Takes out modules that no step's launches name, before others get one (plan::Refit::code).
  void drop_unused();

 private:
  Result<> add_source(uint32_t code, std::string_view source);

  BuiltPlan& out_;
  const BuildOptions& options_;
  Modules& modules_;
};

}  // namespace lathe
