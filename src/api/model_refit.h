// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "shape/expr.h"

namespace lathe::api {

// What a parser's refitter asks of the refitter that it gives weights to.
class ModelRefit {
 public:
  // Weights of a model, whose bytes `owner` keeps.
  struct Content {
    DType dtype = DType::f32;
    Dims dims;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };

  virtual ~ModelRefit() = default;
  virtual Result<> check_refittable() const = 0;
  // All names that the plan has of its network's weights.
  virtual std::vector<std::string> names() const = 0;
  // Takes them, or says why not. Of weights that stay: whether they are those that the plan was built with.
  virtual Result<> give(const std::string& name, const Content& content) = 0;
};

}  // namespace lathe::api
