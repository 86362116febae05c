// SPDX-License-Identifier: Apache-2.0
#include "compose/text.h"

#include <algorithm>

#include "base/utf8.h"
#include "compose/count_up.h"
#include "compose/letter_case.h"
#include "compose/scan.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

// Numbers of bytes are i64[1], so that they can be parts of shapes.
ir::Value* width_of(ir::GraphBuilder& c, ir::Value* x) { return c.shape_of(x, -1); }
ir::Value* dims_of(ir::GraphBuilder& c, ir::Value* x) { return c.shape_of(x, 0, -1); }

ir::Value* bytes(ir::GraphBuilder& c, ir::Value* shape) { return c.fill(shape, Tensor::of<uint8_t>({1}, {0})); }

ir::Value* widened(ir::GraphBuilder& c, ir::Value* x, ir::Value* width) {
  ir::Value* more = c.minus(width, width_of(c, x));
  return c.concat({x, bytes(c, c.concat({dims_of(c, x), more}, 0))}, x->rank() - 1);
}

// Bytes of a string, i64[dims..., 1].
ir::Value* lengths(ir::GraphBuilder& c, ir::Value* x) {
  return c.reduce(ReduceOp::sum, c.cast(c.cast(x, DType::boolean), DType::i64), {-1});
}

ir::Value* table(ir::GraphBuilder& c, const std::vector<int32_t>& values) {
  const std::vector<int64_t> wide(values.begin(), values.end());
  return c.ints(wide);
}

ir::Value* classes_of(ir::GraphBuilder& c, ir::Value* x, const ByteAutomaton& automaton) {
  const std::vector<int32_t> classes(automaton.class_of.begin(), automaton.class_of.end());
  return c.gather(table(c, classes), c.cast(x, DType::i64), 0);
}

// A loop over the bytes of strings; the last states i64[dims...], or those behind each byte, i64[dims..., bytes].
ir::Value* run(ir::GraphBuilder& c, ir::Value* x, const ByteAutomaton& automaton, bool all_states) {
  ir::Value* classes = classes_of(c, x, automaton);
  ir::Value* begin = c.fill(dims_of(c, x), Tensor::of<int64_t>({1}, {0}));
  return scan(c, begin, classes, {.axis = x->rank() - 1, .stacks = all_states, .part = ".byte"},
              [&](ir::GraphBuilder& inside, ir::Value* state, ir::Value* byte) {
                const auto width = static_cast<int64_t>(automaton.classes);
                ir::Value* row = inside.mul(state, inside.integer_scalar(width));
                return inside.gather(table(inside, automaton.next), inside.plus(row, byte), 0);
              });
}

// 1 where x holds, else 0.
ir::Value* flags(ir::GraphBuilder& c, ir::Value* x) { return c.cast(x, DType::i64); }
ir::Value* number(ir::GraphBuilder& c, int64_t value) { return c.integer_scalar(value); }

// Of flags i64[dims..., bytes] the position of number k = 0, 1 ... of those that are 1: i64[dims..., k]; where there
// are fewer, the number of bytes.
ir::Value* positions(ir::GraphBuilder& c, ir::Value* flags, ir::Value* numbers) {
  const int64_t last = flags->rank() - 1;
  ir::Value* so_far = c.unsqueeze(c.add(CumulativeAttrs{}, {flags, number(c, last)}), {last});
  ir::Value* before = c.binary(Op::less_equal, so_far, c.unsqueeze(numbers, {1}));
  return c.reduce(ReduceOp::sum, c.cast(before, DType::i64), {-1}, false);
}

// Where pieces begin and end, i64[dims..., pieces], of how many there are in each string, i64[dims..., 1].
struct Pieces {
  ir::Value *begins, *ends, *counts, *numbers;
};

// 0, 1 ... below the greatest of the counts.
ir::Value* piece_numbers(ir::GraphBuilder& c, ir::Value* counts) {
  ir::Value* all = c.concat({c.ints({0}), c.reshape(counts, {-1})}, 0);
  return count_up(c, c.reduce(ReduceOp::max, all, {0}));
}

ir::Value* limited(ir::GraphBuilder& c, ir::Value* counts, int64_t most) {
  return most < 0 ? counts : c.binary(Op::min, counts, number(c, most + 1));
}

