// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace lathe {

// The file that this code was loaded from: the library, or a program that is linked statically.
std::filesystem::path own_file();

// The file that the function or constant at this address was loaded from; empty where it is from none.
std::filesystem::path file_of(const void* address);

}  // namespace lathe
