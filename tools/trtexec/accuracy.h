// SPDX-License-Identifier: Apache-2.0
// Outputs beside what they should be: --loadRefOutputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/tensor.h"
#include "trtexec/log.h"
#include "trtexec/options.h"

namespace lathe::trtexec {

// Prints a line for each output that has a file, and says whether all are within the threshold. Throws cli::Failure for
// files that do not fit.
bool check_accuracy(const std::vector<cli::HostTensor>& outputs, const std::map<std::string, std::string>& files,
                    const Options& options, TrtexecLog& log);

}  // namespace lathe::trtexec
