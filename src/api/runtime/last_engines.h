// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace lathe::api {

// Contexts of the process, by the names of their engines, that were given work last: a fault of a device shows in
// whatever is asked next, and may be of another one's work. Thread-safe.

// A number for each context, for the next function.
uint64_t new_context_number();
// To be called before work is given to a context; takes a lock only where it is another one than last time.
void note_work(uint64_t context, const std::string& engine);
// An error of a device that is lost names them; others stay as they are.
Error with_last_engines(Error error);

}  // namespace lathe::api
