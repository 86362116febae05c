// SPDX-License-Identifier: Apache-2.0
// Which version a library is of, and with LATHE_GENERATION which generation of the interface it has: readable without
// running it. Data alone, so that libraries without code can have it.
#include "base/library_note.h"

namespace lathe {
namespace {

constexpr Version kVersion LATHE_VERSION;

[[gnu::used, gnu::section(".note.lathe"), gnu::aligned(4)]] const LibraryNote kNote = {
    .version = {kVersion.major, kVersion.minor, kVersion.patch, kVersion.build},
    .generation = LATHE_GENERATION,
    .interface_level = kInterfaceLevel};

}  // namespace
}  // namespace lathe
