// SPDX-License-Identifier: Apache-2.0
// Interfaces that Python classes implement. What a method raises goes to sys.unraisablehook, once, and the default that
// its interface documents is returned: an exception never enters the library.
#include <cstdio>

#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {
namespace {

// self.method(args...) as Result, or `otherwise` when that raises or the interpreter has ended.
template <typename Result, typename Interface, typename... Args>
Result call(const Interface* self, const char* method, Result otherwise, Args... args) noexcept {
  if (!Py_IsInitialized()) return otherwise;
  nb::gil_scoped_acquire gil;
  try {
    return nb::cast<Result>(nb::find(*self).attr(method)(args...));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable(method);
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_TypeError, "%s() returned what its interface does not allow: %s", method, error.what());
    PyErr_WriteUnraisable(nullptr);
  }
  return otherwise;
}

template <typename Interface, typename... Args>
void tell(const Interface* self, const char* method, Args... args) noexcept {
  call<nb::object>(self, method, nb::object(), args...);
}

template <typename Interface>
bool overrides(const Interface* self, const char* method) noexcept {
  nb::gil_scoped_acquire gil;
  return nb::hasattr(nb::find(*self), method);
}

// Addresses come as integers, or as None for null.
template <typename Interface, typename... Args>
void* allocated(const Interface* self, const char* method, Args... args) noexcept {
  if (!Py_IsInitialized()) return nullptr;
  nb::gil_scoped_acquire gil;
  const auto result = call<nb::object>(self, method, nb::none(), args...);
  return result.is_none() ? nullptr : PyLong_AsVoidPtr(result.ptr());
}

struct PyLogger : ILogger {
  void log(Severity severity, const char* message) noexcept override { tell<ILogger>(this, "log", severity, message); }
};

// Writes messages of at least `min_severity` to the standard error stream.
struct Logger : ILogger {
  explicit Logger(Severity severity) : min_severity(severity) {}
  void log(Severity severity, const char* message) noexcept override {
    static constexpr const char* kNames[] = {"F", "E", "W", "I", "V"};
    if (severity <= min_severity)
      std::fprintf(stderr, "[Lathe] [%s] %s\n", kNames[static_cast<int>(severity)], message);
  }
  Severity min_severity;
};

struct PyProfiler : IProfiler {
  void reportLayerTime(const char* name, float ms) noexcept override {
    tell<IProfiler>(this, "report_layer_time", name, ms);
  }
};

struct PyProgressMonitor : IProgressMonitor {
  void phaseStart(const char* phase, const char* parent, int32_t steps) noexcept override {
    tell<IProgressMonitor>(this, "phase_start", phase, parent, steps);
  }
  bool stepComplete(const char* phase, int32_t step) noexcept override {
    return call<bool, IProgressMonitor>(this, "step_complete", false, phase, step);
  }
  void phaseFinish(const char* phase) noexcept override { tell<IProgressMonitor>(this, "phase_finish", phase); }
};

struct PyErrorRecorder : IErrorRecorder {
  int32_t getNbErrors() const noexcept override { return call<int32_t, IErrorRecorder>(this, "get_num_errors", -1); }
  ErrorCode getErrorCode(int32_t index) const noexcept override {
    return call<ErrorCode, IErrorRecorder>(this, "get_error_code", ErrorCode::kUNSPECIFIED_ERROR, index);
  }
  ErrorDesc getErrorDesc(int32_t index) const noexcept override {
    description = call<std::string, IErrorRecorder>(this, "get_error_desc", "", index);
    return description.c_str();
  }
  bool hasOverflowed() const noexcept override { return call<bool, IErrorRecorder>(this, "has_overflowed", false); }
  void clear() noexcept override { tell<IErrorRecorder>(this, "clear"); }
  bool reportError(ErrorCode code, ErrorDesc text) noexcept override {
    return call<bool, IErrorRecorder>(this, "report_error", false, code, text);
  }
  // Python counts the references.
  RefCount incRefCount() noexcept override { return 1; }
  RefCount decRefCount() noexcept override { return 1; }
  mutable std::string description;
};

