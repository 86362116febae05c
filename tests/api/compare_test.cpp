// SPDX-License-Identifier: Apache-2.0
// Tensors compared, and the plain evaluation in doubles.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "lathe.h"
#include "source_dir.h"

namespace lathe {
namespace {

using nvinfer1::DataType;
using nvinfer1::Dims;

template <class T>
NamedTensor tensor(const char* name, DataType type, const std::vector<T>& values) {
  return {name, type, Dims{1, {static_cast<int64_t>(values.size())}}, values.data()};
}

nlohmann::json compare(const NamedTensor& have, const NamedTensor& want, const char* options = nullptr) {
  const std::unique_ptr<nvinfer1::IHostMemory> report(compareTensorsJson(have, want, options));
  EXPECT_NE(report, nullptr) << lastError();
  return report ? nlohmann::json::parse(static_cast<const char*>(report->data())) : nlohmann::json();
}

TEST(CompareTensors, Numbers) {
  const std::vector<float> have = {3, 4, 0.5f};
  const std::vector<double> want = {3, 2, 0};
  const nlohmann::json report = compare(tensor("x", DataType::kFLOAT, have), tensor("y", kDOUBLE, want));
  EXPECT_EQ(report["name"], "y");
  EXPECT_FALSE(report["passed"]);
  EXPECT_EQ(report["elements"], 3);
  EXPECT_EQ(report["mismatches"], 2);
  EXPECT_EQ(report["max_abs"], 2);
  EXPECT_EQ(report["max_rel"], 1);
  EXPECT_DOUBLE_EQ(report["rms"], std::sqrt(4.25 / 3));
  EXPECT_DOUBLE_EQ(report["cosine"], 17 / (std::sqrt(25.25) * std::sqrt(13.0)));
  EXPECT_TRUE(compare(tensor("x", DataType::kFLOAT, have), tensor("y", kDOUBLE, want), R"({"atol": 2})")["passed"]);
}

TEST(CompareTensors, ZerosAndWhatIsNotFinite) {
  const std::vector<float> zeros = {0, 0}, ones = {1, 1}, odd = {NAN, std::numeric_limits<float>::infinity()};
  const auto of = [](const std::vector<float>& values) { return tensor("x", DataType::kFLOAT, values); };
  EXPECT_EQ(compare(of(zeros), of(zeros))["cosine"], 1);
  EXPECT_EQ(compare(of(zeros), of(ones))["cosine"], 0);
  EXPECT_TRUE(compare(of(odd), of(odd))["passed"]);
  EXPECT_FALSE(compare(of(odd), of(ones))["passed"]);
  EXPECT_EQ(compare(of(odd), of(ones))["mismatches"], 2);
  EXPECT_EQ(compare(of(ones), of(odd))["mismatches"], 2);
  EXPECT_TRUE(compare(of(odd), of(ones))["max_abs"].is_null());
}

TEST(CompareTensors, OthersAreToldApartOrRefused) {
  const std::vector<float> two = {1, 2}, three = {1, 2, 3};
  const std::vector<int32_t> integers = {1, 2};
  const NamedTensor x = tensor("x", DataType::kFLOAT, two);
  EXPECT_TRUE(compare(x, tensor("y", DataType::kFLOAT, three)).contains("message"));
  EXPECT_TRUE(compare(x, tensor("y", DataType::kINT32, integers)).contains("message"));
  NamedTensor bad = x;
  bad.data = nullptr;
  EXPECT_EQ(compareTensorsJson(bad, x, nullptr), nullptr);
  bad = x;
  bad.name = nullptr;
  EXPECT_EQ(compareTensorsJson(x, bad, nullptr), nullptr);
  bad.data = nullptr;
  EXPECT_EQ(compareTensorsJson(bad, x, nullptr), nullptr);
  EXPECT_NE(std::string(lastError()).find("tensor's name is null"), std::string::npos) << lastError();
  bad = x;
  bad.dims.d[0] = -1;
  EXPECT_EQ(compareTensorsJson(x, bad, nullptr), nullptr);
  EXPECT_EQ(compareTensorsJson(x, x, R"({"doubles": 1})"), nullptr);
  EXPECT_EQ(compareTensorsJson(x, x, R"({"atol": -1})"), nullptr);
}

// The error of f32 is seen, and no other.
TEST(EvaluateInDoubles, Digits) {
  const std::string digits = source_path("/examples/digits/digits.onnx");
  std::vector<float> pixels(64);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 7) / 7;
  const NamedTensor image{"image", DataType::kFLOAT, Dims{4, {1, 1, 8, 8}}, pixels.data()};
  const std::unique_ptr<ITensorList> wide(evaluateInDoubles(digits.c_str(), &image, 1, true));
  const std::unique_ptr<ITensorList> plain(evaluate(digits.c_str(), &image, 1, true));
  ASSERT_TRUE(wide && plain) << lastError();
  ASSERT_EQ(wide->size(), plain->size());
  double most = 0;
  for (int32_t i = 0; i < wide->size(); ++i) {
    EXPECT_STREQ(wide->get(i)->name, plain->get(i)->name);
    EXPECT_EQ(wide->get(i)->type, kDOUBLE) << wide->get(i)->name;
    const nlohmann::json report = compare(*plain->get(i), *wide->get(i));
    EXPECT_TRUE(report["passed"]) << report;
    most = std::max(most, report["max_abs"].get<double>());
  }
  EXPECT_GT(most, 0);
  EXPECT_EQ(evaluateInDoubles("no_such.onnx", &image, 1), nullptr);
}

}  // namespace
}  // namespace lathe
