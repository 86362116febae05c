// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer of integers: how often each of a pool of n-grams is in a row.
#include <algorithm>

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

// [grams, outputs]: 1 where the column counts the n-gram.
std::vector<double> columns_matrix(const Ints& columns, int64_t outputs) {
  std::vector<double> matrix(columns.size() * static_cast<size_t>(outputs));
  for (size_t gram = 0; gram < columns.size(); ++gram)
    matrix[gram * static_cast<size_t>(outputs) + static_cast<size_t>(columns[gram])] = 1;
  return matrix;
}

ir::Value* floats(NodeContext& c, const Dims& dims, const std::vector<double>& values) {
  return c.cast(c.constant(Tensor::from<double>(dims, values)), DType::f32);
}

// What the mode makes of the counts.
ir::Value* weighted(NodeContext& c, ir::Value* counts, const std::string& mode, const std::vector<double>& weights) {
  if (mode == "IDF") counts = c.binary(ElementwiseOp::min, counts, 1);
  if (mode == "TF" || weights.empty()) return counts;
  return c.mul(counts, floats(c, {static_cast<int64_t>(weights.size())}, weights));
}

}  // namespace

void import_tf_idf_vectorizer(NodeContext& c) {
  ir::Value* x = c.require(0);
  const int64_t least = c.require_integer("min_gram_length"), most = c.require_integer("max_gram_length");
  const int64_t skips = c.require_integer("max_skip_count");
  const std::string mode = c.string("mode", "");
  const std::vector<double> weights = c.reals("weights");
  const Pools pools{c.integers("pool_int64s"), c.integers("ngram_counts"), c.integers("ngram_indexes")};
  if (c.has_attribute("pool_strings")) return c.unsupported("its n-grams are of strings");
  if (!pools.are_valid() || least < 1 || most < least || skips < 0 || most > static_cast<int64_t>(pools.begins.size()))
    return c.invalid("its pool, ngram_counts and ngram_indexes do not fit n-grams of {} to {} elements", least, most);
  const int64_t outputs = std::ranges::max(pools.columns) + 1;
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return c.invalid("mode '{}' is unknown", mode);
  if (!weights.empty() && static_cast<int64_t>(weights.size()) != outputs)
    return c.invalid("{} weights for {} columns", weights.size(), outputs);
  const std::optional<int64_t> length = x->rank() > 0 ? c.dim(x, x->rank() - 1).as_constant() : std::nullopt;
  if (x->rank() < 1 || x->rank() > 2 || !length) return c.unsupported("its input must be rows of a known length");
  ir::Value* rows = c.cast(x->rank() == 1 ? c.unsqueeze(x, {0}) : x, DType::i64);
  ir::Value* sum = nullptr;
  for (int64_t n = least; n <= most; ++n) {
    const auto [grams, columns] = pools.of(n);
    if (grams.empty()) continue;
    ir::Value* matrix = floats(c, {static_cast<int64_t>(columns.size()), outputs}, columns_matrix(columns, outputs));
    for (int64_t distance = 1; distance <= (n == 1 ? 1 : skips + 1); ++distance) {
      if (*length < (n - 1) * distance + 1) break;
      ir::Value* counts = c.matmul(count(c, rows, *length, grams, n, distance), matrix);
      sum = sum ? c.plus(sum, counts) : counts;
    }
  }
  if (!sum) {
    ir::Value* one = c.cast(c.slice(rows, 1, 0, 1), DType::f32);
    sum = c.mul(one, c.filled(0, DType::f32, {1, outputs}));
  }
  ir::Value* y = weighted(c, sum, mode, weights);
  c.set_output(0, x->rank() == 1 ? c.squeeze(y, {0}) : y);
}

}  // namespace lathe::onnx
