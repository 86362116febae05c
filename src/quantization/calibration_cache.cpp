// SPDX-License-Identifier: Apache-2.0
#include "quantization/calibration_cache.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

namespace lathe {
namespace {

constexpr std::string_view kMark = "TRT-";

// What parts a text at the first or last `mark`; nothing where there is none.
struct Halves {
  std::string_view front, back;
};
std::optional<Halves> cut(std::string_view text, std::string_view mark, size_t at) {
  if (at == std::string_view::npos) return std::nullopt;
  return Halves{text.substr(0, at), text.substr(at + mark.size())};
}

tl::unexpected<Error> wrong(int line, std::string_view text, std::string_view wanted) {
  return fail(ErrorCode::invalid_argument, "line {} of the calibration cache is '{}', where {} is wanted", line,
              text.substr(0, 60), wanted);
}

Result<std::pair<std::string, float>> parse_scale(std::string_view text, int line) {
  const std::optional<Halves> halves = cut(text, ": ", text.rfind(": "));
  uint32_t bits = 0;
  if (halves && halves->back.size() == 8) {
    const auto [end, error] = std::from_chars(halves->back.data(), text.data() + text.size(), bits, 16);
    const float scale = std::bit_cast<float>(bits);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(scale) && scale >= 0)
      return std::pair(std::string(halves->front), scale);
  }
  return wrong(line, text, "a tensor's name, a colon and the eight hexadecimal digits of a positive f32");
}

}  // namespace

std::string to_text(const CalibrationCache& cache, int version) {
  std::string text = fmt::format("{}{}-{}\n", kMark, version, cache.method);
  for (const auto& [tensor, scale] : cache.scales)
    text += fmt::format("{}: {:08x}\n", tensor, std::bit_cast<uint32_t>(scale));
  return text;
}

Result<CalibrationCache> parse_calibration_cache(std::string_view text) {
  CalibrationCache cache;
  for (int line = 1; !text.empty(); ++line) {
    std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), row.size() + 1));
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (line == 1) {
      const std::optional<Halves> halves =
          row.starts_with(kMark) ? cut(row, "-", row.find('-', kMark.size())) : std::nullopt;
      if (!halves || halves->back.empty()) return wrong(line, row, "TRT-VERSION-METHOD");
      cache.method = halves->back;
    } else if (!row.empty()) {
      LATHE_ASSIGN(auto scale, parse_scale(row, line));
      cache.scales.insert_or_assign(std::move(scale.first), scale.second);
    }
  }
  if (cache.method.empty()) return fail(ErrorCode::invalid_argument, "the calibration cache is empty");
  return cache;
}

}  // namespace lathe
