// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/launch_kernel.h"

#include <algorithm>

#include "device/cuda/tensor_map.h"
#include "device/whole_grid.h"

namespace lathe::cuda {
namespace {

constexpr int kMinOverlapArchitecture = 90;

constexpr uint32_t kMaxCluster = 16;

template <class... Args>
tl::unexpected<Error> refuse(const Launch& launch, fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::launch_refused, "kernel '{}': {}", launch.entry,
              fmt::format(format, std::forward<Args>(args)...));
}

uint32_t cluster_of(const Launch& launch) { return launch.cluster == kWholeGrid ? 1 : launch.cluster; }

Result<> check_launch(const Launch& launch, const DeviceProperties& properties) {
  if (launch.block == 0 || launch.block > static_cast<uint32_t>(properties.max_threads))
    return refuse(launch, "{} threads in a block; the device allows 1 to {}", launch.block, properties.max_threads);
  if (launch.shared_bytes > static_cast<uint32_t>(properties.max_shared_bytes))
    return refuse(launch, "{} bytes of shared memory; the device allows {}: build the engine for this device",
                  launch.shared_bytes, properties.max_shared_bytes);
  const uint32_t cluster = cluster_of(launch);
  if (cluster == 0 || cluster > kMaxCluster)
    return refuse(launch, "{} blocks in a cluster; 1 to {} are possible", launch.cluster, kMaxCluster);
  if (cluster > 1 && !properties.clusters)
    return refuse(launch, "it uses clusters, which the device lacks: build the engine for this device");
  if (launch.args.size() > kMaxLaunchArgs)
    return refuse(launch, "{} parameters; at most {} are possible", launch.args.size(), kMaxLaunchArgs);
  if (launch.maps.size() > kMaxTensorMaps)
    return refuse(launch, "{} tensor maps; at most {} are possible", launch.maps.size(), kMaxTensorMaps);
  return {};
}

bool is_map(const LaunchArg& arg) { return arg.kind == LaunchArg::tensor_map; }

Result<> check_function(const Launch& launch, const KernelFunction& function, const DeviceProperties& properties) {
  if (launch.block > static_cast<uint32_t>(function.max_threads))
    return refuse(launch, "{} threads in a block; its registers allow {}", launch.block, function.max_threads);
  if (function.parameters >= 0 && launch.args.size() != static_cast<size_t>(function.parameters))
    return refuse(launch, "{} parameters are given, and it has {}", launch.args.size(), function.parameters);
  const auto maps = std::count_if(launch.args.begin(), launch.args.end(), is_map);
  if (function.parameters >= 0 && maps != function.maps)
    return refuse(launch, "{} tensor maps are given, and it has {}", maps, function.maps);
  const int64_t shared = int64_t{launch.shared_bytes} + function.static_shared_bytes;
  if (shared > properties.max_shared_bytes)
    return refuse(launch, "{} bytes of shared memory; the device allows {}", shared, properties.max_shared_bytes);
  return {};
}

Result<> check_args(const Launch& launch, const Operands& operands) {
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const LaunchArg& arg = launch.args[i];
    if (is_map(arg)) {
      if (arg.index >= launch.maps.size() || (i > 0 && !is_map(launch.args[i - 1])))
        return refuse(launch, "parameter {} is no tensor map that it has, before all others", i);
      if (const auto fault = fault_of(launch.maps[arg.index], operands.inputs.size()))
        return refuse(launch, "its tensor map {} {}", arg.index, *fault);
      continue;
    }
    const bool is_tensor = arg.kind == LaunchArg::input || arg.kind == LaunchArg::output;
    const size_t count = arg.kind == LaunchArg::input ? operands.inputs.size() : operands.outputs.size();
    if (is_tensor && arg.index >= count)
      return refuse(launch, "parameter {} is {} {}, and the step has {}", i,
                    arg.kind == LaunchArg::input ? "input" : "output", arg.index, count);
  }
  return {};
}

