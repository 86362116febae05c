// SPDX-License-Identifier: Apache-2.0
// Sanitizers take memory of their own and handle signals, which tests of either must know.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
