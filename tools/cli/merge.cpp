// SPDX-License-Identifier: Apache-2.0
// lathe merge
#include <fmt/core.h>

#include "failure.h"
#include "session.h"

namespace lathe::cli {

int merge(const MergeCommand& command) {
  std::vector<std::string> contents;
  for (const std::string& file : command.files) contents.push_back(read_file(file));
  std::vector<const void*> plans;
  std::vector<size_t> sizes;
  double bytes = 0;
  for (const std::string& content : contents) {
    plans.push_back(content.data());
    sizes.push_back(content.size());
    bytes += static_cast<double>(content.size());
  }
  const Plan merged(mergePlans(plans.data(), sizes.data(), static_cast<int32_t>(plans.size()),
                               command.stores_weights ? VariantWeights::kSTORED : VariantWeights::kDERIVED));
  if (!merged) throw Failure(lastError());
  write_file(command.output, text_of(*merged));
  fmt::print("{}: {}, of {} in {} engines\n", command.output, human_bytes(static_cast<double>(merged->size())),
             human_bytes(bytes), plans.size());
  return 0;
}

}  // namespace lathe::cli