bool is_empty(const std::array<int64_t, 3>& grid) { return grid[0] == 0 || grid[1] == 0 || grid[2] == 0; }

unsigned set_attributes(const Launch& launch, bool overlaps, CUlaunchAttribute* attributes) {
  unsigned count = 0;
  if (cluster_of(launch) > 1) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count++].value.clusterDim = {launch.cluster, 1, 1};
  }
  if (launch.cluster == kWholeGrid) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.cooperative = 1;
  }
  if (overlaps) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count++].value.programmaticStreamSerializationAllowed = 1;
  }
  return count;
}

}  // namespace

// Values of expressions of the symbols, which a step asks for in the same order in prepare() and in each enqueue():
// what is kept of them is a list.
class LaunchKernel::Numbers {
 public:
  enum Mode { worked_out, kept };

  Numbers(const Operands& operands, Mode mode)
      : symbols_(operands.symbols), list_(operands.numbers), is_kept_(list_ && mode == kept) {
    if (list_ && !is_kept_) list_->clear();
  }
  std::optional<int64_t> operator()(const Expr& number) {
    if (number.is_constant()) return number.as_constant();
    if (is_kept_) return next_ < list_->size() ? std::optional((*list_)[next_++]) : std::nullopt;
    const std::optional<int64_t> value = number.evaluate(symbols_);
    if (value && list_) list_->push_back(*value);
    return value;
  }

 private:
  std::span<const int64_t> symbols_;
  std::vector<int64_t>* list_;  // null = nothing is kept
  bool is_kept_;
  size_t next_ = 0;
};

Result<LaunchKernel::Prepared> LaunchKernel::load(const Launch& launch, const std::shared_ptr<PrimaryContext>& context,
                                                  ModuleTable& modules,
                                                  std::span<const std::span<const std::byte>> code) {
  const DeviceProperties& properties = context->properties();
  LATHE_TRY(check_launch(launch, properties));
  const Driver& driver = context->driver();
  const auto can_make = [&](const TensorMap& map) {
    return map.windows.empty() ? driver.cuTensorMapEncodeTiled != nullptr : driver.cuTensorMapEncodeIm2col != nullptr;
  };
  if (!std::ranges::all_of(launch.maps, can_make))
    return refuse(launch, "it reads tensors by maps, which the driver cannot make: install a newer driver");
  if (launch.code >= code.size())
    return refuse(launch, "it is in code module {}, and the plan has {}", launch.code, code.size());
  const std::span<const std::byte> bytes = code[launch.code];
  LATHE_ASSIGN(std::shared_ptr<Module> module,
               modules.get(digest_of(bytes), [&] { return Module::load(context, bytes); }));
  LATHE_ASSIGN(const KernelFunction function, module->function(launch.entry));
  LATHE_TRY(check_function(launch, function, properties));
  LATHE_TRY(module->allow(launch.entry, launch.shared_bytes, cluster_of(launch)));
  Prepared prepared{launch, std::move(module), function.handle, nullptr};
  // Code for older architectures does not wait for the kernel before it, which it was never to overlap.
  prepared.launch.overlaps &= function.architecture >= kMinOverlapArchitecture;
  return prepared;
}

Result<std::unique_ptr<Kernel>> LaunchKernel::create(const std::shared_ptr<PrimaryContext>& context,
                                                     ModuleTable& modules, Libraries& libraries,
                                                     const StepRecord& record) {
  if (record.launches.size() > kMaxLaunches)
    return fail(ErrorCode::launch_refused, "the step has {} launches; at most {} are possible", record.launches.size(),
                kMaxLaunches);
  std::unique_ptr<LaunchKernel> kernel(new LaunchKernel);
  kernel->max_grid_ = context->properties().max_grid;
  kernel->multiprocessors_ = context->properties().multiprocessors;
  if (record.workspace) kernel->workspace_ = *record.workspace;
  for (const Launch& launch : record.launches) {
    if (launch.library.empty()) {
      LATHE_ASSIGN(Prepared prepared, load(launch, context, modules, record.code));
      const bool is_known =
          std::all_of(launch.grid.begin(), launch.grid.end(), [](const Expr& e) { return e.is_constant(); });
      if (launch.cluster == kWholeGrid && is_known) {
        Numbers constants({}, Numbers::worked_out);
        LATHE_TRY(kernel->grid(prepared, constants));
      }
      kernel->launches_.push_back(std::move(prepared));
      continue;
    }
    LATHE_ASSIGN(std::unique_ptr<LibraryCall> call, libraries.make_call(launch));
    kernel->launches_.push_back({launch, nullptr, nullptr, std::move(call)});
  }
  return kernel;
}

