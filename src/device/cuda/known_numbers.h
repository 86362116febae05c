// SPDX-License-Identifier: Apache-2.0
// Source of a kernel whose numbers are known before it is compiled.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "device/launch.h"

namespace lathe::cuda {

// The text, in which those parameters of `launch`'s kernel that are numbers have these values, in order, whatever they
// are given: so loops have known lengths, and divisions known divisors. Fails where the text has no such kernel.
Result<std::string> with_known_numbers(std::string text, const Launch& launch, std::span<const int64_t> numbers);

}  // namespace lathe::cuda
