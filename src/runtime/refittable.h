// SPDX-License-Identifier: Apache-2.0
// The constants of an engine whose weights can be replaced, in memory of the engine's own, and their refit.
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "device/device.h"
#include "ops/tensor.h"
#include "plan/plan.h"
#include "runtime/derive_constants.h"
#include "runtime/refit_gate.h"
#include "runtime/upload_constants.h"

namespace lathe {

class Refittable {
 public:
  // Copies the constants that the plan holds to the device. The plan must outlive it; its weights are not looked at
  // later.
  static Result<std::unique_ptr<Refittable>> create(const plan::Plan& plan, std::shared_ptr<Device> device);

  std::byte* constant(uint32_t index) const { return memory_.data() + offsets_[index]; }
  Result<std::vector<std::byte>> read(uint32_t index) const;  // its bytes; empty where it is missing

  // To be held while steps are run. Waits for a refit that has begun. Fails while constants of a stripped plan are
  // missing, and names their weights.
  Result<RefitGate::Lease> use();

  // Weights of constants that follow from those given or are missing, and that are not given themselves. By number.
  std::vector<bool> missing(const std::vector<bool>& given) const {
    const RefitGate::Lease lease = gate_.enter_run();
    return needed(given);
  }
  bool is_complete() const { return complete_.load(std::memory_order_acquire); }

  // `code`: the plan's, for this device. By the kernel that it has for it, the device packs constants from now on.
  Result<> take_code(std::span<const std::span<const std::byte>> code);

  // Computes the constants that follow from the weights given (undefined = not given), each in its kernel's order,
  // waits for runs that have begun and puts them in place. A device gets them beside the old ones first, where it has
  // room. After a failure before they are put in place, the engine is as it was; after one of the device, it lacks the
  // constants until another refit gives them.
  Result<> refit(std::span<const Tensor> weights, RangeCheck check, int threads);

  // While this lives, constants do not change, and read() may be called.
  RefitGate::Lease hold() const { return gate_.enter_run(); }

 private:
  Refittable(const plan::Plan& plan, std::shared_ptr<Device> device)
      : plan_(plan), device_(std::move(device)), uploader_(*device_) {}
  std::vector<bool> needed(const std::vector<bool>& given) const;
  std::vector<uint32_t> affected(const std::vector<bool>& given) const;
  Result<> check_given(std::span<const Tensor> weights, const std::vector<bool>& given) const;
  Result<> derive(const std::vector<uint32_t>& constants, std::span<const Tensor> weights, RangeCheck check,
                  int threads);
  // Of what was derived.
  std::vector<ConstantPlacer::Place> places() const;
  Result<> check_ranges(int threads) const;
  Result<> place(RangeCheck check, int threads);
  Result<> upload(RangeCheck check, int threads);
  Result<> upload_in_place(RangeCheck check, int threads);
  enum class Present : uint8_t { no, yes };
  void set_present(const std::vector<uint32_t>& constants, Present present);
  Result<Tensor> operand(const plan::RefitOperand& operand) const;
  std::string names_of(const std::vector<bool>& weights) const;

  const plan::Plan& plan_;
  std::shared_ptr<Device> device_;
  DeviceMemory memory_;
  std::vector<uint64_t> offsets_;                 // by constant
  std::vector<std::vector<uint32_t>> sources_;    // by constant
  std::vector<ConstantStep> steps_;               // of the plan's refit
  std::vector<bool> present_;                     // by constant; changes while the gate is held for a refit
  std::vector<std::vector<std::byte>> operands_;  // by operand of the refit: a copy on the host
  std::atomic<bool> complete_ = false;
  std::mutex refits_;  // one after the other
  // What the last refit derived, while it can be repeated: most refits give the same weights other contents.
  struct Derived {
    ConstantDeriver deriver;
    std::vector<uint32_t> constants;
    std::vector<ConstantContent> contents;  // of these
  };
  std::unique_ptr<Derived> derived_;
  ConstantUploader uploader_;  // of devices whose memory is not the host's
  mutable RefitGate gate_;
};

}  // namespace lathe