Result<LaunchKernel::Grid> LaunchKernel::grid(const Prepared& prepared, Numbers& numbers) const {
  const Launch& launch = prepared.launch;
  Grid grid{};
  for (size_t i = 0; i < grid.size(); ++i) {
    const std::optional<int64_t> blocks = numbers(launch.grid[i]);
    if (!blocks)
      return refuse(launch, "its grid's extent {}, {}, has no value for these shapes", i, launch.grid[i].to_string());
    if (*blocks < 0 || *blocks > max_grid_[i])
      return refuse(launch, "its grid's extent {} is {}; 0 to {} are possible", i, *blocks, max_grid_[i]);
    grid[i] = *blocks;
  }
  if (launch.cluster == kWholeGrid) {
    // A multiprocessor has room for a block, or the kernel would not have been loaded.
    const int64_t blocks = grid[0] * grid[1] * grid[2];
    if (blocks <= multiprocessors_) return grid;
    return refuse(launch,
                  "its {} blocks wait for each other, and this device runs {} at once, one on each multiprocessor: "
                  "build the engine on this device, or without one for its architecture",
                  blocks, multiprocessors_);
  }
  if (grid[0] % launch.cluster != 0)
    return refuse(launch, "its grid of {} blocks does not divide into clusters of {}", grid[0], launch.cluster);
  return grid;
}

Result<> LaunchKernel::find_values(const Launch& launch, Numbers& numbers, Values& values) {
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const LaunchArg& arg = launch.args[i];
    if (is_map(arg)) {
      if (!find_extents(launch.maps[arg.index], numbers, values.maps[arg.index]))
        return refuse(launch, "a size of its tensor map {} has no value for these shapes", arg.index);
    } else if (arg.kind == LaunchArg::number || arg.kind == LaunchArg::workspace) {
      const std::optional<int64_t> value = numbers(arg.value);
      if (!value) return refuse(launch, "parameter {}, {}, has no value for these shapes", i, arg.value.to_string());
      values.args[i] = *value;
    }
  }
  return {};
}

Result<size_t> LaunchKernel::prepare(const Operands& operands, int) const {
  size_t needed = 0;
  Numbers numbers(operands, Numbers::worked_out);
  for (const Prepared& prepared : launches_) {
    LATHE_TRY(check_args(prepared.launch, operands));
    Values values;
    if (!prepared.call) {
      LATHE_ASSIGN(const Grid blocks, grid(prepared, numbers));
      if (!is_empty(blocks)) LATHE_TRY(find_values(prepared.launch, numbers, values));
      continue;
    }
    LATHE_TRY(find_values(prepared.launch, numbers, values));
    LATHE_ASSIGN(const size_t bytes, prepare_call(prepared, values));
    needed = std::max(needed, bytes);
  }
  if (!workspace_) return needed;
  const std::optional<int64_t> bytes = workspace_->evaluate(operands.symbols);
  if (!bytes || *bytes < 0)
    return fail(ErrorCode::launch_refused, "the step's workspace, {} bytes, has no value for these shapes",
                workspace_->to_string());
  return std::max(needed, static_cast<size_t>(*bytes));
}

