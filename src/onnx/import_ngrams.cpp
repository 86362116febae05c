// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer: how often each of a pool of n-grams is in a row.
#include <algorithm>
#include <map>
#include <numeric>

#include "compose/text.h"
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// For each of the n-grams, [grams, n], how often it is in a row of x[rows, length], its elements `distance` apart.
ir::Value* count(NodeContext& c, ir::Value* x, int64_t length, const Ints& grams, int64_t n, int64_t distance) {
  const int64_t number = static_cast<int64_t>(grams.size()) / n, starts = length - (n - 1) * distance;
  ir::Value* matches = nullptr;  // [rows, grams, starts]
  for (int64_t k = 0; k < n; ++k) {
    Ints elements;
    for (int64_t gram = 0; gram < number; ++gram) elements.push_back(grams[static_cast<size_t>(gram * n + k)]);
    ir::Value* wanted = c.reshape(c.ints(elements), Ints{number, 1});
    ir::Value* there = c.unsqueeze(c.slice(x, 1, k * distance, k * distance + starts), {1});
    ir::Value* equal = c.binary(ElementwiseOp::equal, there, wanted);
    matches = matches ? c.binary(ElementwiseOp::logical_and, matches, equal) : equal;
  }
  return c.reduce(ReduceOp::sum, c.cast(matches, DType::f32), {2}, false);
}

struct Pools {
  Ints all, begins, columns;
  // Of the n-grams: their elements, and the columns of the output that count them.
  std::pair<Ints, Ints> of(int64_t n) const {
    const auto begin = static_cast<size_t>(begins[static_cast<size_t>(n - 1)]);
    const size_t end =
        static_cast<size_t>(n) < begins.size() ? static_cast<size_t>(begins[static_cast<size_t>(n)]) : all.size();
    size_t before = 0;  // n-grams of fewer elements
    for (int64_t k = 1; k < n; ++k)
      before += static_cast<size_t>(begins[static_cast<size_t>(k)] - begins[static_cast<size_t>(k - 1)]) /
                static_cast<size_t>(k);
    const auto first = columns.begin() + static_cast<ptrdiff_t>(before);
    return {Ints(all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end)),
            Ints(first, first + static_cast<ptrdiff_t>((end - begin) / static_cast<size_t>(n)))};
  }
  // Whether the lists go together: every n-gram has a column, and none is cut off.
  bool are_valid() const {
    if (begins.empty() || begins[0] != 0) return false;
    size_t number = 0;
    for (size_t n = 1; n <= begins.size(); ++n) {
      const int64_t end = n < begins.size() ? begins[n] : static_cast<int64_t>(all.size());
      const int64_t size = end - begins[n - 1];
      if (size < 0 || end > static_cast<int64_t>(all.size()) || size % static_cast<int64_t>(n) != 0) return false;
      number += static_cast<size_t>(size) / n;
    }
    return number == columns.size() && !columns.empty() && std::ranges::min(columns) >= 0;
  }
};

ir::Value* floats(NodeContext& c, const Dims& dims, const std::vector<double>& values) {
  return c.cast(c.constant(Tensor::from<double>(dims, values)), DType::f32);
}

constexpr int64_t kMostColumns = int64_t{1} << 24, kMostOfColumn = 64, kMostDistances = 1000;

// From counts[rows, grams] to [rows, outputs]: each n-gram is counted in its column. In turn one of each column, for
// hardly ever there are several.
ir::Value* in_columns(NodeContext& c, ir::Value* counts, const Ints& columns, int64_t outputs) {
  ir::Value* sum = nullptr;
  Ints left(columns.size());
  std::iota(left.begin(), left.end(), 0);
  for (int64_t turn = 0; !left.empty(); ++turn) {
    if (turn == kMostOfColumn) {
      c.unsupported("more than {} of its n-grams are counted in one column", kMostOfColumn);
      return counts;
    }
    Ints grams(static_cast<size_t>(outputs)), others;
    std::vector<double> is_counted(static_cast<size_t>(outputs));
    for (const int64_t gram : left) {
      const auto column = static_cast<size_t>(columns[static_cast<size_t>(gram)]);
      if (is_counted[column] != 0)
        others.push_back(gram);
      else
        grams[column] = gram, is_counted[column] = 1;
    }
    ir::Value* const placed = c.mul(c.gather(counts, c.ints(grams), 1), floats(c, {outputs}, is_counted));
    sum = sum ? c.plus(sum, placed) : placed;
    left = std::move(others);
  }
  return sum;
}

