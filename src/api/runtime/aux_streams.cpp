// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/aux_streams.h"

#include <algorithm>

namespace lathe::api {

Result<> set_aux_streams(Context& context, const cudaStream_t* streams, int32_t count) {
  if (count < 0 || (count > 0 && !streams))
    return fail(ErrorCode::invalid_argument, "{} streams, or they are null", count);
  std::vector<void*> checked;
  for (int32_t i = 0; i < count; ++i) {
    if (!streams[i])
      return fail(ErrorCode::invalid_argument,
                  "auxiliary stream {} is the default stream, which other streams wait for: make one", i);
    if (std::find(checked.begin(), checked.end(), streams[i]) != checked.end())
      return fail(ErrorCode::invalid_argument, "auxiliary stream {} is also one of those before it: make another", i);
    checked.push_back(streams[i]);
  }
  context.set_auxiliary_streams(std::move(checked));
  return {};
}

}  // namespace lathe::api
