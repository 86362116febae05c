// SPDX-License-Identifier: Apache-2.0
// Operators on strings.
#include <algorithm>

#include "base/utf8.h"
#include "compose/letter_case.h"
#include "compose/pattern.h"
#include "compose/text.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// An attribute's strings must be ones that rows of bytes can hold.
void require_texts(NodeContext& c, const char* what, const std::vector<std::string>& texts) {
  for (const std::string& text : texts)
    if (!is_utf8(text) || text.find('\0') != std::string::npos)
      return c.invalid("its {} has a string that is no UTF-8, or has a zero byte", what);
}

enum class CaseChange { none, lower, upper };

CaseChange case_change(NodeContext& c) {
  const std::string action = c.string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    c.invalid("its case_change_action is '{}', expected NONE, LOWER or UPPER", action);
  return action == "LOWER" ? CaseChange::lower : action == "UPPER" ? CaseChange::upper : CaseChange::none;
}

// Languages whose i has no dot, or keeps it, in the other case.
void require_common_letters(NodeContext& c) {
  const std::string locale = c.string("locale", "");
  for (const char* language : {"tr", "az", "lt"})
    if (locale.starts_with(language))
      c.unsupported("its locale '{}' has letter cases of its own; those that other languages have are supported",
                    locale);
}

// Case is changed byte for byte, and not all letters of Unicode have pairs of one length.
void warn_of_letters(NodeContext& c) {
  c.warn(
      "letters change case that are ASCII's or, of Latin, Greek, Cyrillic and Armenian, take as many bytes of UTF-8 in "
      "the other case; others (such as 'ß', 'ı' and those of scripts beyond these) stay as they are, here and in "
      "stopwords");
}

// Rows of x, [strings, bytes], but for those that are a stopword; one empty string where none is left.
ir::Value* without_stopwords(NodeContext& c, ir::Value* x, std::vector<std::string> stopwords, bool is_case_sensitive) {
  ir::Value* compared = x;
  if (!is_case_sensitive) {
    compared = change_case(c, x, /*to_lower=*/true);
    for (std::string& word : stopwords) word = in_case(word, /*to_lower=*/true);
  }
  ir::Value* stays = c.binary(ElementwiseOp::less, find_words(c, compared, stopwords), c.integer_scalar(0));
  ir::Value* count = c.reduce(ReduceOp::sum, c.cast(stays, DType::i64), {0});
  ir::Value* is_empty = c.binary(ElementwiseOp::equal, count, c.integer_scalar(0));
  const TextPair rows = of_one_width(c, x, c.text_constant({1}, {""}));
  CompressAttrs along;
  along.flat = false, along.axis = 0;
  return c.add(along, {c.concat({rows.a, rows.b}, 0), c.concat({stays, is_empty}, 0)});
}

Result<WordAutomaton> read_pattern(const std::string& text) {
  LATHE_ASSIGN(const Pattern pattern, parse_pattern(text));
  return pattern_automaton(pattern);
}

}  // namespace

void import_regex_full_match(NodeContext& c) {
  ir::Value* x = c.require_text(0);
  if (!c.has_attribute("pattern")) c.invalid("attribute 'pattern' is required");
  Result<WordAutomaton> automaton = read_pattern(c.string("pattern", ""));
  if (!automaton) return c.set_error(std::move(automaton).error());
  if (c.failed()) return;
  c.set_output(0, c.binary(ElementwiseOp::equal, find_words(c, x, *automaton), c.integer_scalar(0)));
}

void import_string_concat(NodeContext& c) {
  ir::Value *a = c.require_text(0), *b = c.require_text(1);
  if (!c.failed()) c.set_text(0, joined_text(c, a, b));
}

void import_string_split(NodeContext& c) {
  ir::Value* x = c.require_text(0);
  const std::string delimiter = c.string("delimiter", "");
  const int64_t most = c.integer("maxsplit", -1);
  require_texts(c, "delimiter", {delimiter});
  if (delimiter.size() > 255) c.unsupported("its delimiter has {} bytes, up to 255 are handled", delimiter.size());
  if (c.failed()) return;
  const SplitText split = split_text(c, x, delimiter, most);
  c.set_text(0, split.pieces);
  c.set_output(1, split.counts);
}

void import_string_normalizer(NodeContext& c) {
  ir::Value* x = c.require_text(0);
  const CaseChange change = case_change(c);
  const bool is_case_sensitive = c.flag("is_case_sensitive", false);
  const std::vector<std::string> stopwords = c.strings("stopwords");
  require_common_letters(c);
  require_texts(c, "stopwords", stopwords);
  if (c.failed()) return;
  if (change != CaseChange::none || (!stopwords.empty() && !is_case_sensitive)) warn_of_letters(c);
  const int64_t rank = x->rank() - 1;  // of the tensor of strings
  if (rank < 1 || rank > 2) return c.invalid("its input must be a list of strings, [C] or [1, C]");
  if (!stopwords.empty()) {
    ir::Value* list = rank == 2 ? c.squeeze(x, {0}) : x;
    x = without_stopwords(c, list, stopwords, is_case_sensitive);
    if (rank == 2) x = c.unsqueeze(x, {0});
  }
  if (change != CaseChange::none) x = change_case(c, x, change == CaseChange::lower);
  c.set_text(0, x);
}

}  // namespace lathe::onnx
