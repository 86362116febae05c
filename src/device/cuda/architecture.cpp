// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/architecture.h"

#include <charconv>

namespace lathe::cuda {
namespace {

constexpr Architecture kArchitectures[] = {
#define LATHE_CUDA_ARCHITECTURE(number, code, family, shared, cluster, warpgroups, multiprocessors) \
  {number, code, family, {int64_t{shared} << 10, cluster, warpgroups}, multiprocessors},
#include "device/cuda/architectures.def"
#undef LATHE_CUDA_ARCHITECTURE
};

constexpr std::string_view kPrefix = "cuda-sm_";

std::string known() {
  std::string text;
  for (const Architecture& architecture : kArchitectures)
    text += fmt::format("{}sm_{}", text.empty() ? "" : " ", architecture.number);
  return text;
}

}  // namespace

Result<const Architecture*> find_architecture(int number) {
  for (const Architecture& architecture : kArchitectures)
    if (architecture.number == number) return &architecture;
  return fail(ErrorCode::cuda_architecture_unsupported,
              "GPU architecture sm_{} is {}; this version of Lathe knows {}: {}", number,
              number < kArchitectures[0].number ? "too old" : "not known", known(),
              number < kArchitectures[0].number ? "use a newer GPU, or the CPU" : "install a newer version of Lathe");
}

Result<const Architecture*> parse_target(std::string_view target) {
  int number = 0;
  if (target.starts_with(kPrefix)) {
    const char* end = target.data() + target.size();
    const auto [rest, problem] = std::from_chars(target.data() + kPrefix.size(), end, number);
    if (problem == std::errc() && rest == end) return find_architecture(number);
  }
  return fail(ErrorCode::invalid_argument, "'{}' is no CUDA target: they read {}80, {}90...", target, kPrefix, kPrefix);
}

std::string target_name(const Architecture& architecture) { return fmt::format("{}{}", kPrefix, architecture.number); }

}  // namespace lathe::cuda
