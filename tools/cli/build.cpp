// SPDX-License-Identifier: Apache-2.0
// lathe build
#include <fmt/core.h>

#include <filesystem>
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
  build_file(command.model, request, command.output, logger);
  fmt::print("{}: {}, built in {:.1f} s\n", command.output,
             human_bytes(static_cast<double>(std::filesystem::file_size(command.output))), seconds_since(start));
  fmt::print("{}\n", evaluated_text(nlohmann::json::parse(report)["evaluated_share"].get<double>()));
  return 0;
}

}  // namespace lathe::cli
