// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"

#include <algorithm>

#include "base/never_destroyed.h"
#include "device/cuda/adapt_code.h"
#include "device/cuda/architecture.h"
#include "device/cuda/captured_graph.h"
#include "device/cuda/launch_kernel.h"
#include "device/cuda/memory.h"
#include "device/cuda/order_event.h"
#include "device/cuda/timing.h"
#include "device/graph_memory.h"
#include "device/hardware.h"
#include "device/pinned_memory.h"

namespace lathe::cuda {
namespace {

Stream& stream_of(Queue& queue) { return static_cast<Stream&>(queue); }

// Weights on the device, for as long as somebody uses them. `owner` keeps their address on the host from being used
// for others, for the address is what they are known by.
struct Resident {
  DeviceMemory memory;
  std::shared_ptr<const void> owner;
};

struct ResidentKey {
  const void* owner;
  const std::byte* data;
  size_t size;
  auto operator<=>(const ResidentKey&) const = default;
};

// What a device and those that allocate from elsewhere have in common.
struct SharedCode {
  explicit SharedCode(const std::shared_ptr<PrimaryContext>& context) : libraries(context) {}
  ModuleTable modules;
  Libraries libraries;
};

class CudaDevice final : public Device,
                         public EventMaker,
                         public GraphReserver,
                         public HardwareDevice,
                         public PinningDevice {
 public:
  CudaDevice(std::shared_ptr<PrimaryContext> context, const Architecture& architecture)
      : context_(std::move(context)),
        architecture_(architecture),
        name_(fmt::format("cuda:{}", context_->properties().ordinal)),
        code_(std::make_shared<SharedCode>(context_)) {}
  CudaDevice(const CudaDevice& device, std::shared_ptr<MemorySource> source)
      : context_(device.context_),
        source_(std::make_shared<ContextSource>(ContextSource{context_, std::move(source)})),
        architecture_(device.architecture_),
        name_(device.name_),
        code_(device.code_) {}

  std::string_view name() const override { return name_; }
  std::string target() const override { return target_name(architecture_); }
  Target describe() const override { return cuda::describe(architecture_, context_->properties()); }
  std::string timing_key() const override;
  Result<> check_target(std::string_view target) const override;
  HardwareProperties hardware() const override;
  bool is_host() const override { return false; }

  std::optional<MemoryUse> memory_use() const override;
  size_t most_cache_aside() const override {
    return context_->driver().has_cache_windows() ? static_cast<size_t>(context_->properties().persisting_l2_bytes) : 0;
  }
  Result<> set_aside_cache(size_t bytes) override;
  Result<DeviceMemory> allocate(size_t bytes) override {
    return source_ ? cuda::allocate(source_, bytes) : cuda::allocate(context_, bytes);
  }
  Result<DeviceMemory> allocate_pinned(size_t bytes) override { return cuda::allocate_pinned(context_, bytes); }
  std::shared_ptr<Device> allocating_from(std::shared_ptr<MemorySource> source) override {
    return std::make_shared<CudaDevice>(*this, std::move(source));
  }
  Result<std::unique_ptr<Queue>> make_queue() override { return Stream::create(context_); }
  Result<std::unique_ptr<Queue>> make_stream_queue(void* stream) override;
  Result<> upload(void* to, const void* from, size_t bytes, Queue& queue) override {
    return cuda::upload(to, from, bytes, stream_of(queue));
  }
  Result<> download(void* to, const void* from, size_t bytes, Queue& queue) override {
    return cuda::download(to, from, bytes, stream_of(queue));
  }
  Result<> copy(const RowsCopy& rows, Queue& queue) override { return cuda::copy(rows, stream_of(queue)); }
  Result<> wait(Queue& queue) override { return stream_of(queue).wait(); }
  void* native_stream(Queue& queue) const override { return stream_of(queue).handle(); }
  Result<std::unique_ptr<Event>> make_event() override { return OrderEvent::create(context_); }
  bool is_accessible(const void* address) const override { return cuda::is_accessible(*context_, address); }
  bool is_readable_by_host(const void* address) const override { return cuda::is_readable_by_host(*context_, address); }

  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord& record) override;
  Result<std::vector<std::byte>> compile(const CodeImage& image) override {
    return compile_image(image, *context_, target());
  }
  Result<std::vector<std::byte>> specialize(const CodeImage& source, std::span<const SourceFile> headers,
                                            const Launch& launch, std::span<const int64_t> numbers) override {
    return specialize_source({source, headers}, launch, numbers, target());
  }
  Result<std::shared_ptr<const std::byte>> make_resident(std::span<const std::byte> bytes,
                                                         std::shared_ptr<const void> owner) override;
  Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>& work) override;
  Result<std::unique_ptr<CapturedGraph>> record(const std::function<Result<>(Queue&)>& work) override;
  Result<> reserve_graphs(const std::function<Result<>(Queue&)>& work, size_t graphs) override {
    return context_->driver().has_graphs() ? cuda::reserve_graphs(context_, work, graphs) : Result<>();
  }
  Result<> follow_all(Queue& queue) override {
    LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
    context_->follow_all(stream_of(queue).handle());
    return {};
  }
  Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) override {
    return time_work(stream_of(queue), work, repeats);
  }
  Result<std::vector<double>> time_replays(Queue& queue, CapturedGraph& graph, int repeats) override {
    return cuda::time_replays(stream_of(queue), graph, repeats);
  }
  Result<> usable() const { return context_->usable(); }
  Libraries& libraries() { return code_->libraries; }

 private:
  Result<std::shared_ptr<Resident>> load_resident(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  std::shared_ptr<PrimaryContext> context_;
  std::shared_ptr<ContextSource> source_;  // null = memory is the device's own
  const Architecture& architecture_;
  const std::string name_;
  std::shared_ptr<SharedCode> code_;
  SharedTable<ResidentKey, Resident> residents_;
};

