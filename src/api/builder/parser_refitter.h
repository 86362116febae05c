// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "NvOnnxParser.h"
#include "api/network/parser.h"
#include "api/report.h"

namespace lathe::api {

// No engine's weights can be replaced: whatever the model, there is one report, and one error to ask for.
class ParserRefitter final : public nvonnxparser::IParserRefitter {
 public:
  explicit ParserRefitter(nv::ILogger* logger) : reporter_(logger) {}

  bool refitFromBytes(const void*, size_t, const char*) noexcept override {
    return refuse("IParserRefitter::refitFromBytes");
  }
  bool refitFromFile(const char*) noexcept override { return refuse("IParserRefitter::refitFromFile"); }
  int32_t getNbErrors() const noexcept override { return static_cast<int32_t>(errors_.size()); }
  const nvonnxparser::IParserError* getError(int32_t index) const noexcept override {
    return index >= 0 && index < getNbErrors() ? &errors_[static_cast<size_t>(index)] : nullptr;
  }
  void clearErrors() noexcept override { errors_.clear(); }
  bool loadModelProto(const void*, size_t, const char*) noexcept override {
    return refuse("IParserRefitter::loadModelProto");
  }
  bool loadInitializer(const char*, const void*, size_t) noexcept override {
    return refuse("IParserRefitter::loadInitializer");
  }
  bool refitModelProto() noexcept override { return refuse("IParserRefitter::refitModelProto"); }

 private:
  bool refuse(const char* where) noexcept {
    return guarded(reporter_, where, [&]() -> Result<> {
      constexpr const char* kWords =
          "the engine has no weights that can be replaced: build the plan anew from the new model";
      errors_.emplace_back(nvonnxparser::ErrorCode::kREFIT_FAILED, kWords, where, SourceLocation::current());
      return fail(ErrorCode::invalid_state, kWords);
    });
  }

  Reporter reporter_;
  std::deque<ParserError> errors_;
};

}  // namespace lathe::api