Pieces between_white_space(ir::GraphBuilder& c, ir::Value* x, int64_t most) {
  ByteAutomaton letters;
  letters.class_of.fill(1);
  for (const int white : {0, 9, 10, 11, 12, 13, 28, 29, 30, 31, 32}) letters.class_of[static_cast<size_t>(white)] = 0;
  ir::Value* is_letter = classes_of(c, x, letters);
  const int64_t last = x->rank() - 1;
  ir::Value* edge = c.fill(c.concat({dims_of(c, x), c.ints({1})}, 0), Tensor::of<int64_t>({1}, {0}));
  ir::Value* before = c.slice(c.concat({edge, is_letter}, last), last, 0, -1);
  ir::Value* is_begin = c.mul(is_letter, c.minus(number(c, 1), before));
  ir::Value* is_end = c.mul(before, c.minus(number(c, 1), is_letter));
  Pieces found{};
  found.counts = limited(c, c.reduce(ReduceOp::sum, is_begin, {-1}), most);
  found.numbers = piece_numbers(c, found.counts);
  found.begins = positions(c, is_begin, found.numbers);
  found.ends = positions(c, is_end, found.numbers);
  return found;
}

Pieces between_delimiters(ir::GraphBuilder& c, ir::Value* x, const std::string& delimiter, int64_t most) {
  const auto size = static_cast<int64_t>(delimiter.size());
  ir::Value* is_hit =
      flags(c, c.binary(Op::equal, run(c, x, delimiter_automaton(delimiter), /*all_states=*/true), number(c, size)));
  ir::Value* hits = c.reduce(ReduceOp::sum, is_hit, {-1});
  Pieces found{};
  found.counts = limited(c, c.plus(hits, number(c, 1)), most);
  found.numbers = piece_numbers(c, found.counts);
  ir::Value* is_first = c.binary(Op::equal, found.numbers, number(c, 0));
  ir::Value* behind = c.plus(positions(c, is_hit, c.minus(found.numbers, number(c, 1))), number(c, 1));
  found.begins = c.select(is_first, number(c, 0), behind);
  ir::Value* next = c.minus(positions(c, is_hit, found.numbers), number(c, size - 1));
  found.ends = c.select(c.binary(Op::less, found.numbers, hits), next, lengths(c, x));
  return found;
}

}  // namespace

Result<Tensor> text_tensor(Dims dims, std::span<const std::string_view> strings) {
  size_t width = 1;
  for (const std::string_view string : strings) {
    if (!is_utf8(string) || string.find('\0') != std::string_view::npos)
      return fail(ErrorCode::dtype_unsupported,
                  "a string of {} bytes is no UTF-8 without zero bytes, which strings of a network are", string.size());
    width = std::max(width, string.size());
  }
  dims.push_back(static_cast<int64_t>(width));
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(DType::u8, std::move(dims)));
  auto* to = tensor.mutable_as<uint8_t>();
  std::fill_n(to, tensor.bytes(), uint8_t{0});
  for (size_t i = 0; i < strings.size(); ++i) std::copy(strings[i].begin(), strings[i].end(), to + i * width);
  return tensor;
}

TextPair of_one_width(ir::GraphBuilder& c, ir::Value* a, ir::Value* b) {
  if (!c.failed() && a->shape().back() == b->shape().back()) return {a, b};
  ir::Value* width = c.binary(Op::max, width_of(c, a), width_of(c, b));
  return {widened(c, a, width), widened(c, b, width)};
}

ir::Value* same_text(ir::GraphBuilder& c, ir::Value* a, ir::Value* b) {
  const TextPair both = of_one_width(c, a, b);
  ir::Value* differ = c.unary(UnaryOp::logical_not, c.binary(Op::equal, both.a, both.b));
  return c.binary(Op::equal, c.reduce(ReduceOp::sum, flags(c, differ), {-1}, false), number(c, 0));
}

