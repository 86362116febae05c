// SPDX-License-Identifier: Apache-2.0
#include "api/exclusive.h"

namespace lathe::api {

tl::unexpected<Error> Exclusive::Turn::refusal() const {
  if (is_mine_)
    return fail(ErrorCode::invalid_state,
                "the call comes from a callback of a running call on the same {}, which it would disturb: make it "
                "when that call has returned",
                use_.what_);
  return fail(ErrorCode::invalid_state,
              "this {} is in use by another thread, whose call goes on: let each thread have its own, or take turns",
              use_.what_);
}

}  // namespace lathe::api
