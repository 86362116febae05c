// SPDX-License-Identifier: Apache-2.0
// Calibrators of generation 10, which give the ranges of values that int8 stands for. Include NvInfer.h instead.
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

// Base of the calibrators that an application implements; IBuilderConfig::setInt8Calibrator() hands one to builds. The
// thread that builds calls it. It gives a cache or else batches: a network in floats runs over these on the host, and
// what was found is handed back as a cache.
class TRT_DEPRECATED IInt8Calibrator : public IVersionedInterface {
 public:
  // Not asked: the sizes of a batch are those of IBuilderConfig::setCalibrationProfile().
  virtual int32_t getBatchSize() const noexcept = 0;

  // Writes to bindings[i] the address of the next batch of input names[i], dense and row-major, in memory of the host
  // or of the device that the build is for; it stays valid until the next call. False where no batch is left. Inputs
  // whose values a profile gives are no part of a batch.
  virtual bool getBatch(void* bindings[], const char* names[], int32_t nbBindings) noexcept = 0;

  // The text of an earlier calibration by the same algorithm, or nullptr; it spares asking for batches. Valid until the
  // build is done. Caches that TensorRT has written are read, too.
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

  // In [0, 1]: the part of the magnitudes that the range holds.
  virtual double getQuantile() const noexcept = 0;
  // Not asked: the quantile says it.
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