// Rows of both lie behind one another, and each byte is picked from there.
ir::Value* joined_text(ir::GraphBuilder& c, ir::Value* a, ir::Value* b) {
  const auto spread = [&](ir::Value* x, ir::Value* other) {
    return c.expand(x, c.concat({dims_of(c, other), c.ints({1})}, 0));
  };
  a = spread(a, b);
  b = spread(b, a);
  ir::Value *width = width_of(c, a), *first = lengths(c, a);
  ir::Value* rows = c.concat({a, b}, a->rank() - 1);
  ir::Value* all = width_of(c, rows);
  ir::Value* place = count_up(c, all);
  ir::Value* of_second = c.binary(Op::min, c.plus(place, c.minus(width, first)), c.minus(all, number(c, 1)));
  ir::Value* from = c.select(c.binary(Op::less, place, first), place, of_second);
  GatherElementsAttrs along;
  along.axis = -1;
  ir::Value* there = c.binary(Op::less, place, c.plus(first, lengths(c, b)));
  return c.select(there, c.add(along, {rows, from}), c.scalar(0, DType::u8));
}

ir::Value* find_words(ir::GraphBuilder& c, ir::Value* x, const WordAutomaton& automaton) {
  return c.gather(c.ints(automaton.word_at), run(c, x, automaton.reader, /*all_states=*/false), 0);
}

SplitText split_text(ir::GraphBuilder& c, ir::Value* x, const std::string& delimiter, int64_t most) {
  Pieces found = delimiter.empty() ? between_white_space(c, x, most) : between_delimiters(c, x, delimiter, most);
  if (most >= 0) {  // the last one goes on to the string's end
    ir::Value* is_rest = c.binary(Op::equal, found.numbers, number(c, most));
    found.ends = c.select(is_rest, lengths(c, x), found.ends);
  }
  const auto bytewise = [&](ir::Value* value) { return c.unsqueeze(value, {x->rank()}); };
  ir::Value* width = width_of(c, x);
  ir::Value* place = count_up(c, width);
  ir::Value* from = c.binary(Op::min, c.plus(bytewise(found.begins), place), c.minus(width, number(c, 1)));
  ir::Value* pieces = c.shape_of(found.numbers);
  ir::Value* flat = c.reshape(from, c.concat({dims_of(c, x), c.mul(pieces, width)}, 0), /*allow_zero=*/true);
  GatherElementsAttrs along;
  along.axis = -1;
  ir::Value* shape = c.concat({dims_of(c, x), pieces, width}, 0);
  ir::Value* picked = c.reshape(c.add(along, {x, flat}), shape, /*allow_zero=*/true);
  ir::Value* size = c.minus(found.ends, found.begins);
  size = c.select(c.binary(Op::less, found.numbers, found.counts), size, number(c, 0));
  ir::Value* there = c.binary(Op::less, place, bytewise(size));
  return {c.select(there, picked, c.scalar(0, DType::u8)), c.squeeze(found.counts, {-1})};
}

// A byte of a longer character depends on its neighbours.
ir::Value* change_case(ir::GraphBuilder& c, ir::Value* x, bool to_lower) {
  const CaseTables tables = case_tables(to_lower);
  const auto to_tensor = [](const std::vector<uint8_t>& bytes) {
    return Tensor::from<uint8_t>({static_cast<int64_t>(bytes.size())}, bytes);
  };
  const int64_t last = x->rank() - 1;
  ir::Value* edge = bytes(c, c.concat({dims_of(c, x), c.ints({1})}, 0));
  const auto before = [&](ir::Value* value) {
    return c.cast(c.slice(c.concat({edge, value}, last), last, 0, -1), DType::i64);
  };
  ir::Value* behind = c.cast(c.slice(c.concat({x, edge}, last), last, 1, INT64_MAX), DType::i64);
  ir::Value *byte = c.cast(x, DType::i64), *one_before = before(x);
  ir::Value* first_row = c.gather(c.ints(tables.row_of_first), byte, 0);
  ir::Value* two_before = c.slice(c.concat({c.cast(edge, DType::i64), one_before}, last), last, 0, -1);
  ir::Value* of_three = c.binary(Op::equal, two_before, number(c, CaseTables::kFirstOfThree));
  ir::Value* row = c.plus(c.gather(c.ints(tables.row_of_first), one_before, 0),
                          c.mul(flags(c, of_three), c.gather(c.ints(tables.row_of_second), one_before, 0)));
  const auto look_up = [&](const std::vector<uint8_t>& table, ir::Value* at_row, ir::Value* column) {
    return c.gather(c.constant(to_tensor(table)), c.plus(c.mul(at_row, number(c, 256)), column), 0);
  };
  return c.select(c.cast(first_row, DType::boolean), look_up(tables.firsts, first_row, behind),
                  look_up(tables.bytes, row, byte));
}

}  // namespace lathe
