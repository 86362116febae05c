// SPDX-License-Identifier: Apache-2.0
// Whether a plan's sections are what its header says.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "plan/content_sums.h"
#include "plan/header.h"

namespace lathe::plan {

// `content` is to be that of the section. So many threads look at its pieces; 0 = as many as may.
Result<> check_content(std::span<const std::byte> content, const Section& section, ContentCheck check, int threads = 0);

// Gaps, which are zero, and the sections; weights by a check of their own, by so many threads. `plan` starts at the
// header.
struct SectionChecks {
  ContentCheck weights = ContentCheck::checksum, others = ContentCheck::checksum;
};
Result<> check_sections(std::span<const std::byte> plan, const PlanHeader& header, SectionChecks checks,
                        int threads = 0);

}  // namespace lathe::plan
