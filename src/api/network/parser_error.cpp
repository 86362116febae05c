// SPDX-License-Identifier: Apache-2.0
#include "api/network/parser_error.h"

namespace lathe::api {
namespace {

using OnnxCode = nvonnxparser::ErrorCode;

// "/home/someone/lathe/src/onnx/import.cpp" is src/onnx/import.cpp wherever it was compiled.
std::string path_in_repository(std::string_view file) {
  const size_t at = file.rfind("/src/");
  return std::string(at == std::string_view::npos ? file : file.substr(at + 1));
}

// A rule of ONNX that a node breaks is the node's fault, not the graph's.
OnnxCode code_of(const onnx::ImportProblem& problem) {
  if (problem.error.code == ErrorCode::model_invalid && problem.node) return OnnxCode::kINVALID_NODE;
  return onnx_code_for(problem.error.code);
}

}  // namespace

OnnxCode onnx_code_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::model_malformed:
    case ErrorCode::file_not_found:
    case ErrorCode::file_read:
    case ErrorCode::model_external_data:
      return OnnxCode::kMODEL_DESERIALIZE_FAILED;
    case ErrorCode::out_of_memory:
      return OnnxCode::kMEM_ALLOC_FAILED;
    case ErrorCode::op_unsupported:
    case ErrorCode::opset_unsupported:
      return OnnxCode::kUNSUPPORTED_NODE;
    case ErrorCode::op_mode_unsupported:
      return OnnxCode::kUNSUPPORTED_NODE_ATTR;
    case ErrorCode::dtype_unsupported:
      return OnnxCode::kUNSUPPORTED_NODE_DATATYPE;
    case ErrorCode::shape_unknown:
      return OnnxCode::kUNSUPPORTED_NODE_DYNAMIC;
    case ErrorCode::shape_mismatch:
    case ErrorCode::type_mismatch:
    case ErrorCode::attribute_invalid:
      return OnnxCode::kINVALID_NODE;
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_state:
      return OnnxCode::kINVALID_VALUE;
    case ErrorCode::model_limit:
      return OnnxCode::kUNSUPPORTED_GRAPH;
    case ErrorCode::internal:
      return OnnxCode::kINTERNAL_ERROR;
    default:
      return OnnxCode::kINVALID_GRAPH;
  }
}

ParserError::ParserError(OnnxCode code, std::string text, const char* where, SourceLocation place)
    : code_(code),
      text_(std::move(text)),
      file_(path_in_repository(place.file_name())),
      line_(static_cast<int>(place.line())),
      function_(where) {}

ParserError::ParserError(const onnx::ImportProblem& problem)
    : ParserError(code_of(problem), problem.error.message, problem.where.function_name(), problem.where) {
  if (problem.node) node_ = static_cast<int>(*problem.node);
  node_name_ = problem.name;
  node_operator_ = problem.op_type;
  functions_ = problem.functions;
  for (const std::string& function : functions_) stack_.push_back(function.c_str());
}

}  // namespace lathe::api
