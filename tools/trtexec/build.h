// SPDX-License-Identifier: Apache-2.0
// From a model to a plan.
#pragma once

#include <memory>
#include <string>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "trtexec/log.h"
#include "trtexec/options.h"

namespace lathe::trtexec {

// Parses and builds as the options say. Throws cli::UsageError and cli::Failure.
std::unique_ptr<nvinfer1::IHostMemory> build_engine(const Options& options, TrtexecLog& log);

// What build_engine() consists of besides.
void set_network(nvinfer1::INetworkDefinition& network, const Options& options);
void set_config(nvinfer1::IBuilderConfig& config, const Options& options);
void set_layers(nvinfer1::IBuilderConfig& config, nvinfer1::INetworkDefinition& network, const Options& options,
                TrtexecLog& log);
void add_profiles(nvinfer1::IBuilder& builder, nvinfer1::IBuilderConfig& config,
                  const nvinfer1::INetworkDefinition& network, const Options& options, TrtexecLog& log);

// Runs `call`, which speaks to the library; throws cli::Failure where the library has reported an error meanwhile.
template <class Call>
void refuse_errors(TrtexecLog& log, const char* what, Call&& call);
[[noreturn]] void fail_as_reported(const char* what);

template <class Call>
void refuse_errors(TrtexecLog& log, const char* what, Call&& call) {
  const int before = log.library_errors();
  call();
  if (log.library_errors() != before) fail_as_reported(what);
}

}  // namespace lathe::trtexec
