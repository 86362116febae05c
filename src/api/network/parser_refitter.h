// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "NvOnnxParser.h"
#include "api/model_refit.h"
#include "api/network/input_elements.h"
#include "api/network/parser_error.h"
#include "api/report.h"
#include "onnx/model.h"

namespace lathe::api {

// Imports the model as a parser does, and gives the refitter the weights by their names. They go into the engine with
// IRefitter::refitCudaEngine(). One thread at a time.
class ParserRefitter final : public nvonnxparser::IParserRefitter {
 public:
  ParserRefitter(ModelRefit& refitter, nv::ILogger* logger)
      : refitter_(refitter.observe()), reporter_(std::make_shared<Reporter>(logger)) {}

  bool refitFromBytes(const void* model, size_t size, const char* modelPath) noexcept override;
  bool refitFromFile(const char* onnxModelFile) noexcept override;
  int32_t getNbErrors() const noexcept override;
  const nvonnxparser::IParserError* getError(int32_t index) const noexcept override;
  void clearErrors() noexcept override;
  bool loadModelProto(const void* model, size_t size, const char* modelPath) noexcept override;
  bool loadInitializer(const char* name, const void* data, size_t size) noexcept override;
  bool refitModelProto() noexcept override;

  bool set_input_elements(const char* input, int32_t count,
                          const nv::Dims* dims) noexcept;  // lathe::setInputElements()

 private:
  Entry looking() const { return {*reporter_, use_, Exclusive::Call::looks}; }
  template <class Body>
  bool attempt(const char* where, Body&& body) noexcept;
  Result<> refit_from(const onnx::Model& model);

  std::weak_ptr<ModelRefit> refitter_;
  std::shared_ptr<Reporter> reporter_;
  mutable Exclusive use_{"parser refitter"};
  std::deque<ParserError> errors_;
  InputElementsByName input_elements_;
  std::unique_ptr<onnx::Model> loaded_;  // between loadModelProto() and refitModelProto()
};

}  // namespace lathe::api