struct PyOutputAllocator : IOutputAllocator {
  void* reallocateOutputAsync(const char* name, void* memory, uint64_t size, uint64_t alignment,
                              cudaStream_t stream) override {
    if (overrides<IOutputAllocator>(this, "reallocate_output_async"))
      return allocated<IOutputAllocator>(this, "reallocate_output_async", name, address(memory), size, alignment,
                                         address(stream));
    return allocated<IOutputAllocator>(this, "reallocate_output", name, address(memory), size, alignment);
  }
  void notifyShape(const char* name, const Dims& dims) noexcept override {
    tell<IOutputAllocator>(this, "notify_shape", name, dims);
  }
};

struct PyDebugListener : IDebugListener {
  bool processDebugTensor(const void* memory, TensorLocation location, DataType type, const Dims& shape,
                          const char* name, cudaStream_t stream) override {
    tell<IDebugListener>(this, "process_debug_tensor", address(memory), location, type, shape, name, address(stream));
    return true;
  }
};

struct PyGpuAllocator : IGpuAllocator {
  void* allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) noexcept override {
    return allocated<IGpuAllocator>(this, "allocate", size, alignment, flags);
  }
  bool deallocate(void* memory) noexcept override {
    return call<bool, IGpuAllocator>(this, "deallocate", false, address(memory));
  }
  void* reallocate(void* memory, uint64_t alignment, uint64_t size) noexcept override {
    if (!overrides<IGpuAllocator>(this, "reallocate")) return nullptr;
    return allocated<IGpuAllocator>(this, "reallocate", address(memory), alignment, size);
  }
};

struct PyStreamWriter : IStreamWriter {
  int64_t write(const void* data, int64_t size) override {
    if (!Py_IsInitialized()) return 0;
    nb::gil_scoped_acquire gil;
    return call<int64_t, IStreamWriter>(this, "write", 0, nb::bytes(data, static_cast<size_t>(size)));
  }
};

}  // namespace

void bind_callbacks(nb::module_& m) {
  nb::class_<ILogger, PyLogger>(m, "ILogger", "Subclass it and define log(severity, msg), which any thread may call.")
      .def(nb::init<>());
  bind_runtime_enums(m);
  nb::class_<Logger, ILogger>(m, "Logger", "Writes to the standard error stream.")
      .def(nb::init<ILogger::Severity>(), nb::arg("min_severity") = ILogger::Severity::kWARNING)
      .def_rw("min_severity", &Logger::min_severity)
      .def("log", &Logger::log, nb::arg("severity"), nb::arg("msg"));
  nb::class_<IProfiler, PyProfiler>(m, "IProfiler", "Subclass: report_layer_time(layer_name, ms).").def(nb::init<>());
  nb::class_<IProgressMonitor, PyProgressMonitor>(m, "IProgressMonitor",
                                                  "Subclass: phase_start(phase_name, parent_phase, num_steps), "
                                                  "step_complete(phase_name, step) -> bool, where False "
                                                  "gives the build up, and phase_finish(phase_name).")
      .def(nb::init<>());
  nb::class_<IErrorRecorder, PyErrorRecorder>(
      m, "IErrorRecorder",
      "Subclass: report_error(code, desc), get_num_errors, get_error_code, get_error_desc, has_overflowed, clear.")
      .def(nb::init<>());
  nb::class_<IOutputAllocator, PyOutputAllocator>(
      m, "IOutputAllocator",
      "Subclass: reallocate_output(tensor_name, memory, size, alignment) -> address, sizes in bytes, or "
      "reallocate_output_async, which is given the stream too; notify_shape(tensor_name, shape).")
      .def(nb::init<>());
  nb::class_<IDebugListener, PyDebugListener>(
      m, "IDebugListener", "Subclass: process_debug_tensor(addr, location, type, shape, name, stream).")
      .def(nb::init<>());
  nb::class_<IGpuAllocator, PyGpuAllocator>(
      m, "IGpuAllocator", "Subclass: allocate(size, alignment, flags) -> address, deallocate(memory) -> bool.")
      .def(nb::init<>());
  nb::class_<IStreamWriter, PyStreamWriter>(m, "IStreamWriter", "Subclass: write(data) -> bytes written.")
      .def(nb::init<>());
}

}  // namespace lathe::python
