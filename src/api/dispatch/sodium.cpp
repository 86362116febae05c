// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

// What libsodium calls where it is misused. Its own stands beside the choice of an implementation for each of its functions,
// and would bring all of them into the library; here digests are computed, by the plainest.
extern "C" [[noreturn]] void sodium_misuse() { std::abort(); }