// What the mode makes of the counts.
ir::Value* weighted(NodeContext& c, ir::Value* counts, const std::string& mode, const std::vector<double>& weights) {
  if (mode == "IDF") counts = c.binary(ElementwiseOp::min, counts, 1);
  if (mode == "TF" || weights.empty()) return counts;
  return c.mul(counts, floats(c, {static_cast<int64_t>(weights.size())}, weights));
}

// In place of a pool's strings the numbers that find_words() has for them.
Ints numbers_of(const std::vector<std::string>& strings) {
  std::map<std::string_view, int64_t> number;
  for (size_t i = 0; i < strings.size(); ++i) number[strings[i]] = static_cast<int64_t>(i);
  Ints numbers;
  for (const std::string& string : strings) numbers.push_back(number[string]);
  return numbers;
}

// What is counted: integers, or strings by their numbers.
struct Counted {
  ir::Value* x;
  Ints pool;
};
Counted read_counted(NodeContext& c) {
  const std::vector<std::string> strings = c.strings("pool_strings");
  const Ints integers = c.integers("pool_int64s");
  ir::Value* text = c.text(0);
  ir::Value* x = text ? text : c.require(0);
  if (!c.failed() && strings.empty() == (text != nullptr))
    c.invalid("its pool is of {}, and its input is not", text ? "integers" : "strings");
  if (c.failed() || !text) return {x, integers};
  return {find_words(c, text, strings), numbers_of(strings)};
}

}  // namespace

void import_tf_idf_vectorizer(NodeContext& c) {
  const auto [x, pool] = read_counted(c);
  const int64_t least = c.require_integer("min_gram_length"), most = c.require_integer("max_gram_length");
  const int64_t skips = c.require_integer("max_skip_count");
  const std::string mode = c.string("mode", "");
  const std::vector<double> weights = c.reals("weights");
  const Pools pools{pool, c.integers("ngram_counts"), c.integers("ngram_indexes")};
  if (c.failed()) return;
  if (!pools.are_valid() || least < 1 || most < least || skips < 0 || most > static_cast<int64_t>(pools.begins.size()))
    return c.invalid("its pool, ngram_counts and ngram_indexes do not fit n-grams of {} to {} elements", least, most);
  if (std::ranges::max(pools.columns) >= kMostColumns)
    return c.unsupported("ngram_indexes ask for {} columns or more", kMostColumns);
  const int64_t outputs = std::ranges::max(pools.columns) + 1;
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return c.invalid("mode '{}' is unknown", mode);
  if (!weights.empty() && static_cast<int64_t>(weights.size()) != outputs)
    return c.invalid("{} weights for {} columns", weights.size(), outputs);
  const std::optional<int64_t> length = x->rank() > 0 ? c.dim(x, x->rank() - 1).as_constant() : std::nullopt;
  if (x->rank() < 1 || x->rank() > 2 || !length) return c.unsupported("its input must be rows of a known length");
  ir::Value* rows = c.cast(x->rank() == 1 ? c.unsqueeze(x, {0}) : x, DType::i64);
  std::vector<ir::Value*> counts;  // of each n, [rows, n-grams]
  Ints columns;                    // of those n-grams
  for (int64_t n = least; n <= most; ++n) {
    const auto [grams, own] = pools.of(n);
    if (grams.empty() || *length < n) continue;
    const int64_t farthest = n == 1 ? 1 : std::min((*length - 1) / (n - 1), skips < kMostDistances ? skips + 1 : skips);
    if (farthest > kMostDistances)
      return c.unsupported("elements of its n-grams lie up to {} apart, {} are handled", farthest, kMostDistances);
    ir::Value* sum = nullptr;
    for (int64_t distance = 1; distance <= farthest; ++distance) {
      ir::Value* const found = count(c, rows, *length, grams, n, distance);
      sum = sum ? c.plus(sum, found) : found;
    }
    counts.push_back(sum);
    columns.insert(columns.end(), own.begin(), own.end());
  }
  if (counts.empty()) {  // there is no place for any
    counts.push_back(c.reduce(ReduceOp::sum, c.cast(c.slice(rows, 1, 0, 0), DType::f32), {1}));
    columns.push_back(0);
  }
  ir::Value* const all = counts.size() > 1 ? c.concat(counts, 1) : counts[0];
  ir::Value* y = weighted(c, in_columns(c, all, columns, outputs), mode, weights);
  c.set_output(0, x->rank() == 1 ? c.squeeze(y, {0}) : y);
}

}  // namespace lathe::onnx
