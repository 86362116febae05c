// SPDX-License-Identifier: Apache-2.0
// lathe tune
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "failure.h"
#include "session.h"

namespace lathe::cli {

int tune(const TuneCommand& command) {
  ConsoleLogger logger(command.settings.least_severity());
  std::string report;
  BuildRequest request{&command.settings, {}, true, &report};
  request.shapes = parse_ranges(command.settings.min_shapes, command.settings.opt_shapes, command.settings.max_shapes);
  request.merged_caches = command.caches;
  check_writable(command.settings.timing_cache);
  (void)build_plan(command.model, request, logger);
  const auto told = nlohmann::json::parse(report);
  const int measured = told["measured"].get<int>(), known = told["from_cache"].get<int>();
  if (measured + known == 0)
    throw Failure(
        "nothing was measured: the target's device is not here, the build budget is 0, or no step has a choice");
  fmt::print("{}: {} measured for {}, {} known before\n", command.settings.timing_cache, measured,
             told["target"].get<std::string>(), known);
  return 0;
}

}  // namespace lathe::cli
