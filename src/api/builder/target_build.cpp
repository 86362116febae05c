// SPDX-License-Identifier: Apache-2.0
#include "api/builder/target_build.h"

namespace lathe::api {

Result<> TargetBuild::prepare(std::string_view target, int cpu_threads, BuildOptions& options, LibrarySources sources,
                              const CompilerOptions& compiler) {
  const Backend* backend = find_backend(target);
  if (!backend) return fail(ErrorCode::config_invalid, "target '{}' is not known; see setTarget() in lathe.h", target);
  LATHE_ASSIGN(build_, backend->prepare(target, {cpu_threads, sources, compiler}));
  use_backend(build_, options);
  return {};
}

}  // namespace lathe::api
