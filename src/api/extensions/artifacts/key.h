// SPDX-License-Identifier: Apache-2.0
// All that an artifact depends on, and what of it has changed.
#pragma once

#include "api/extensions/artifacts/request.h"

namespace lathe::api::artifacts {

// An object; what is not known, or does not matter for the device, is null. Fails where the model or a plugin cannot be
// read.
Result<nlohmann::json> key_of(const ArtifactRequest& request);

// [{"part", "then", "now"}]: where two keys differ; empty where they do not.
nlohmann::json differences(const nlohmann::json& then, const nlohmann::json& now);

}  // namespace lathe::api::artifacts
