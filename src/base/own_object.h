// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <typeinfo>

#include "base/result.h"

namespace lathe {

// The object as this library's class T, if this library has made it: one of another version, or of another copy, may be
// laid out differently. Two libraries have the same name for such a type, never the same place.
template <class T, class I>
Result<T*> own_object(I& object) {
  if (&typeid(object) == &typeid(T)) return static_cast<T*>(&object);
  return fail(ErrorCode::invalid_argument,
              "the object was made by a runtime of another version, or of another library");
}

}  // namespace lathe
