// SPDX-License-Identifier: Apache-2.0
// lathe build
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "failure.h"
#include "session.h"

namespace lathe::cli {

int build(const BuildCommand& command) {
  ConsoleLogger logger(command.settings.least_severity());
  std::string report;
  BuildRequest request{&command.settings, {}, true, &report};
  request.shapes = parse_ranges(command.settings.min_shapes, command.settings.opt_shapes, command.settings.max_shapes);
  check_writable(command.output);  // rather than when an hour of measuring is over
  const auto start = Clock::now();
  const Plan plan = build_plan(command.model, request, logger);
  write_file(command.output, text_of(*plan));
  fmt::print("{}: {}, built in {:.1f} s\n", command.output, human_bytes(static_cast<double>(plan->size())),
             seconds_since(start));
  fmt::print("{}\n", evaluated_text(nlohmann::json::parse(report)["evaluated_share"].get<double>()));
  return 0;
}

}  // namespace lathe::cli
