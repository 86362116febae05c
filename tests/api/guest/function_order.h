// SPDX-License-Identifier: Apache-2.0
// Whether the lists of src/api/guest/functions.h have the order of the tables, for tests in either generation.
#pragma once

#include <string>
#include <vector>

#include "NvInferRuntime.h"
#include "api/guest/functions.h"
#include "api/guest/table.h"

namespace lathe::api::guest {

namespace nv = nvinfer1;

template <class V, class R, class... Args>
size_t place_of(R (V::*method)(Args...) noexcept) {
  return guest::slot_of(method);
}
template <class V, class R, class... Args>
size_t place_of(R (V::*method)(Args...) const noexcept) {
  return guest::slot_of(method);
}
// Of two functions of this name, the one that both generations have.
inline size_t place_of(nv::ICudaEngine* (nv::apiv::VRuntime::*method)(const void*, std::size_t) noexcept) {
  return guest::slot_of(method);
}

// The names of functions that are elsewhere, and of tables that have more or fewer.
inline std::vector<std::string> misplaced_functions() {
  std::vector<std::string> wrong;
#define LATHE_BOTH(name) \
  if (place_of(&V::name) != slot++) wrong.emplace_back(#name);
#if NV_TENSORRT_MAJOR < 11
#define LATHE_ONLY_10(name) ++slot;
#else
#define LATHE_ONLY_10(name)
#endif
#define LATHE_GUEST_OBJECT(I, TABLE)                       \
  {                                                        \
    using V = nv::apiv::TABLE;                             \
    size_t slot = kDeleteSlot + 1;                         \
    LATHE_FUNCTIONS_OF_##TABLE(LATHE_BOTH, LATHE_ONLY_10); \
    if (slots_of<V>() != slot) wrong.emplace_back(#TABLE); \
  }
#include "api/guest/objects.def"
#undef LATHE_GUEST_OBJECT
#undef LATHE_BOTH
#undef LATHE_ONLY_10
  return wrong;
}

}  // namespace lathe::api::guest
