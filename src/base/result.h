// SPDX-License-Identifier: Apache-2.0
// Error, Result<T> and the macros that pass errors on. See docs/errors/ for each code.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace lathe {

enum class ErrorCode : int32_t {
#define LATHE_ERROR(name, number, kind, title) name = number,
#include "base/errors.def"
#undef LATHE_ERROR
};

enum class ErrorKind { user, unsupported, bug };

ErrorKind kind_of(ErrorCode code);
std::string_view name_of(ErrorCode code);
std::string_view title_of(ErrorCode code);

// What went wrong. `message` says what, where, why and what to do, in that order; `notes` holds further problems
// found in the same pass (an import reports all, not only the first).
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::vector<Error> notes;

  // Out of line: every LATHE_TRY ends the life of an Error and would hold this code again, a quarter of the library.
  Error();
  Error(ErrorCode code, std::string message, std::vector<Error> notes);
  Error(const Error&);
  Error(Error&&) noexcept;
  Error& operator=(const Error&);
  Error& operator=(Error&&) noexcept;
  ~Error();

  // "LATHE-2101 shape_mismatch: ...", notes on lines of their own.
  std::string to_string() const;
};

template <class T = void>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

tl::unexpected<Error> fail_formatted(ErrorCode code, fmt::string_view format, fmt::format_args args);

template <class... Args>
tl::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return fail_formatted(code, format, fmt::make_format_args(args...));
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// The same error with "context: " put in front of its message.
Error with_context(Error error, std::string_view context);

}  // namespace lathe

#define LATHE_CONCAT_INNER(a, b) a##b
#define LATHE_CONCAT(a, b) LATHE_CONCAT_INNER(a, b)

// LATHE_TRY(expression): returns the error from the enclosing function, if any.
#define LATHE_TRY(...)                                                        \
  do {                                                                        \
    auto lathe_result = (__VA_ARGS__);                                        \
    if (!lathe_result) return ::lathe::fail(std::move(lathe_result).error()); \
  } while (0)

// LATHE_ASSIGN(auto x, expression): declares x from the result's value, or returns the error.
#define LATHE_ASSIGN(declaration, ...) \
  LATHE_ASSIGN_IMPL(LATHE_CONCAT(lathe_result_, __LINE__), declaration, __VA_ARGS__)
#define LATHE_ASSIGN_IMPL(result, declaration, ...)             \
  auto result = (__VA_ARGS__);                                  \
  if (!result) return ::lathe::fail(std::move(result).error()); \
  declaration = std::move(*result)

// A broken invariant of our own: reported as an internal error to the caller, in every build type.
#define LATHE_CHECK(condition)                                                                                         \
  do {                                                                                                                 \
    if (!(condition)) return ::lathe::fail(::lathe::ErrorCode::internal, "{}:{}: {}", __FILE__, __LINE__, #condition); \
  } while (0)
