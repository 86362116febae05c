// SPDX-License-Identifier: Apache-2.0
// Calls that no program should make: none crashes, each that fails says so, and says so once.
#pragma once

#include <limits>
#include <type_traits>

#include "NvInferPlugin.h"
#include "NvOnnxParser.h"
#include "api/small_engine.h"
#include "source_dir.h"

namespace nvinfer1 {

inline const std::string kDigits = lathe::source_path("/examples/digits/digits.onnx");

inline bool failed(bool result) { return !result; }
inline bool failed(const void* result) { return !result; }
inline bool failed(const char* result) { return !result || !*result; }
inline bool failed(int32_t result) { return result == -1; }
inline bool failed(int64_t result) { return result == -1; }
inline bool failed(size_t result) { return result == 0; }
inline bool failed(const Dims& result) { return result.nbDims == -1; }
template <class Enum>
requires std::is_enum_v<Enum>
bool failed(Enum) { return true; }  // has no value to spare

template <class Enum>
Enum no_such() {
  return static_cast<Enum>(EnumMax<Enum>() + 7);
}

class MisuseTest : public EngineTest {
 protected:
  // `call` fails with one report.
  template <class Call>
  void refuses(const char* name, Call&& call) {
    const size_t before = logger.text.size();
    bool has_failed = true;
    if constexpr (std::is_void_v<decltype(call())>)
      call();
    else
      has_failed = failed(call());
    expect_refused(name, has_failed, before);
  }
  // Functions of lathe.h that know no logger leave their report in lastError().
  template <class Call>
  void notes(const char* name, Call&& call) {
    const size_t before = logger.text.size();
    forget_last_error();
    const bool has_failed = failed(call());
    expect_noted(name, has_failed, before);
  }
  // A question that has an answer, even if it is "none".
  template <class Call>
  void answers(const char* name, Call&& call) {
    const size_t before = logger.text.size();
    call();
    expect_silence(name, before);
  }
  static void forget_last_error() { lathe::supportJson(nullptr); }
  Dims bad_dims() const {
    Dims dims{};
    dims.nbDims = 99;
    return dims;
  }

 private:
  // What the calls above have in common, so that it is not compiled for each of them. The logger had `before` reports.
  void expect_refused(const char* name, bool has_failed, size_t before) const {
    EXPECT_TRUE(has_failed) << name;
    EXPECT_EQ(logger.text.size(), before + 1) << name << ": " << logger.last();
    if (logger.text.size() > before) {
      EXPECT_NE(logger.last().find("LATHE-"), std::string::npos) << logger.last();
    }
  }
  void expect_noted(const char* name, bool has_failed, size_t before) const {
    EXPECT_TRUE(has_failed) << name;
    EXPECT_NE(std::string(lathe::lastError()).find("LATHE-"), std::string::npos) << name;
    EXPECT_EQ(std::string(lathe::lastError()).find("LATHE-9999"), std::string::npos) << name << lathe::lastError();
    EXPECT_EQ(logger.text.size(), before) << name;
  }
  void expect_silence(const char* name, size_t before) const {
    EXPECT_EQ(logger.text.size(), before) << name << ": " << logger.last();
  }
};

}  // namespace nvinfer1
