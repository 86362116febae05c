// SPDX-License-Identifier: Apache-2.0
#include "quantization/calibration_cache.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

TEST(CalibrationCache, IsTheTextThatProgramsKnow) {
  const CalibrationCache cache{"EntropyCalibration2", {{"input: 0", 1.0f / 127}, {"y", 0.5f}}};
  const std::string text = to_text(cache, 101600);
  EXPECT_EQ(text, "TRT-101600-EntropyCalibration2\ninput: 0: 3c010204\ny: 3f000000\n");
  const Result<CalibrationCache> read = parse_calibration_cache(text);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->method, cache.method);
  EXPECT_EQ(read->scales, cache.scales);
}

TEST(CalibrationCache, OfOtherVersionsIsRead) {
  const Result<CalibrationCache> read =
      parse_calibration_cache("TRT-8501-MinMaxCalibration\r\nimages: 3c010a14\r\n\r\n");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->method, "MinMaxCalibration");
  EXPECT_FLOAT_EQ(read->scales.at("images"), 0.0078759379684925079f);
}

TEST(CalibrationCache, WrongLinesAreNamed) {
  const std::pair<const char*, const char*> texts[] = {{"", "empty"},
                                                       {"cache", "line 1"},
                                                       {"TRT-8501", "line 1"},
                                                       {"TRT-8501-", "line 1"},
                                                       {"TRT-1-A\nx 3c010a14", "line 2"},
                                                       {"TRT-1-A\nx: 3c010a1", "line 2"},
                                                       {"TRT-1-A\nx: 3f000000\ny: 3c010aZ4", "line 3"},
                                                       {"TRT-1-A\nx: 7fc00000", "line 2"},
                                                       {"TRT-1-A\nx: bf000000", "line 2"}};
  for (const auto& [text, wanted] : texts) {
    const Result<CalibrationCache> read = parse_calibration_cache(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find(wanted), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace lathe
