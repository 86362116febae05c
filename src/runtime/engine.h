// SPDX-License-Identifier: Apache-2.0
// An engine: a loaded plan and its kernels, of which those that must be compiled are made once, before the first run.
// Else immutable; safe to share between threads; contexts hold all state.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/divide.h"
#include "base/log.h"
#include "device/device.h"
#include "device/kernel_cache.h"
#include "device/plugin.h"
#include "device/taken_constants.h"
#include "ops/op.h"
#include "plan/amend.h"
#include "plan/block_symbols.h"
#include "plan/blocks.h"
#include "plan/conditional_tensors.h"
#include "plan/plan.h"
#include "plan/reader.h"
#include "runtime/memory_limit.h"
#include "runtime/plan_file.h"
#include "runtime/refittable.h"
#include "runtime/specializer.h"
#include "runtime/streamed_weights.h"

namespace lathe {

struct EngineOptions {
  std::shared_ptr<Device> device;  // null: the engine cannot be run
  plan::ReadOptions read;
  const PluginSource* plugins = nullptr;  // of the plan's plugins: not owned; null = there are none
  int threads = 0;                        // without a device: that contexts' memory is told for; 0 = those of the build
  int loading_threads = 1;                // that make kernels of the host, the calling one among them
};

class Engine {
 public:
  // `bytes` stay mapped as long as `owner` lives. Without one they need to be there during the call only: of what goes
  // into a device's own memory, the engine then keeps no copy on the host. Refuses damaged plans and plans of other
  // versions and targets.
  static Result<std::shared_ptr<const Engine>> load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                    const EngineOptions& options);

  const plan::Plan& plan() const { return loaded_.plan; }
  std::span<const std::byte> bytes() const { return bytes_; }  // the plan as given, which has an owner
  // What of weights that can be replaced goes into a plan.
  enum class Refits : uint8_t { as_built, kept, left_out };
  enum class WeightsOf : uint8_t { all, that_stay };
  // The plan, weights from the device if they are there: those of the last refit. One whose weights cannot be replaced
  // is the same bytes.
  Result<std::vector<std::byte>> serialize(Refits refits = Refits::as_built, WeightsOf weights = WeightsOf::all) const;
  bool has_device() const { return device_ != nullptr; }  // otherwise it is for inspection only
  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  int threads() const { return device_ ? device_->threads() : threads_; }  // of the host, that kernels work with
  const std::byte* constant(uint32_t index) const {                        // as kernels read it
    return refittable_ ? refittable_->constant(index) : weights_.get() + plan().constants[index].offset;
  }
  // Of constants that need not all lie on the device, in place of constant(); null = they do.
  StreamedWeights* streamed() const { return streamed_.get(); }
  const std::byte* host_constant(uint32_t index) const;         // null = it is in the device's memory alone
  Refittable* refittable() const { return refittable_.get(); }  // null = its weights cannot be replaced

  // Makes the kernels whose code the plan does not have for this device: once, before anything runs; code that was
  // compiled earlier is in the cache, and what is compiled now goes there. Null = no cache. Thread-safe; a failure may
  // be tried again.
  Result<> make_kernels(KernelCache* cache) const;

  // Of kernels for the sizes of runs; null = no step has any.
  Specializer* specializer() const { return specializer_.get(); }

  // One per plan step, all there once make_kernels() was called: a kernel, or the attributes of the op that is
  // evaluated on the host; none for a copy. A kernel has attributes, too, where the op's shape rule gives the sizes of
  // its results while running. A plugin has attributes, and each context makes a kernel of a clone of it.
  struct StepCode {
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<Attributes> eval;
    std::unique_ptr<RunningPlugin> plugin;
  };
  const std::vector<StepCode>& code() const { return code_; }
  // How steps nest, and what sizes blocks find out; both per step.
  const std::vector<plan::StepPlace>& places() const { return places_; }
  const std::vector<plan::BlockSymbols>& block_symbols() const { return block_symbols_; }
  // Steps in bodies of branches, and tensors of theirs alone: what is wrong with their sizes counts when they run.
  bool is_conditional(size_t step) const { return conditional_steps_[step]; }
  const std::vector<bool>& conditional_tensors() const { return conditional_tensors_; }
  // Whether the device runs every step, knowing all shapes beforehand: what a captured graph can hold, if loops do not
  // make it too large.
  bool is_capturable() const { return capturable_; }

