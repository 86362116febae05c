// SPDX-License-Identifier: Apache-2.0
// Several kernels in one launch: the blocks of each are a row of the grid, or one block runs them in turn.
#pragma once

#include <span>

#include "tuning/backend.h"

namespace lathe::cuda {

// At once: launches of which none reads what another writes. In turn: each of one block at most, in their order.
// nullopt where they cannot be one: blocks of different sizes that run at once, in clusters or rows of their own, with
// tensor maps, or too many arguments; and where it is no gain, because their kernels are no short ones.
std::optional<SourceLaunch> joined_launch(std::span<const SourceLaunch> parts, JoinedParts how);

// Folders of device headers whose kernels are short; all of them may be in one source.
std::span<const std::string_view> joined_folders();

}  // namespace lathe::cuda
