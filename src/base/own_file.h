// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace lathe {

// The file that this code was loaded from: the library, or a program that is linked statically.
std::filesystem::path own_file();

}  // namespace lathe
