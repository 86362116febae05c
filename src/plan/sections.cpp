// SPDX-License-Identifier: Apache-2.0
#include "plan/sections.h"

#include <algorithm>

#include "base/processors.h"

namespace lathe::plan {

Result<> check_content(std::span<const std::byte> content, const Section& section, ContentCheck check, int threads) {
  if (check == ContentCheck::none) return {};
  const ContentSums sums =
      sums_of(content, section.in_pieces, check, threads > 0 || !section.in_pieces ? threads : allowed_cpus());
  if (sums.checksum == section.checksum && (check == ContentCheck::checksum || sums.digest == section.digest))
    return {};
  return fail(ErrorCode::plan_digest,
              "the plan's {} are damaged: their digest does not match; copy or build the plan again", section.name);
}

Result<> check_sections(std::span<const std::byte> plan, const PlanHeader& header, SectionChecks checks, int threads) {
  uint64_t end = kHeaderBytes;
  for (const Section& section : header.sections) {
    if (section.detached) continue;
    const auto gap = plan.subspan(end, section.offset - end);
    if (std::any_of(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; }))
      return fail(ErrorCode::plan_malformed, "the plan is damaged: the gap before its {} is not zero", section.name);
    end = section.offset + section.bytes;
    LATHE_TRY(check_content(plan.subspan(section.offset, section.bytes), section,
                            section.name == kWeights ? checks.weights : checks.others, threads));
  }
  return {};
}

}  // namespace lathe::plan
