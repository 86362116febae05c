// SPDX-License-Identifier: Apache-2.0
// A step's launches of device code and calls of libraries, with every number evaluated from the input shapes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "device/cuda/libraries.h"
#include "device/cuda/module.h"
#include "device/cuda/stream.h"
#include "device/cuda/tensor_map.h"
#include "device/graph_memory.h"
#include "device/kernel.h"

namespace lathe::cuda {

class LaunchKernel : public Kernel, public RehearsedKernel {
 public:
  // Checks all of `record` that does not depend on shapes, and loads its code.
  static Result<std::unique_ptr<Kernel>> create(const std::shared_ptr<PrimaryContext>& context, ModuleTable& modules,
                                                Libraries& libraries, const StepRecord& record);

  Result<size_t> prepare(const Operands& operands, int threads) const override;
  Result<> enqueue(const Operands& operands, std::byte* workspace, Queue& queue) const override;
  Result<> rehearse(Queue& queue) const override;  // but for calls of libraries

 private:
  struct Prepared {
    Launch launch;
    std::shared_ptr<Module> module;
    CUfunction function = nullptr;
    std::unique_ptr<LibraryCall> call;  // instead of module and function
  };
  using Grid = std::array<int64_t, 3>;
  class Numbers;
  struct Values {  // of a launch's parameters and tensor maps, by their places
    int64_t args[kMaxLaunchArgs];
    MapExtents maps[kMaxTensorMaps];
  };

  LaunchKernel() = default;
  Result<Grid> grid(const Prepared& prepared, Numbers& numbers) const;
  static Result<Prepared> load(const Launch& launch, const std::shared_ptr<PrimaryContext>& context,
                               ModuleTable& modules, std::span<const std::span<const std::byte>> code);
  // Of numbers and workspaces; addresses are the caller's to add.
  static Result<> find_values(const Launch& launch, Numbers& numbers, Values& values);
  static Result<> start(const Prepared& prepared, const Grid& blocks, void** parameters, Stream& stream);
  static Result<size_t> prepare_call(const Prepared& prepared, const Values& values);
  Result<> enqueue_one(const Prepared& prepared, const Operands& operands, Numbers& numbers, std::byte* workspace,
                       Stream& stream) const;

  std::vector<Prepared> launches_;
  std::optional<Expr> workspace_;
  std::array<int, 3> max_grid_{};
  int multiprocessors_ = 0;
};

}  // namespace lathe::cuda
