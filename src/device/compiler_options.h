// SPDX-License-Identifier: Apache-2.0
// How device code is compiled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"

namespace lathe {

struct CompilerOptions {
  // The path of lathe-compiler; "": compile in this process. Unset: the environment variable LATHE_COMPILER has the
  // path or is empty likewise; where it is not set either, the program is looked for beside the library.
  std::optional<std::string> program;
  std::vector<std::string> nvrtc;  // where NVRTC is looked for; empty: nvrtc_names()
  // The limit of one kernel, both on processor time and on wall time in which the worker uses no processor time.
  double seconds = 60;
  size_t memory = size_t{4} << 30;  // bytes, the limit of each worker's data (RLIMIT_DATA)
  bool in_process = true;           // this process compiles where no other can be started
  size_t workers = 0;               // the most at one time; 0: as many as there are cores
  bool keeps_code = true;           // a cache on disk is read and written
  Log* log = nullptr;               // gets the warning that this process compiles; not owned, outlives the compiler
};

}  // namespace lathe
