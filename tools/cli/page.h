// SPDX-License-Identifier: Apache-2.0
// `lathe inspect --html`: an engine as one page, which loads nothing else and also works without scripts.
#pragma once

#include <string>

#include "engine_report.h"

namespace lathe::cli {

// Of describe_engine().
std::string page_of(const Json& engine);

}  // namespace lathe::cli
