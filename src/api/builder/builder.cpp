// SPDX-License-Identifier: Apache-2.0
#include "api/builder/builder.h"

#include "api/builder/builder_config.h"
#include "api/callback.h"
#include "api/host_memory.h"
#include "api/living_products.h"
#include "api/network/network.h"

namespace lathe::api {

Builder::~Builder() noexcept {
  nv::IBuilder* self = this;
  // Networks have a builder of their own, which stands in for one that is deleted.
  if (core_->builder.compare_exchange_strong(self, nullptr))
    warn_of_living_products(*core_->reporter, "IBuilder", core_.use_count() > 1);
}

nv::IBuilderConfig* Builder::createBuilderConfig() noexcept {
  return guarded(core_->entry(), "IBuilder::createBuilderConfig", static_cast<nv::IBuilderConfig*>(nullptr),
                 [&]() -> Result<nv::IBuilderConfig*> { return new BuilderConfig(core_); });
}

nv::INetworkDefinition* Builder::createNetworkV2(nv::NetworkDefinitionCreationFlags flags) noexcept {
  return guarded(core_->entry(), "IBuilder::createNetworkV2", static_cast<nv::INetworkDefinition*>(nullptr),
                 [&]() -> Result<nv::INetworkDefinition*> {
                   LATHE_TRY(core_->notices.consult_flags<nv::NetworkDefinitionCreationFlag>(flags, 0, log()));
                   return new NetworkDefinition(core_, flags, std::make_unique<Builder>(core_));
                 });
}

nv::IOptimizationProfile* Builder::createOptimizationProfile() noexcept {
  return guarded(core_->entry(), "IBuilder::createOptimizationProfile", static_cast<nv::IOptimizationProfile*>(nullptr),
                 [&]() -> Result<nv::IOptimizationProfile*> {
                   core_->profiles.push_back(std::make_unique<OptimizationProfile>(core_->reporter));
                   return core_->profiles.back().get();
                 });
}

void Builder::setGpuAllocator(nv::IGpuAllocator* allocator) noexcept {
  guarded(core_->entry(), "IBuilder::setGpuAllocator", [&]() -> Result<> {
    if (allocator) LATHE_TRY(core_->notices.consult(SettingId::IBuilder_setGpuAllocator, log()));
    core_->allocator = allocator;
    return {};
  });
}

void Builder::reset() noexcept {
  core_->allocator = nullptr;
  core_->max_threads = allowed_cpus();
  core_->reporter->set_recorder(nullptr);
}

bool Builder::setMaxThreads(int32_t maxThreads) noexcept {
  return guarded(core_->entry(), "IBuilder::setMaxThreads", [&]() -> Result<> {
    if (maxThreads < 1) return fail(ErrorCode::invalid_argument, "{} threads; at least 1 is needed", maxThreads);
    core_->max_threads = maxThreads;
    return {};
  });
}

bool Builder::isNetworkSupported(const nv::INetworkDefinition& network, const nv::IBuilderConfig&) const noexcept {
  auto& definition = const_cast<NetworkDefinition&>(static_cast<const NetworkDefinition&>(network));
  return guarded(definition.entry(), "IBuilder::isNetworkSupported",
                 [&]() -> Result<> { return definition.resolve_all(); });
}

nv::IHostMemory* Builder::buildSerializedNetwork(nv::INetworkDefinition& network, nv::IBuilderConfig& config) noexcept {
  const auto& reporter = static_cast<NetworkDefinition&>(network).reporter();
  return guarded(reporter, "IBuilder::buildSerializedNetwork", static_cast<nv::IHostMemory*>(nullptr),
                 [&]() -> Result<nv::IHostMemory*> {
                   LATHE_ASSIGN(auto bytes, build(network, config));
                   return new HostMemory(std::move(bytes));
                 });
}

bool Builder::buildSerializedNetworkToStream(nv::INetworkDefinition& network, nv::IBuilderConfig& config,
                                             nv::IStreamWriter& writer) noexcept {
  const auto& reporter = static_cast<NetworkDefinition&>(network).reporter();
  return guarded(reporter, "IBuilder::buildSerializedNetworkToStream", [&]() -> Result<> {
    LATHE_ASSIGN(const auto bytes, build(network, config));
    const auto size = static_cast<int64_t>(bytes.size());
    LATHE_ASSIGN(const int64_t written, call_application("IStreamWriter::write", ErrorCode::file_read,
                                                         [&] { return writer.write(bytes.data(), size); }));
    if (written != size) return fail(ErrorCode::file_read, "the stream took {} of {} bytes of the plan", written, size);
    return {};
  });
}

nv::IHostMemory* Builder::buildSerializedNetworkWithKernelText(nv::INetworkDefinition& network,
                                                               nv::IBuilderConfig& config,
                                                               nv::IHostMemory*& kernelText) noexcept {
  kernelText = nullptr;
  return buildSerializedNetwork(network, config);
}

}  // namespace lathe::api