// Bytes of workspace up to the end of what the library needs, which only the library knows.
Result<size_t> LaunchKernel::prepare_call(const Prepared& prepared, const Values& values) {
  int64_t own[kMaxLaunchArgs], begin = 0;
  const std::vector<LaunchArg>& args = prepared.launch.args;
  for (size_t i = 0; i < args.size(); ++i) {
    own[i] = args[i].kind == LaunchArg::number ? values.args[i] : 0;
    if (args[i].kind == LaunchArg::workspace) begin = std::max(begin, values.args[i]);
  }
  LATHE_ASSIGN(const size_t bytes, prepared.call->prepare({own, args.size()}));
  return bytes == 0 ? 0 : static_cast<size_t>(begin) + bytes;
}

Result<> LaunchKernel::enqueue(const Operands& operands, std::byte* workspace, Queue& queue) const {
  auto& stream = static_cast<Stream&>(queue);
  LATHE_TRY(stream.context().usable());
  Numbers numbers(operands, Numbers::kept);
  for (const Prepared& prepared : launches_) LATHE_TRY(enqueue_one(prepared, operands, numbers, workspace, stream));
  return {};
}

Result<> LaunchKernel::enqueue_one(const Prepared& prepared, const Operands& operands, Numbers& numbers,
                                   std::byte* workspace, Stream& stream) const {
  const Launch& launch = prepared.launch;
  Grid blocks{};
  if (!prepared.call) {
    LATHE_ASSIGN(blocks, grid(prepared, numbers));
    if (is_empty(blocks)) return {};
  }
  Values values;
  LATHE_TRY(find_values(launch, numbers, values));
  CUtensorMap maps[kMaxTensorMaps];
  void* parameters[kMaxLaunchArgs];
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const LaunchArg& arg = launch.args[i];
    parameters[i] = &values.args[i];
    switch (arg.kind) {
      case LaunchArg::input:
        values.args[i] = reinterpret_cast<int64_t>(operands.inputs[arg.index].data);
        break;
      case LaunchArg::output:
        values.args[i] = reinterpret_cast<int64_t>(operands.outputs[arg.index].data);
        break;
      case LaunchArg::workspace:
        values.args[i] += reinterpret_cast<int64_t>(workspace);
        break;
      case LaunchArg::number:
        break;
      case LaunchArg::tensor_map: {
        const TensorMap& map = launch.maps[arg.index];
        LATHE_TRY(encode(stream.context().driver(), map, values.maps[arg.index], operands.inputs[map.input].data,
                         maps[arg.index]));
        parameters[i] = &maps[arg.index];
        break;
      }
    }
  }
  if (prepared.call) return prepared.call->enqueue({values.args, launch.args.size()}, stream);
  return start(prepared, blocks, parameters, stream);
}

Result<> LaunchKernel::start(const Prepared& prepared, const Grid& blocks, void** parameters, Stream& stream) {
  const Launch& launch = prepared.launch;
  CUlaunchAttribute attributes[3] = {};
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(blocks[0]);
  config.gridDimY = static_cast<unsigned>(blocks[1]);
  config.gridDimZ = static_cast<unsigned>(blocks[2]);
  config.blockDimX = launch.block;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = launch.shared_bytes;
  config.hStream = stream.handle();
  config.attrs = attributes;
  config.numAttrs = set_attributes(launch, launch.overlaps && stream.overlaps(), attributes);
  const PrimaryContext& context = stream.context();
  const CUresult result = context.driver().cuLaunchKernelEx(&config, prepared.function, parameters, nullptr);
  if (result == CUDA_SUCCESS) return {};
  return fail(stream.context().failure(result, fmt::format("starting the kernel '{}'", launch.entry)));
}

Result<> LaunchKernel::rehearse(Queue& queue) const {
  CUtensorMap zeros{};  // the largest parameter
  void* parameters[kMaxLaunchArgs];
  std::ranges::fill(parameters, &zeros);
  for (const Prepared& prepared : launches_)
    if (!prepared.call)
      LATHE_TRY(start(prepared, {cluster_of(prepared.launch), 1, 1}, parameters, static_cast<Stream&>(queue)));
  return {};
}

}  // namespace lathe::cuda
