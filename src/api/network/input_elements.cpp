// SPDX-License-Identifier: Apache-2.0
#include "api/network/input_elements.h"

#include "api/convert.h"

namespace lathe::api {

Result<> tell_input_elements(InputElementsByName& told, const char* input, int32_t count, const nvinfer1::Dims* dims) {
  if (!input || count < onnx::InputElements::kNone)
    return fail(ErrorCode::invalid_argument, "{} tensors of input '{}'; expected a name, and 0 or more, or -1 for none",
                count, input ? input : "(null)");
  onnx::InputElements elements{count, std::nullopt};
  if (dims) {
    LATHE_ASSIGN(elements.dims, to_dims(*dims));
    for (const int64_t dim : *elements.dims)
      if (dim < -1)
        return fail(ErrorCode::invalid_argument, "a dimension of input '{}' is {}; expected -1 or more", input, dim);
  }
  told[input] = std::move(elements);
  return {};
}

}  // namespace lathe::api
