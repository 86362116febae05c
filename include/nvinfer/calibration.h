// SPDX-License-Identifier: Apache-2.0
// Calibrators of generation 10, which gave the ranges of values that int8 stands for; builds ask none. Include
// NvInfer.h instead.
#ifndef NVINFER_CALIBRATION_H
#define NVINFER_CALIBRATION_H

#include "nvinfer/network.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

enum class CalibrationAlgoType : int32_t {
  kLEGACY_CALIBRATION = 0,
  kENTROPY_CALIBRATION = 1,
  kENTROPY_CALIBRATION_2 = 2,
  kMINMAX_CALIBRATION = 3,
};
template <>
struct impl::EnumMaxImpl<CalibrationAlgoType> {
  static constexpr int32_t kVALUE = 4;
};

enum class QuantizationFlag : int32_t {
  kCALIBRATE_BEFORE_FUSION = 0,
};
template <>
struct impl::EnumMaxImpl<QuantizationFlag> {
  static constexpr int32_t kVALUE = 1;
};
using QuantizationFlags = uint32_t;

// Base of the calibrators that an application implements.
class TRT_DEPRECATED IInt8Calibrator : public IVersionedInterface {
 public:
  virtual int32_t getBatchSize() const noexcept = 0;

  // Writes to bindings[i] the address of the next batch of input names[i]; false where no batch is left.
  virtual bool getBatch(void* bindings[], const char* names[], int32_t nbBindings) noexcept = 0;

  // The text of an earlier calibration, or nullptr; it spares asking for batches. Valid until the build is done.
  virtual const void* readCalibrationCache(std::size_t& length) noexcept = 0;
  virtual void writeCalibrationCache(const void* ptr, std::size_t length) noexcept = 0;

  virtual CalibrationAlgoType getAlgorithm() noexcept = 0;

  ~IInt8Calibrator() noexcept override = default;
};

namespace v_1_0 {

class TRT_DEPRECATED IInt8EntropyCalibrator : public IInt8Calibrator {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IInt8EntropyCalibrator", 1, 0}; }
  CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kENTROPY_CALIBRATION; }
  ~IInt8EntropyCalibrator() noexcept override = default;
};

class TRT_DEPRECATED IInt8EntropyCalibrator2 : public IInt8Calibrator {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IInt8EntropyCalibrator2", 1, 0}; }
  CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kENTROPY_CALIBRATION_2; }
  ~IInt8EntropyCalibrator2() noexcept override = default;
};

class TRT_DEPRECATED IInt8MinMaxCalibrator : public IInt8Calibrator {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IInt8MinMaxCalibrator", 1, 0}; }
  CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kMINMAX_CALIBRATION; }
  ~IInt8MinMaxCalibrator() noexcept override = default;
};

class TRT_DEPRECATED IInt8LegacyCalibrator : public IInt8Calibrator {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IInt8LegacyCalibrator", 1, 0}; }
  CalibrationAlgoType getAlgorithm() noexcept override { return CalibrationAlgoType::kLEGACY_CALIBRATION; }
  ~IInt8LegacyCalibrator() noexcept override = default;

  // In [0, 1]: the part of the values that the range holds, and the part of the largest one where the search begins.
  virtual double getQuantile() const noexcept = 0;
  virtual double getRegressionCutoff() const noexcept = 0;

  // As readCalibrationCache(), for histograms.
  virtual const void* readHistogramCache(std::size_t& length) noexcept = 0;
  virtual void writeHistogramCache(const void* ptr, std::size_t length) noexcept = 0;
};

}  // namespace v_1_0

using IInt8EntropyCalibrator = v_1_0::IInt8EntropyCalibrator;
using IInt8EntropyCalibrator2 = v_1_0::IInt8EntropyCalibrator2;
using IInt8MinMaxCalibrator = v_1_0::IInt8MinMaxCalibrator;
using IInt8LegacyCalibrator = v_1_0::IInt8LegacyCalibrator;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_CALIBRATION_H
