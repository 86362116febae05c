// SPDX-License-Identifier: Apache-2.0
// Changes of plans that are written already: who may read them, and what they hold besides. A signature is of the plan
// as it was, and is taken out.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lathe::plan {

// From now on later versions read the plan, too.
Result<> make_version_compatible(std::vector<std::byte>& plan);

// Adds a section of a name that the format knows, behind the others; replaces one that is there.
Result<> put_section(std::vector<std::byte>& plan, std::string_view name, std::span<const std::byte> content);

// Without the section, which need not be there.
Result<> remove_section(std::vector<std::byte>& plan, std::string_view name);

}  // namespace lathe::plan
