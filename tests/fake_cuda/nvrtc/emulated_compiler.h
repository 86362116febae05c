// SPDX-License-Identifier: Apache-2.0
// Compiles device code for the emulator with the host's compiler, and many kernels at once with Clang where there is
// one, into a shared object that is linked to the emulator. Objects are kept in the build tree under a hash of all that
// they are made of.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace emulator {

struct Compiled {
  bool ok = false;
  std::string log;
  std::vector<char> object;  // an ELF shared object that holds lathe_kernel
};

// `headers`: text by the name that sources include. Thread-safe.
Compiled compile(const std::string& source, const std::map<std::string, std::string>& headers);

// Many kernels compiled as one text, which takes a fraction of the time that each would. Result i has as its object the
// line "<path of a shared object> <suffix>": kernel i is there under the name lathe_kernel<suffix>. Fails as a whole.
std::vector<Compiled> compile_together(const std::vector<std::string>& sources,
                                       const std::map<std::string, std::string>& headers);

}  // namespace emulator
