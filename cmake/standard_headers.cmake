# Headers that most sources include, precompiled: they are half of what a source costs to compile. Sources include what
# they use all the same: lint compiles each without this.
set(LATHE_STANDARD_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdint> <cstring> <functional> <map>
    <memory> <mutex> <numeric> <optional> <random> <set> <span> <string> <string_view> <unordered_map> <unordered_set>
    <utility> <variant> <vector> <fmt/format.h> <tl/expected.hpp>)
