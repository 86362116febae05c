// SPDX-License-Identifier: Apache-2.0
// What every other header builds on: export macros, element types, dims, error codes, versioned interfaces.
#ifndef NV_INFER_RUNTIME_BASE_H
#define NV_INFER_RUNTIME_BASE_H

#include <climits>
#include <cstddef>
#include <cstdint>

#include "NvInferVersion.h"

// Programs that call CUDA's runtime, too, find it included where it is installed.
#if defined(__has_include) && !defined(LATHE_WITHOUT_CUDA_HEADERS)
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif
#endif

#ifdef _MSC_VER
#define TRT_DEPRECATED __declspec(deprecated)
#define TRT_DEPRECATED_BECAUSE(REASON) __declspec(deprecated(REASON))
#define TRT_DEPRECATED_API __declspec(dllexport)
#ifdef TENSORRT_BUILD_LIB
#define TENSORRTAPI __declspec(dllexport)
#else
#define TENSORRTAPI
#endif
#else
#define TRT_DEPRECATED [[deprecated]]
#define TRT_DEPRECATED_BECAUSE(REASON) [[deprecated(REASON)]]
#define TRT_DEPRECATED_API [[deprecated]] __attribute__((visibility("default")))
#define TENSORRTAPI __attribute__((visibility("default")))
#endif
#define TRT_DEPRECATED_ENUM TRT_DEPRECATED
#define TRT_NODISCARD [[nodiscard]]
#define TRT_NODISCARD_BECAUSE(REASON) [[nodiscard]]
#define TRTNOEXCEPT

// One integer per interface version; the C entry points check it.
#define NV_TENSORRT_VERSION_INT(major, minor, patch) ((major)*10000L + (minor)*100L + (patch)*1L)
#define NV_TENSORRT_VERSION NV_TENSORRT_VERSION_INT(NV_TENSORRT_MAJOR, NV_TENSORRT_MINOR, NV_TENSORRT_PATCH)

// Declared as CUDA declares them, so that no CUDA header is needed.
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
struct cublasContext;
struct cudnnContext;

namespace nvinfer1 {

using char_t = char;
using AsciiChar = char_t;

namespace impl {
template <typename T>
struct EnumMaxImpl;
}  // namespace impl

// One more than the largest value of enum T.
template <typename T>
constexpr int32_t EnumMax() noexcept {
  return impl::EnumMaxImpl<T>::kVALUE;
}

enum class DataType : int32_t {
  kFLOAT = 0,  // 32-bit IEEE
  kHALF = 1,   // 16-bit IEEE
  kINT8 = 2,   // signed, quantized
  kINT32 = 3,  //
  kBOOL = 4,   // one byte, 0 or 1
  kUINT8 = 5,  // network inputs, outputs and casts only
  kFP8 = 6,    // E4M3
  kBF16 = 7,   //
  kINT64 = 8,  //
  kINT4 = 9,   // two per byte, first element in the low bits
  kFP4 = 10,   // E2M1, two per byte
  kE8M0 = 11,  // power-of-two scales only
};
template <>
struct impl::EnumMaxImpl<DataType> {
  static constexpr int32_t kVALUE = 12;
};

// Sizes of a tensor, outermost first. -1 in `d` is a size known at run time only. Sentinels: nbDims -1 with every d 0
// is "invalid", nbDims -1 with every d -1 is "unknown rank".
class Dims64 {
 public:
  static constexpr int32_t MAX_DIMS{8};

  int32_t nbDims;
  int64_t d[MAX_DIMS];
};
using Dims = Dims64;

// `kind` names the interface; clients may compare its text.
using InterfaceKind = const char*;
class InterfaceInfo {
 public:
  InterfaceKind kind;
  int32_t major;
  int32_t minor;
};

enum class APILanguage : int32_t {
  kCPP = 0,
  kPYTHON = 1,
};
template <>
struct impl::EnumMaxImpl<APILanguage> {
  static constexpr int32_t kVALUE = 2;
};

// Base of every interface that the application implements. Applications override neither of these two.
class IVersionedInterface {
 public:
  virtual APILanguage getAPILanguage() const noexcept { return APILanguage::kCPP; }
  virtual InterfaceInfo getInterfaceInfo() const noexcept = 0;
  virtual ~IVersionedInterface() noexcept = default;

 protected:
  IVersionedInterface() = default;
  IVersionedInterface(const IVersionedInterface&) = default;
  IVersionedInterface(IVersionedInterface&&) = default;
  IVersionedInterface& operator=(const IVersionedInterface&) & = default;
  IVersionedInterface& operator=(IVersionedInterface&&) & = default;
};

enum class ErrorCode : int32_t {
  kSUCCESS = 0,
  kUNSPECIFIED_ERROR = 1,
  kINTERNAL_ERROR = 2,
  kINVALID_ARGUMENT = 3,
  kINVALID_CONFIG = 4,
  kFAILED_ALLOCATION = 5,
  kFAILED_INITIALIZATION = 6,
  kFAILED_EXECUTION = 7,
  kFAILED_COMPUTATION = 8,
  kINVALID_STATE = 9,
  kUNSUPPORTED_STATE = 10,
};
template <>
struct impl::EnumMaxImpl<ErrorCode> {
  static constexpr int32_t kVALUE = 11;
};

namespace v_1_0 {

// Where the library reports errors. Implemented by the application, reference counted by it, called from any thread.
// An object without a recorder of its own uses its parent's (builder -> network, runtime -> engine -> context).
class IErrorRecorder : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IErrorRecorder", 1, 0}; }

  using ErrorDesc = const char*;
  static constexpr size_t kMAX_DESC_LENGTH{127U};  // longer descriptions may be cut
  using RefCount = int32_t;

  IErrorRecorder() = default;
  ~IErrorRecorder() noexcept override = default;

  virtual int32_t getNbErrors() const noexcept = 0;

  // kUNSPECIFIED_ERROR and "" when errorIdx is out of range.
  virtual ErrorCode getErrorCode(int32_t errorIdx) const noexcept = 0;
  virtual ErrorDesc getErrorDesc(int32_t errorIdx) const noexcept = 0;

  // True when reports were dropped for lack of room.
  virtual bool hasOverflowed() const noexcept = 0;
  virtual void clear() noexcept = 0;

  // Returns true when the error is fatal for the caller. `desc` is valid during the call only.
  virtual bool reportError(ErrorCode val, ErrorDesc desc) noexcept = 0;

  // The library increments when the recorder is attached and decrements when it is replaced or its object dies.
  virtual RefCount incRefCount() noexcept = 0;
  virtual RefCount decRefCount() noexcept = 0;

 protected:
  IErrorRecorder(const IErrorRecorder&) = default;
  IErrorRecorder(IErrorRecorder&&) = default;
  IErrorRecorder& operator=(const IErrorRecorder&) & = default;
  IErrorRecorder& operator=(IErrorRecorder&&) & = default;
};

}  // namespace v_1_0

using IErrorRecorder = v_1_0::IErrorRecorder;

enum class TensorIOMode : int32_t {
  kNONE = 0,  // not an input or output
  kINPUT = 1,
  kOUTPUT = 2,
};
template <>
struct impl::EnumMaxImpl<TensorIOMode> {
  static constexpr int32_t kVALUE = 3;
};

}  // namespace nvinfer1

// NV_TENSORRT_VERSION of the library that is loaded.
extern "C" TENSORRTAPI int32_t getInferLibVersion() noexcept;

#endif  // NV_INFER_RUNTIME_BASE_H
