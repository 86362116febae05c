// SPDX-License-Identifier: Apache-2.0
// The files of a data set of an ONNX test folder, as the inputs and outputs of an engine.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model_edit.h"
#include "tensor_file.h"

namespace lathe::cli {

// What setInputElements() is told of an input that is a sequence or an optional.
struct Elements {
  int32_t count = 0;
  std::vector<int64_t> dims;  // that all of them have, -1 where they differ
  bool has_dims = false;
};

struct CaseInputs {
  std::vector<HostTensor> tensors;           // by the names that the engine has for them
  std::map<std::string, Elements> elements;  // by the model's input
  std::map<std::string, std::string> files;  // of the inputs that are tensors
};

// The files <kind>_<number>.pb of a data set, by number. Numbers may be left out.
std::vector<std::string> read_numbered(const std::filesystem::path& folder, const std::string& kind);

// Tensor i of a sequence `x` is the engine's input `x_i`. Throws Failure.
CaseInputs parse_inputs(const std::vector<std::string>& files, const ModelNames& names);

// What the engine, which gave `outputs`, should have given. Throws Failure.
std::vector<HostTensor> parse_outputs(const std::vector<std::string>& files, const ModelNames& names,
                                      const std::vector<HostTensor>& outputs);

const HostTensor* find(const std::vector<HostTensor>& tensors, const std::string& name);

}  // namespace lathe::cli
