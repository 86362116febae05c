// SPDX-License-Identifier: Apache-2.0
// The batches that `lathe quantize --data` names.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tensor_file.h"

namespace lathe::cli {

using Batch = std::vector<HostTensor>;  // a tensor for each input of the model

// A file or a folder:
//   a .npz, with an array for each input
//   a file of any kind that `lathe run` reads, for models of one input
//   a folder with a file for each input, called by its name or input_<index>; of names '/' and ':' are '_' there
//   a folder of such folders, or of .npz files, or of files for the only input
// An array of more than a batch is cut along its first dimension.
class CalibrationData {
 public:
  // `batch`: samples of one, where the model leaves that open. Throws UsageError for what is no such thing.
  CalibrationData(const std::string& path, std::vector<InputSpec> inputs, int64_t batch);

  // How many files, or groups of files, there are.
  size_t size() const { return sets_.size(); }
  // The batches of one. Throws Failure.
  std::vector<Batch> read(size_t index) const;

 private:
  using Set = std::map<std::string, std::string>;  // files by input; "" = a .npz of all

  void add_folder(const std::string& folder);
  void add_files(const std::string& folder, const std::vector<std::string>& files);
  std::string input_of(const std::string& file) const;
  HostTensor read_input(const Set& set, const std::map<std::string, std::string>& arrays, const InputSpec& input) const;
  std::vector<Batch> cut(Batch whole) const;
  int64_t samples_of_batch(const Batch& whole) const;

  std::vector<InputSpec> inputs_;
  int64_t batch_;
  std::vector<Set> sets_;
};

}  // namespace lathe::cli