  // Whether only running tells: a size, where a tensor lies, what a step needs.
  bool is_data_dependent(plan::TensorId id) const { return id != plan::kNoTensor && data_dependent_[id]; }
  bool is_data_dependent(const Expr& number) const { return depends_on_data(number, plan().symbols); }
  bool is_data_dependent_step(size_t step) const { return data_dependent_steps_[step]; }

  int find_binding(std::string_view name) const;  // -1 = no such tensor
  // What contexts need under the profile; found at the first call. Null when some size has no limit.
  const MemoryLimit* memory_limit(size_t profile) const;
  // Of contexts' memory and of what steps find in it; rounds sizes up to it.
  size_t alignment() const { return alignment_; }
  size_t align(size_t bytes) const { return round_up(bytes, alignment_); }

 private:
  Engine() = default;
  Result<> check_values() const;
  Result<> place_weights();
  Result<std::vector<std::byte>> write_anew(Refits refits, WeightsOf weights) const;
  bool find_data_dependence(const plan::TensorDesc& tensor) const;
  void find_data_dependent_steps();
  bool is_capturable(const plan::Step& step) const;
  Result<> choose_codes();
  Result<> make_steps(const EngineOptions& options);
  Result<> make_steps_together(const std::vector<size_t>& steps, const EngineOptions& options);
  Result<StepCode> make_step(size_t i, const EngineOptions& options);
  Result<std::unique_ptr<Kernel>> make_kernel(size_t i) const;
  Result<> give_constants(const plan::Step& step, TakesConstants& taker) const;
  Result<> compile_images(KernelCache* cache) const;
  Result<> make_plugin(const plan::Step& step, const EngineOptions& options, StepCode& code) const;
  Result<> make_evaluation(const plan::Step& step, StepCode& code) const;
  plan::LoadedPlan loaded_;
  std::vector<Program> programs_;  // kernels may point to them: never resized after load
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;  // of bytes_; the weights may lie elsewhere
  PlanFile file_;                      // where there is no owner
  std::shared_ptr<Device> device_;
  int threads_ = 1;  // where there is none
  size_t alignment_ = 256;
  std::shared_ptr<const std::byte> weights_;
  std::unique_ptr<Refittable> refittable_;
  std::unique_ptr<StreamedWeights> streamed_;
  plan::Amendments amendments_;  // of a plan that is written anew: who reads it, and code for the host
  struct CompiledImage {
    size_t module;
    CodeImage image;  // of bytes of its own, for the plan's are compressed or may be gone
    std::shared_ptr<const std::vector<std::byte>> bytes;
    Digest key;
    DeviceCode code;  // none until make_kernels()
  };
  mutable std::mutex compile_mutex_;  // of the members that make_kernels() changes
  mutable bool has_kernels_ = false;
  mutable std::vector<CompiledImage> compiled_;
  mutable std::vector<std::span<const std::byte>> module_bytes_;  // by code module
  mutable std::vector<StepCode> code_;
  std::vector<bool> data_dependent_, conditional_tensors_;  // by tensor
  std::vector<bool> data_dependent_steps_;
  std::vector<bool> conditional_steps_;
  std::vector<plan::StepPlace> places_;
  std::vector<plan::BlockSymbols> block_symbols_;
  bool capturable_ = true;
  mutable std::mutex limits_mutex_;
  mutable std::vector<std::unique_ptr<const std::optional<MemoryLimit>>> limits_;  // by profile
  std::unique_ptr<Specializer> specializer_;                                       // its threads use what is above
};

}  // namespace lathe
