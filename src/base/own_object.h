// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <typeinfo>

#include "base/result.h"

namespace lathe {

// Whether it is of this library's class T. Two libraries have the same name for such a type, never the same place.
template <class T, class I>
bool is_own(I& object) {
  return &typeid(object) == &typeid(T);
}

// The object as this library's class T, if this library has made it: one of another version, or of another copy, may be
// laid out differently. Two libraries have the same name for such a type, never the same place.
template <class T, class I>
Result<T*> own_object(I& object) {
  if (is_own<T>(object)) return static_cast<T*>(&object);
  return fail(ErrorCode::invalid_argument,
              "the object was made by a runtime of another version, or of another library");
}

}  // namespace lathe
