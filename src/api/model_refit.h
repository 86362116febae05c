// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>

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
  using Contents = std::unordered_map<std::string, Content>;  // by name in the model

  virtual Result<> check_refittable() const = 0;
  // Takes those that the plan has of its model, or none: where one is missing, of another type or shape, or where fixed
  // weights are not those that the plan was built with.
  virtual Result<> give(const Contents& contents) = 0;

  // Of no use any more when the refitter has gone.
  std::weak_ptr<ModelRefit> observe() const { return self_; }

 private:
  const std::shared_ptr<ModelRefit> self_{this, [](ModelRefit*) {}};
};

}  // namespace lathe::api