std::string CudaDevice::timing_key() const {
  const DeviceProperties& p = context_->properties();
  return fmt::format("{} sm_{} x{} {} kHz, memory {} bytes {} bits {} kHz, L2 {}, driver {}", p.name, p.architecture(),
                     p.multiprocessors, p.clock_khz, p.memory_bytes, p.memory_bus_bits, p.memory_clock_khz, p.l2_bytes,
                     version_text(context_->driver().version));
}

std::optional<MemoryUse> CudaDevice::memory_use() const {
  const Result<ContextScope> scope = ContextScope::enter(*context_);
  size_t free = 0, total = 0;
  if (!scope || context_->driver().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return std::nullopt;
  return MemoryUse{total, total - free};
}

Result<> CudaDevice::set_aside_cache(size_t bytes) {
  if (most_cache_aside() == 0) return {};
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
  return context_->check(
      context_->driver().cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, std::min(bytes, most_cache_aside())),
      "setting a part of the L2 cache aside");
}

Result<> CudaDevice::check_target(std::string_view target) const {
  LATHE_ASSIGN(const Architecture* built, parse_target(target));
  // Exactly, unless it was built for others: what was chosen and measured for sm_80 may be slow, or want more shared
  // memory than there is, on sm_86, although its code would run.
  if (runs_code_of(*built, architecture_)) return {};
  return fail(ErrorCode::plan_target,
              "the plan is for '{}' ({}), and {} is a '{}' ({}, {}): build it with --target={}, or on this machine",
              target, built->family, name_, this->target(), context_->properties().name, architecture_.family,
              this->target());
}

HardwareProperties CudaDevice::hardware() const {
  const DeviceProperties& p = context_->properties();
  return {static_cast<uint32_t>(p.memory_bus_bits),
          static_cast<uint64_t>(p.l2_bytes),
          static_cast<uint32_t>(p.max_shared_bytes),
          static_cast<uint32_t>(p.core_shared_bytes),
          static_cast<uint32_t>(p.texture_alignment),
          static_cast<uint32_t>(p.multiprocessors),
          p.is_integrated};
}

Result<std::unique_ptr<Queue>> CudaDevice::make_stream_queue(void* stream) {
  LATHE_TRY(context_->usable());
  return Stream::borrow(context_, static_cast<CUstream>(stream));
}

