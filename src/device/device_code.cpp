// SPDX-License-Identifier: Apache-2.0
#include "device/device_code.h"

#include <algorithm>

namespace lathe {

std::string_view name_of(CodeForm form) {
  switch (form) {
    case CodeForm::binary:
      return "binary";
    case CodeForm::assembly:
      return "assembly";
    case CodeForm::source:
      return "source";
  }
  return "unknown form";
}

const CodeImage* find_binary(const CodeModule& module, std::string_view target) {
  const auto it = std::find_if(module.images.begin(), module.images.end(), [&](const CodeImage& image) {
    return image.form == CodeForm::binary && image.target == target;
  });
  return it == module.images.end() ? nullptr : &*it;
}

Error no_image(const CodeModule& module, std::string_view target) {
  std::string there;
  for (const CodeImage& image : module.images)
    there += fmt::format("{}{} for {}", there.empty() ? "" : ", ", name_of(image.form), image.target);
  return fail(ErrorCode::plan_target,
              "the plan's device code is there as {}; '{}' can run none of it: build the "
              "engine for this device",
              there.empty() ? "nothing" : there, target)
      .value();
}

}  // namespace lathe
