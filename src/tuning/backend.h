// SPDX-License-Identifier: Apache-2.0
// What a kind of devices offers to builds. kernels/<device>/backend.cpp defines one; device/families.def lists them.
#pragma once

#include "device/compiler_options.h"
#include "device/device.h"
#include "device/device_code.h"
#include "device/survey.h"
#include "tuning/backend_traits.h"
#include "tuning/data_dependent_tactic.h"

namespace lathe {

// On which devices besides that of the build a plan is to run. Numbers are those of plan::HardwareCompatibility.
enum class Portability : uint8_t {
  none = 0,
  ampere_plus = 1,     // all GPUs of compute capability 8.0 and later
  same_capability = 2  // all of its compute capability
};

// One launch of several: at once where none reads what another writes, or one block runs them in turn. nullopt where
// that is not possible, or no gain.
enum class JoinedParts : uint8_t { at_once, in_turn };
using JoinLaunches = std::optional<SourceLaunch>(std::span<const SourceLaunch> parts, JoinedParts how);

struct BackendSettings {
  int threads = 0;                          // as DeviceFamily::open() has it
  std::vector<std::string_view> libraries;  // Launch::library of those whose kernels may be used, where they are
  CompilerOptions compiler;
  Portability portability = Portability::none;
};

// Owns what building for one target takes: kept until the plan is built.
struct BackendBuild {
  Target target;
  Portability portability = Portability::none;  // that the plan has; none where the backend knows of no such thing
  CodeForm code_form = CodeForm::binary;        // of what the compiler makes, and for whom; "" = the target
  std::string code_target;
  std::string source_target;  // of images that are source; "" = plans have none
  BackendTraits traits;
  JoinLaunches* join_launches = nullptr;  // null = the device has none, or they cost nothing
  std::string packing_source;             // of the kernel of base/packing_table.inc; "" = the host packs
  std::string no_tf32;  // why products of f32 cannot round to TF32, in words; "" = they can, or the backend has none
  // Why kernels make no use of zeros in weights, likewise.
  std::string no_sparsity = "no kernel of this device leaves out zeros of weights";
  TacticList tactics;  // empty = every op by its plain evaluation
  DataDependentTacticList data_dependent;
  std::shared_ptr<Device> device;      // where candidates are measured; null = it is not here
  std::unique_ptr<Compiler> compiler;  // of device code; null for devices whose kernels the library holds
  std::string timing_key;
  std::vector<std::unique_ptr<Tactic>> owned;  // those of `tactics` that live as long as this
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // of its family
  // `target` as resolve_target() gives it.
  virtual Result<BackendBuild> prepare(std::string_view target, const BackendSettings& settings) const = 0;
  // Nothing where its devices are no hardware.
  virtual Survey survey() const { return {}; }
};

std::span<const Backend* const> backends();            // device/families.def
const Backend* find_backend(std::string_view target);  // null = none is known
// As Backend::prepare(), of the one that builds for this target.
Result<BackendBuild> prepare_build(std::string_view target, const BackendSettings& settings);

}  // namespace lathe
