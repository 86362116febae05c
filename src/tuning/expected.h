// SPDX-License-Identifier: Apache-2.0
// What a region's kernels are compared with.
#pragma once

#include <vector>

#include "device/program.h"
#include "ops/tensor.h"

namespace lathe {

// Whether a program rounds its results to whole numbers: operands that differ in their last bits may then give results
// that differ by a whole step.
bool rounds(const Program& program);

// A region's result by the plain evaluation.
struct Expected {
  Tensor values;  // dense row-major, in f32
  Program program;
  std::vector<Tensor> registers;  // the program's inputs, for each element of `values`; empty where nothing rounds
  std::vector<float> errors;      // how far a correct kernel may be off in each register
  std::vector<DType> types = {};  // of each register, to which a kernel may round it before the program, or not

  // Whether element `i` may be `value`, give or take `error`, because a register lies at a tie and was rounded to the
  // other side: `value` lies among the results for that register moved by its error in both directions.
  bool explains(int64_t i, float value, double error) const;
  // Whether it lies among what the program gives of a register as it is and of one that was rounded to its type of 16
  // bits before.
  bool is_of_rounded(int64_t i, float value) const;

 private:
  template <class Shift>
  bool lies_among(int64_t i, float value, double error, const Shift& shift) const;
};

// Whether a kernel's result is right, give or take that part of the largest number, or so many levels: integers may
// differ by that much where a float before their rounding differs in its last bits.
bool agrees(const Tensor& got, const Expected& expected, double tolerance, double levels);

}  // namespace lathe
