// SPDX-License-Identifier: Apache-2.0
// Plans of several targets; see lathe.h.
#include "api/host_memory.h"
#include "api/own_settings.h"
#include "api/sharing.h"
#include "lathe.h"
#include "plan/variants.h"

namespace lathe {

namespace nv = nvinfer1;

nv::IHostMemory* mergePlans(const void* const* plans, const std::size_t* sizes, int32_t nbPlans) noexcept {
  return mergePlans(plans, sizes, nbPlans, VariantWeights::kDERIVED);
}

nv::IHostMemory* mergePlans(const void* const* plans, const std::size_t* sizes, int32_t nbPlans,
                            VariantWeights weights) noexcept {
  return api::guarded(api::silent(), "lathe::mergePlans", static_cast<nv::IHostMemory*>(nullptr),
                      [&]() -> Result<nv::IHostMemory*> {
                        if (!plans || !sizes || nbPlans < 1)
                          return fail(ErrorCode::invalid_argument, "there is no plan to merge");
                        LATHE_ASSIGN(const plan::Sharing sharing, api::sharing_of(weights));
                        std::vector<std::span<const std::byte>> all;
                        for (int32_t i = 0; i < nbPlans; ++i) {
                          if (!plans[i]) return fail(ErrorCode::invalid_argument, "plan {} is null", i);
                          all.emplace_back(static_cast<const std::byte*>(plans[i]), sizes[i]);
                        }
                        LATHE_ASSIGN(std::vector<std::byte> merged, plan::merge_plans(all, sharing));
                        return new api::HostMemory(std::move(merged));
                      });
}

}  // namespace lathe
