// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include "base/text_table.h"

namespace lathe {
namespace {

struct Row {
  ErrorCode code;
  ErrorKind kind;
};

constexpr Row kRows[] = {
#define LATHE_ERROR(name, number, kind, title) {ErrorCode::name, ErrorKind::kind},
#include "base/errors.def"
#undef LATHE_ERROR
};

using Texts = TextTable<[] {  // name and title of each row
  return std::to_array<std::string_view>({
#define LATHE_ERROR(name, number, kind, title) #name, title,
#include "base/errors.def"
#undef LATHE_ERROR
  });
}>;
static_assert(Texts::kCount == 2 * std::size(kRows));

size_t row_of(ErrorCode code) {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].code == code) return i;
  return row_of(ErrorCode::internal);
}

}  // namespace

ErrorKind kind_of(ErrorCode code) { return kRows[row_of(code)].kind; }
std::string_view name_of(ErrorCode code) { return Texts::at(2 * row_of(code)); }
std::string_view title_of(ErrorCode code) { return Texts::at(2 * row_of(code) + 1); }

Error::Error() = default;
Error::Error(ErrorCode code, std::string message, std::vector<Error> notes)
    : code(code), message(std::move(message)), notes(std::move(notes)) {}
Error::Error(const Error&) = default;
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(const Error&) = default;
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;

tl::unexpected<Error> fail_formatted(ErrorCode code, fmt::string_view format, fmt::format_args args) {
  return tl::unexpected<Error>(Error(code, fmt::vformat(format, args), {}));
}

std::string Error::to_string() const {
  std::string text = fmt::format("LATHE-{} {}: {}", static_cast<int32_t>(code), name_of(code), message);
  for (const Error& note : notes) text += "\n  " + note.to_string();
  return text;
}

Error with_context(Error error, std::string_view context) {
  error.message = fmt::format("{}: {}", context, error.message);
  return error;
}

}  // namespace lathe
