// SPDX-License-Identifier: Apache-2.0
// A kind of devices as users name it, "cpu" or "cuda": it opens those that are in the machine. Everything above knows
// kinds of devices through this list alone. Thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "device/device.h"
#include "device/device_code.h"

namespace lathe {

class DeviceFamily {
 public:
  virtual ~DeviceFamily() = default;
  // "cuda": what targets of plans for it start with, "cuda-sm_90".
  virtual std::string_view name() const = 0;
  // The name of one of its devices or targets, spelt in full: "cuda:1", and "cuda-sm_90" for "sm_90", which it may also
  // be called. Null where it is none of this family; an error where it is wrong. The device need not be there.
  virtual Result<std::optional<std::string>> resolve(std::string_view name) const = 0;
  // A device that runs plans; `threads` is the most that it works with where it is the host's processor, 0 = all that
  // the process may use.
  virtual Result<std::shared_ptr<Device>> open(int threads) const = 0;
  // Of a module without a binary for this target of its own, the image that Device::compile() makes one of; fails with
  // plan_target, naming what is there, where there is none.
  virtual Result<const CodeImage*> adaptable_image(const CodeModule& module, std::string_view target) const {
    return fail(no_image(module, target));
  }
  // A kernel that the library itself holds, without a device: to be asked what it needs, not to be run. Null where
  // steps run code of their plan.
  virtual Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord&) const { return nullptr; }
  // Whether its devices' memory is the host's (Device::is_host).
  virtual bool is_host() const { return false; }
  // Whether one of its devices is in the machine, so that builds are for it unless told otherwise; fails with what is
  // missing.
  virtual Result<> find_device() const = 0;
  // Whether the address is of memory of its devices that the host cannot read. Starts no device.
  virtual bool is_device_memory(const void*) const { return false; }
  // What the memory of contexts is aligned to, and what steps find in it.
  virtual size_t memory_alignment() const { return 256; }
  // Lets go of devices that are kept open for the next use.
  virtual void release() const {}
};

std::span<const DeviceFamily* const> device_families();  // families.def

// The family that runs plans for a target; null = none is known.
const DeviceFamily* find_family(std::string_view target);

// What a device of this target takes of a module: the binary for exactly it, which it runs, else what its family
// compiles.
Result<const CodeImage*> choose_image(const CodeModule& module, std::string_view target);

// As DeviceFamily::resolve(), of any family.
Result<std::string> resolve_target(std::string_view name);

// What builds are for unless told otherwise, and why, in words.
struct DefaultTarget {
  std::string name;
  std::string reason;
};
// What the environment variable LATHE_TARGET names, known or not; else the first kind of devices besides the host that
// has one in the machine; else the host.
DefaultTarget default_target();

// Whether the address is of memory of a device, of any family, that the host cannot read.
bool is_device_memory(const void* address);

}  // namespace lathe
