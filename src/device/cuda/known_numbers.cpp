// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/known_numbers.h"

#include <vector>

namespace lathe::cuda {
namespace {

// The names in a list of parameters: what stands last before each comma.
std::vector<std::string_view> names_of(std::string_view parameters) {
  std::vector<std::string_view> names;
  while (!parameters.empty()) {
    const std::string_view one = parameters.substr(0, parameters.find(','));
    parameters.remove_prefix(std::min(one.size() + 1, parameters.size()));
    const size_t last = one.find_last_not_of(" \n");
    const std::string_view trimmed = one.substr(0, last == one.npos ? 0 : last + 1);
    names.push_back(trimmed.substr(trimmed.find_last_of(" *") + 1));
  }
  return names;
}

}  // namespace

Result<std::string> with_known_numbers(std::string text, const Launch& launch, std::span<const int64_t> numbers) {
  const std::string head = fmt::format("void {}(", launch.entry);
  const size_t begin = text.find(head);
  const size_t end = begin == text.npos ? text.npos : text.find(')', begin);
  const size_t body = end == text.npos ? text.npos : text.find('{', end);
  if (body == text.npos) return fail(ErrorCode::kernel_compile_failed, "the source has no kernel '{}'", launch.entry);
  const size_t first = begin + head.size();
  const std::vector<std::string_view> names = names_of(std::string_view(text).substr(first, end - first));
  if (names.size() != launch.args.size())
    return fail(ErrorCode::kernel_compile_failed,
                "the source's kernel '{}' has {} parameters, and it is launched with {}", launch.entry, names.size(),
                launch.args.size());
  std::string values;
  size_t next = 0;
  for (size_t i = 0; i < names.size(); ++i)
    if (launch.args[i].kind == LaunchArg::number && next < numbers.size())
      values += fmt::format("\n  {} = static_cast<long>({}UL);", names[i], static_cast<uint64_t>(numbers[next++]));
  text.insert(body + 1, values);
  return text;
}

}  // namespace lathe::cuda
