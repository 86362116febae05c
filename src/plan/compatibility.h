// SPDX-License-Identifier: Apache-2.0
// Which versions read which plans: docs/compatibility.md.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "base/version.h"
#include "plan/header.h"

namespace lathe::plan {

// Whether a library of this version, which reads these formats of records, reads the plan without help. The message
// names both versions and says what to do.
Result<> check_version(const PlanHeader& header, const Version& own, const FormatRange& records = record_formats());

// Whether the runtime that the plan was built with may be asked instead: one that the plan holds, or that
// IRuntime::loadRuntime() loads. Fails for plans of newer versions and for plans of one version alone.
Result<> check_other_runtime(const PlanHeader& header, const Version& own);

// Whether the plan has sections of trust class host code.
bool holds_host_code(const PlanHeader& header);

// The content of such a section, whose digest is checked: a checksum detects corruption, not tampering.
Result<std::span<const std::byte>> host_code(std::span<const std::byte> plan, const PlanHeader& header,
                                             const Section& section);

}  // namespace lathe::plan
