// SPDX-License-Identifier: Apache-2.0
// What layers of several ops ask of their inputs' types.
#pragma once

#include "ir/graph.h"

namespace lathe::api {

inline Result<> check_integers(const ir::Value* value, const char* what) {
  if (value->dtype() == DType::i32 || value->dtype() == DType::i64) return {};
  return fail(ErrorCode::type_mismatch, "{} are INT32 or INT64, but '{}' is {}", what, value->name(),
              name_of(value->dtype()));
}

inline Result<> check_floats(const ir::Value* value) {
  if (is_floating(value->dtype())) return {};
  return fail(ErrorCode::type_mismatch, "'{}' is {}, but a floating-point type is needed", value->name(),
              name_of(value->dtype()));
}

inline Result<> check_same_type(const ir::Value* value, const ir::Value* like) {
  if (value->dtype() == like->dtype()) return {};
  return fail(ErrorCode::type_mismatch, "'{}' is {}, but must be {} as '{}' is", value->name(), name_of(value->dtype()),
              name_of(like->dtype()), like->name());
}

}  // namespace lathe::api
