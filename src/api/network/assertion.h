// SPDX-License-Identifier: Apache-2.0
// IAssertionLayer: what an application promises of sizes.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

// Has no part in the graph: asserted() says what must hold of the graph's symbols, and the build and the runtime check
// it as they check what shape rules rely on. So the condition has to be a shape tensor, whose elements come from sizes
// alone.
class AssertionLayer final : public LayerOf<nv::IAssertionLayer, nv::apiv::VAssertionLayer> {
 public:
  AssertionLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, const char* message)
      : LayerOf(network, nv::LayerType::kASSERTION, "Assertion", std::move(inputs)), message_(message) {}

  void setMessage(const char* message) noexcept override;
  const char* getMessage() const noexcept override { return message_.c_str(); }

  Result<std::vector<Constraint>> asserted() const override;

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  size_t num_outputs() const override { return 0; }

  std::string message_;
};

}  // namespace lathe::api
