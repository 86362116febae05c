// SPDX-License-Identifier: Apache-2.0
// Masks of windows, of attention whose batch is the windows of all images.
#pragma once

#include "passes/attention_scores.h"
#include "passes/rewrite.h"

namespace lathe {

// Of a sum of the masks of an image's windows, repeated for each image, and of what is the same for all windows: the
// repeated sum. It is made once, of constants before the network runs.
ir::Value* with_repeated_last(Rewrite& r, ir::Value* sum);

}  // namespace lathe
