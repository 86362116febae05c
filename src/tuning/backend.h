// SPDX-License-Identifier: Apache-2.0
// What a kind of devices offers to builds. kernels/<device>/backend.cpp defines one; device/families.def lists them.
#pragma once

#include "device/compiler_options.h"
#include "device/device.h"
#include "tuning/data_dependent_tactic.h"

namespace lathe {

// Libraries whose kernels may be used beside our own, where the device has them.
struct LibrarySources {
  bool cublaslt = false;
  bool cudnn = false;
};

struct BackendSettings {
  int threads = 0;  // as DeviceFamily::open() has it
  LibrarySources libraries;
  CompilerOptions compiler;
};

// What its kernels take: how a graph is rewritten and cut into regions for them.
struct BackendTraits {
  bool fuses_narrow_types = false;   // f16, bf16 and small integers belong into regions as f32 does
  bool fuses_prologues = false;      // kernels may compute their input as they read it
  bool fuses_movement = false;       // expressions may read and write in another order
  bool narrow_floats = false;        // there are kernels for f16 and bf16; otherwise they are widened
  bool integer_products = false;     // there are kernels that multiply 8-bit integers
  bool weighted_products = false;    // of those, one takes u8 and i8 with any zero point, by constant weights only
  bool decompose_doubles = false;    // kernels for rows and windows take f32 alone
  bool narrows_precision = false;    // it pays to compute in f16, bf16 or TF32 where the application allows that
  bool windows_keep_layout = false;  // pooling and resizing write row-major images as fast as they read them
  int64_t least_pixel = 0;           // images of fewer channels are copied with room for so many; 0 = read as they come
};

// Owns what building for one target takes: kept until the plan is built.
struct BackendBuild {
  Target target;
  BackendTraits traits;
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
};

const Backend* find_backend(std::string_view target);  // null = none is known

}  // namespace lathe
