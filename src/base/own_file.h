// SPDX-License-Identifier: Apache-2.0
// What lies where this code does. Throws bad_alloc only; paths of the standard library end a program that has no memory
// for them.
#pragma once

#include <span>
#include <string>

namespace lathe {

// The folder of the file that this code was loaded from: the library, or a program that is linked statically.
std::string own_folder();

// The file that the function or constant at this address was loaded from; empty where it is from none.
std::string file_of(const void* address);

// The first of these folders, which are relative to own_folder(), in which the file may be used so (R_OK, X_OK): the
// file's path; empty = none.
std::string find_near(std::span<const char* const> folders, const char* name, int use);

}  // namespace lathe
