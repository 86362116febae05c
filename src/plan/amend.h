// SPDX-License-Identifier: Apache-2.0
// Who may read plans, and what they hold besides; changes of plans that are written already, too. A signature is of the
// plan as it was, and is taken out.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "plan/header.h"

namespace lathe::plan {

// From now on later versions read the plan, too.
Result<> make_version_compatible(std::vector<std::byte>& plan);

// Says on which GPUs the plan runs, and on what it was tuned.
Result<> set_hardware(std::vector<std::byte>& plan, HardwareCompatibility compatibility,
                      const HardwareProperties& tuned_on);

// Adds a section of a name that the format knows, behind the others; replaces one that is there.
Result<> put_section(std::vector<std::byte>& plan, std::string_view name, std::span<const std::byte> content);

// Without the section, which need not be there.
Result<> remove_section(std::vector<std::byte>& plan, std::string_view name);

// What was amended of a plan, for one that is written anew of what it held.
struct Amendments {
  Compatibility compatibility = Compatibility::same_version;
  uint32_t record_format = 0;
  HardwareCompatibility hardware_compatibility = HardwareCompatibility::none;
  HardwareProperties hardware = {};
  std::vector<std::pair<std::string, std::vector<std::byte>>> sections;  // of code for the host
};
// The runtime within a plan is left out unless it is of this version, whose plan the new one is.
Result<Amendments> read_amendments(std::span<const std::byte> plan);
// All but the sections, which are not added.
void apply(const Amendments& amendments, PlanHeader& header);

}  // namespace lathe::plan
