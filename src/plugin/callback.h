// SPDX-License-Identifier: Apache-2.0
// Whose callbacks are called, for what is told of their answers.
#pragma once

#include <string>

#include "base/result.h"

namespace lathe::plugin {

struct Who {
  std::string layer, name, version;

  std::string text() const { return fmt::format("plugin '{}', version {}, of layer '{}'", name, version, layer); }
};

// What is wrong with the answer of `callback`: "enqueue() gives 3".
template <class... Args>
tl::unexpected<Error> refuse(ErrorCode code, const Who& who, const char* callback, fmt::format_string<Args...> format,
                             Args&&... args) {
  return fail(code, "{}: {}() {}", who.text(), callback, fmt::format(format, std::forward<Args>(args)...));
}

// Of callbacks that report success with 0.
inline Result<> expect_success(ErrorCode code, const Who& who, const char* callback, int32_t answer) {
  if (answer == 0) return {};
  return refuse(code, who, callback, "gives {}, which is a failure; success is 0", answer);
}

}  // namespace lathe::plugin
