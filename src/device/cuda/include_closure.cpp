// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/include_closure.h"

#include <map>

namespace lathe::cuda {
namespace {

// Calls visit(name) for each #include "name" of the text.
template <class Visit>
void visit_includes(std::string_view text, Visit&& visit) {
  constexpr std::string_view kDirective = "include";
  for (size_t hash = text.find('#'); hash != text.npos; hash = text.find('#', hash + 1)) {
    const size_t word = text.find_first_not_of(" \t", hash + 1);
    if (word == text.npos || !text.substr(word).starts_with(kDirective)) continue;
    const size_t open = text.find_first_not_of(" \t", word + kDirective.size());
    if (open == text.npos || (text[open] != '"' && text[open] != '<')) continue;
    const size_t close = text.find_first_of("\">\n", open + 1);
    if (close != text.npos) visit(text.substr(open + 1, close - open - 1));
  }
}

}  // namespace

std::vector<SourceHeader> include_closure(std::string_view source, std::span<const SourceHeader> headers) {
  std::map<std::string_view, size_t> index;
  for (size_t i = 0; i < headers.size(); ++i) index.emplace(headers[i].name, i);
  std::vector<bool> used(headers.size());
  std::vector<std::string_view> todo = {source};
  while (!todo.empty()) {
    const std::string_view text = todo.back();
    todo.pop_back();
    visit_includes(text, [&](std::string_view name) {
      const auto found = index.find(name);
      if (found == index.end() || used[found->second]) return;
      used[found->second] = true;
      todo.emplace_back(headers[found->second].text);
    });
  }
  std::vector<SourceHeader> closure;
  for (size_t i = 0; i < headers.size(); ++i)
    if (used[i]) closure.push_back(headers[i]);
  return closure;
}

}  // namespace lathe::cuda
