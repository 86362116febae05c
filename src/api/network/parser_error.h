// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "NvOnnxParser.h"
#include "base/source_location.h"
#include "onnx/import.h"

namespace lathe::api {

nvonnxparser::ErrorCode onnx_code_for(ErrorCode code);

class ParserError final : public nvonnxparser::IParserError {
 public:
  // Of a model as a whole, found by `where`, a function of the interface.
  ParserError(nvonnxparser::ErrorCode code, std::string text, const char* where, SourceLocation place);
  // Of a node, and then what an importer said; index, name and operator of the node are told where it is known.
  explicit ParserError(const onnx::ImportProblem& problem);
  ParserError(const ParserError&) = delete;
  ParserError& operator=(const ParserError&) = delete;

  nvonnxparser::ErrorCode code() const override { return code_; }
  const char* desc() const override { return text_.c_str(); }
  const char* file() const override { return file_.c_str(); }
  int line() const override { return line_; }
  const char* func() const override { return function_.c_str(); }
  int node() const override { return node_; }
  const char* nodeName() const override { return node_name_.c_str(); }
  const char* nodeOperator() const override { return node_operator_.c_str(); }
  const char* const* localFunctionStack() const override { return stack_.empty() ? nullptr : stack_.data(); }
  int32_t localFunctionStackSize() const override { return static_cast<int32_t>(stack_.size()); }

 private:
  nvonnxparser::ErrorCode code_;
  std::string text_;
  std::string file_;  // from the repository's root
  int line_ = 0;
  std::string function_;
  int node_ = -1;
  std::string node_name_, node_operator_;
  std::vector<std::string> functions_;
  std::vector<const char*> stack_;  // into functions_
};

}  // namespace lathe::api
