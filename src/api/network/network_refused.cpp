// SPDX-License-Identifier: Apache-2.0
// Layer kinds for which the graph has no ops yet: each call gives null and one report.
#include "api/network/network_add.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // plugins of the V2 family

namespace lathe::api {

nv::IPluginV2Layer* NetworkDefinition::addPluginV2(nv::ITensor* const*, int32_t, nv::IPluginV2&) noexcept {
  return refuse<nv::IPluginV2Layer>("INetworkDefinition::addPluginV2", "plugin");
}

nv::IAssertionLayer* NetworkDefinition::addAssertion(nv::ITensor&, const char*) noexcept {
  return refuse<nv::IAssertionLayer>("INetworkDefinition::addAssertion", "assertion");
}

nv::IDynamicQuantizeLayer* NetworkDefinition::addDynamicQuantize(nv::ITensor&, int32_t, int32_t, nv::DataType,
                                                                 nv::DataType) noexcept {
  return refuse<nv::IDynamicQuantizeLayer>("INetworkDefinition::addDynamicQuantize", "dynamic quantize");
}

nv::IDynamicQuantizeLayer* NetworkDefinition::addDynamicQuantizeV2(nv::ITensor&, const nv::Dims&, nv::DataType,
                                                                   nv::DataType) noexcept {
  return refuse<nv::IDynamicQuantizeLayer>("INetworkDefinition::addDynamicQuantizeV2", "dynamic quantize");
}

nv::IAttention* NetworkDefinition::addAttention(nv::ITensor&, nv::ITensor&, nv::ITensor&, nv::AttentionNormalizationOp,
                                                bool) noexcept {
  return refuse<nv::IAttention>("INetworkDefinition::addAttention", "attention");
}

nv::IAttention* NetworkDefinition::addAttentionV2(nv::ITensor&, nv::ITensor&, nv::ITensor&,
                                                  nv::AttentionNormalizationOp, nv::CausalMaskKind) noexcept {
  return refuse<nv::IAttention>("INetworkDefinition::addAttentionV2", "attention");
}

nv::IKVCacheUpdateLayer* NetworkDefinition::addKVCacheUpdate(nv::ITensor&, nv::ITensor&, nv::ITensor&,
                                                             nv::KVCacheMode) noexcept {
  return refuse<nv::IKVCacheUpdateLayer>("INetworkDefinition::addKVCacheUpdate", "KV cache update");
}

nv::IMoELayer* NetworkDefinition::addMoE(nv::ITensor&, nv::ITensor&, nv::ITensor&) noexcept {
  return refuse<nv::IMoELayer>("INetworkDefinition::addMoE", "mixture-of-experts");
}

nv::IDistCollectiveLayer* NetworkDefinition::addDistCollective(nv::ITensor&, nv::CollectiveOperation,
                                                               nv::ReduceOperation, int64_t, int64_t*,
                                                               int64_t) noexcept {
  return guarded(entry(), "INetworkDefinition::addDistCollective", static_cast<nv::IDistCollectiveLayer*>(nullptr),
                 []() -> Result<nv::IDistCollectiveLayer*> {
                   return fail(ErrorCode::op_unsupported,
                               "collective layers exchange data between several GPUs, and engines run on one; build a "
                               "network without them for each GPU and exchange the outputs in the application");
                 });
}

}  // namespace lathe::api
