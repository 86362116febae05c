// SPDX-License-Identifier: Apache-2.0
// All that an artifact depends on, and what of it has changed.
#pragma once

#include "api/extensions/artifacts/request.h"

namespace lathe::api::artifacts {

// An object; what is not known, or does not matter for the device, is null. Fails where the model or a plugin cannot be
// read.
Result<JsonValue> key_of(const ArtifactRequest& request);

struct Difference {
  std::string part;
  JsonValue then, now;
};

// Where two keys differ; empty where they do not.
std::vector<Difference> differences(const JsonValue& then, const JsonValue& now);

}  // namespace lathe::api::artifacts
