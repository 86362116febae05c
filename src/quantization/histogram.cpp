// SPDX-License-Identifier: Apache-2.0
#include "quantization/histogram.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "ops/pointwise.h"

namespace lathe {

Result<> Histogram::add(const Tensor& values) {
  if (!is_floating(values.dtype()))
    return fail(ErrorCode::dtype_unsupported, "a histogram is of floats, not of {}", name_of(values.dtype()));
  if (values.dtype() == DType::f32) {
    add(std::span(values.as<float>(), static_cast<size_t>(values.volume())));
    return {};
  }
  std::array<double, kPointwiseBlock> block;
  for (int64_t begin = 0; begin < values.volume(); begin += kPointwiseBlock) {
    const std::span part(block.data(), static_cast<size_t>(std::min(kPointwiseBlock, values.volume() - begin)));
    read_doubles(values, begin, part);
    add(std::span<const double>(part));
  }
  return {};
}

template <class T>
void Histogram::add(std::span<const T> values) {
  T lowest = 0, highest = 0;
  for (T value : values)
    if (std::isfinite(value)) lowest = std::min(lowest, value), highest = std::max(highest, value);
  if (lowest < 0 || highest > 0) widen(static_cast<double>(lowest), static_cast<double>(highest));
  for (T value : values) {
    if (value == 0)
      ++zeros_;
    else if (!std::isfinite(value))
      ++non_finite_;
    else
      ++counts_[std::min(static_cast<size_t>(static_cast<double>(std::fabs(value)) / width_), kBins - 1)];
  }
}

void Histogram::widen(double lowest, double highest) {
  lowest_ = std::min(lowest_, lowest), highest_ = std::max(highest_, highest);
  largest_ = std::max(-lowest_, highest_);
  if (counts_.empty()) {
    counts_.resize(kBins);
    width_ = largest_ / kBins;
  }
  while (largest_ > width_ * kBins) {
    for (size_t i = 0; i < kBins / 2; ++i) counts_[i] = counts_[2 * i] + counts_[2 * i + 1];
    std::fill(counts_.begin() + kBins / 2, counts_.end(), 0);
    width_ *= 2;
  }
}

std::string Histogram::to_text() const {
  std::string text = fmt::format("{:a} {:a} {} {}", width_, largest_, zeros_, non_finite_);
  size_t used = counts_.size();
  while (used > 0 && counts_[used - 1] == 0) --used;
  for (size_t i = 0; i < used; ++i) text += fmt::format(" {}", counts_[i]);
  return text;
}

namespace {

// The words of a line, taken one by one.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}
  bool at_end() const { return text_.empty(); }
  template <class T, class... Format>
  bool take(T& value, Format... format) {
    std::string_view word = text_.substr(0, text_.find(' '));
    text_.remove_prefix(std::min(text_.size(), word.size() + 1));
    if constexpr (std::is_floating_point_v<T>)
      if (word.starts_with("0x")) word.remove_prefix(2);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, format...);
    return error == std::errc() && end == word.data() + word.size() && !word.empty();
  }

 private:
  std::string_view text_;
};

}  // namespace

Result<Histogram> Histogram::parse(std::string_view text) {
  Histogram histogram;
  Words words(text);
  bool valid = words.take(histogram.width_, std::chars_format::hex) &&
               words.take(histogram.largest_, std::chars_format::hex) && words.take(histogram.zeros_) &&
               words.take(histogram.non_finite_) && std::isfinite(histogram.width_) && histogram.width_ >= 0 &&
               std::isfinite(histogram.largest_) && histogram.largest_ >= 0;
  while (valid && !words.at_end() && histogram.counts_.size() < kBins)
    valid = words.take(histogram.counts_.emplace_back());
  valid &= words.at_end() && histogram.counts_.empty() == (histogram.width_ == 0) &&
           histogram.largest_ <= histogram.width_ * kBins;
  if (!valid) return fail(ErrorCode::invalid_argument, "'{}' is no histogram", text.substr(0, 60));
  if (!histogram.counts_.empty()) histogram.counts_.resize(kBins);
  histogram.lowest_ = -histogram.largest_, histogram.highest_ = histogram.largest_;
  return histogram;
}

}  // namespace lathe
