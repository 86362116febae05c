// SPDX-License-Identifier: Apache-2.0
#include "ops/subscripts.h"

#include <algorithm>

namespace lathe {
namespace {

Result<std::vector<Label>> parse_term(std::string_view term, int64_t ellipsis_rank) {
  std::vector<Label> labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (term.substr(i, 3) == "..." && !seen) {
      seen = true;
      i += 2;
      for (int64_t d = ellipsis_rank; d-- > 0;) labels.push_back(kEllipsis + static_cast<Label>(d));
    } else {
      return fail(ErrorCode::attribute_invalid, "equation has the term '{}': only letters and one '...' are allowed",
                  term);
    }
  }
  return labels;
}

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (char c : text)
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  return terms;
}

// Without "->": the ellipsis, then the letters that occur once, in order.
std::vector<Label> implicit_output(const std::vector<std::vector<Label>>& operands) {
  std::vector<Label> all, out;
  for (const std::vector<Label>& labels : operands) all.insert(all.end(), labels.begin(), labels.end());
  std::sort(all.begin(), all.end());
  for (Label label : all)
    if (label >= kEllipsis && (out.empty() || out.front() != label)) out.insert(out.begin(), label);
  for (Label label : all)
    if (label < kEllipsis && std::count(all.begin(), all.end(), label) == 1) out.push_back(label);
  return out;
}

}  // namespace

Result<Subscripts> parse_subscripts(std::string equation, const std::vector<int64_t>& ranks) {
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  const std::vector<std::string> terms = split_terms(equation.substr(0, arrow));
  if (terms.size() != ranks.size())
    return fail(ErrorCode::attribute_invalid, "equation '{}' has {} terms, but there are {} inputs", equation,
                terms.size(), ranks.size());
  Subscripts subscripts;
  int64_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool ellipsis = terms[i].find("...") != std::string::npos;
    const int64_t letters = static_cast<int64_t>(terms[i].size()) - (ellipsis ? 3 : 0);
    if (ellipsis ? ranks[i] < letters : ranks[i] != letters)
      return fail(ErrorCode::shape_mismatch, "the term '{}' of the equation does not fit input {} of rank {}", terms[i],
                  i, ranks[i]);
    if (ellipsis) widest = std::max(widest, ranks[i] - letters);
    LATHE_ASSIGN(subscripts.operands.emplace_back(), parse_term(terms[i], ellipsis ? ranks[i] - letters : 0));
  }
  if (arrow == std::string::npos) {
    subscripts.output = implicit_output(subscripts.operands);
  } else {
    LATHE_ASSIGN(subscripts.output, parse_term(equation.substr(arrow + 2), widest));
  }
  return subscripts;
}

Result<std::vector<Label>> all_labels(const Subscripts& subscripts, std::string_view equation) {
  std::vector<Label> labels;
  for (Label label : subscripts.output) {
    const bool known = std::any_of(subscripts.operands.begin(), subscripts.operands.end(), [&](const auto& operand) {
      return std::find(operand.begin(), operand.end(), label) != operand.end();
    });
    if (!known || std::find(labels.begin(), labels.end(), label) != labels.end())
      return fail(ErrorCode::attribute_invalid,
                  "equation '{}': each output label must occur in an input, and once in the output", equation);
    labels.push_back(label);
  }
  for (const std::vector<Label>& operand : subscripts.operands)
    for (Label label : operand)
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
        if (label >= kEllipsis)
          return fail(ErrorCode::attribute_invalid, "equation '{}': the output lacks the '...' of the inputs",
                      equation);
        labels.push_back(label);
      }
  return labels;
}

}  // namespace lathe
