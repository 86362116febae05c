// SPDX-License-Identifier: Apache-2.0
// A file that device code includes, held in memory.
#pragma once

namespace lathe::cuda {

struct SourceHeader {
  const char* name;  // as sources include it: "lib/types.cuh"
  const char* text;
};

}  // namespace lathe::cuda
