# Headers that most sources include, precompiled: they are half of what a source costs to compile. Sources include what
# they use all the same.
set(LATHE_STANDARD_HEADERS <algorithm> <array> <charconv> <cmath> <cstdint> <cstring> <functional> <map>
    <memory> <numeric> <optional> <set> <span> <string> <string_view> <unordered_map> <unordered_set>
    <utility> <variant> <vector> <fmt/core.h> <tl/expected.hpp>)
# The same for tests, which draw random numbers and measure time as well.
set(LATHE_TEST_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdint> <cstring> <functional> <map>
    <memory> <mutex> <numeric> <optional> <random> <set> <span> <string> <string_view> <unordered_map> <unordered_set>
    <utility> <variant> <vector> <fmt/format.h> <tl/expected.hpp> <gtest/gtest.h>)
