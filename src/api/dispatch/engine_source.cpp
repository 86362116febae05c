// SPDX-License-Identifier: Apache-2.0
// Engines are made by the runtime library that is installed beside this one: liblathe_dispatch.so has none of its own.
#include "api/guest/installed.h"
#include "api/runtime/runtime.h"

namespace lathe::api {

Result<nv::ICudaEngine*> load_engine(Runtime& runtime, std::span<const std::byte> bytes, std::shared_ptr<const void>) {
  LATHE_ASSIGN(const std::string path, guest::installed_lean());
  LATHE_ASSIGN(std::shared_ptr<const guest::Library> library, guest::Library::open(path));
  return runtime.load_by(std::move(library), bytes);
}

}  // namespace lathe::api