Result<std::unique_ptr<Kernel>> CudaDevice::make_kernel(const StepRecord& record) {
  if (record.launches.empty())
    return fail(ErrorCode::plan_malformed, "the step's kernel '{}' is none of this library's CUDA kernels",
                record.kernel);
  return LaunchKernel::create(context_, code_->modules, code_->libraries, record);
}

Result<std::shared_ptr<Resident>> CudaDevice::load_resident(std::span<const std::byte> bytes,
                                                            std::shared_ptr<const void> owner) {
  LATHE_ASSIGN(DeviceMemory memory, allocate(bytes.size()));
  LATHE_ASSIGN(const std::unique_ptr<Stream> stream, Stream::create(context_));
  LATHE_TRY(cuda::upload(memory.data(), bytes.data(), bytes.size(), *stream));
  LATHE_TRY(stream->wait());
  return std::make_shared<Resident>(Resident{std::move(memory), std::move(owner)});
}

Result<std::shared_ptr<const std::byte>> CudaDevice::make_resident(std::span<const std::byte> bytes,
                                                                   std::shared_ptr<const void> owner) {
  LATHE_TRY(context_->usable());
  if (bytes.empty()) return std::shared_ptr<const std::byte>();
  const auto load = [&] { return load_resident(bytes, owner); };
  const ResidentKey key{owner.get(), bytes.data(), bytes.size()};
  LATHE_ASSIGN(const std::shared_ptr<Resident> resident, owner ? residents_.get(key, load) : load());
  return std::shared_ptr<const std::byte>(resident, resident->memory.data());
}

Result<std::unique_ptr<CapturedGraph>> CudaDevice::capture(const std::function<Result<>(Queue&)>& work) {
  if (!context_->driver().has_graphs()) return nullptr;
  return CudaGraph::capture(context_, work);
}

Result<std::unique_ptr<CapturedGraph>> CudaDevice::record(const std::function<Result<>(Queue&)>& work) {
  if (!context_->driver().has_graphs()) return nullptr;
  return CudaGraph::record(context_, work);
}

Result<std::shared_ptr<CudaDevice>> start_device(const Driver& driver, int ordinal) {
  LATHE_ASSIGN(const int count, count_devices(driver));
  if (count == 0) return fail(driver_error(CUDA_ERROR_NO_DEVICE, "looking for CUDA devices"));
  if (ordinal < 0 || ordinal >= count)
    return fail(ErrorCode::cuda_no_device, "there is no device cuda:{}: this process sees {}, cuda:0 to cuda:{}",
                ordinal, count, count - 1);
  LATHE_ASSIGN(const DeviceProperties properties, read_properties(driver, ordinal));
  Result<const Architecture*> architecture = find_architecture(properties.architecture());
  if (!architecture)
    return fail(with_context(std::move(architecture).error(), fmt::format("cuda:{} ({})", ordinal, properties.name)));
  LATHE_ASSIGN(std::shared_ptr<PrimaryContext> context, PrimaryContext::create(driver, properties));
  return std::make_shared<CudaDevice>(std::move(context), **architecture);
}

}  // namespace

Libraries& libraries_of(Device& device) { return static_cast<CudaDevice&>(device).libraries(); }

Result<std::shared_ptr<Device>> open_current_device() {
  LATHE_ASSIGN(const Driver* opened, driver());
  CUdevice current = -1, device = -1;
  if (opened->cuCtxGetDevice(&current) != CUDA_SUCCESS) return open_device(0);  // no context is current
  LATHE_ASSIGN(const int count, count_devices(*opened));
  for (int ordinal = 0; ordinal < count; ++ordinal)
    if (opened->cuDeviceGet(&device, ordinal) == CUDA_SUCCESS && device == current) return open_device(ordinal);
  return open_device(0);
}

Result<std::shared_ptr<Device>> open_device(int ordinal) {
  static NeverDestroyed<SharedTable<int, CudaDevice>> devices;  // for engines
  LATHE_ASSIGN(const Driver* opened, driver());
  LATHE_ASSIGN(std::shared_ptr<CudaDevice> device,
               (*devices).get(ordinal, [&] { return start_device(*opened, ordinal); }));
  LATHE_TRY(device->usable());
  return device;
}

}  // namespace lathe::cuda
