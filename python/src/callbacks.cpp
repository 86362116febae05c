// SPDX-License-Identifier: Apache-2.0
// Interfaces that Python classes implement, but for those of plugins.
#include <cstdio>
#include <cstring>

#include <nanobind/stl/optional.h>

#include "trampoline.h"

using namespace nvinfer1;

namespace lathe::python {
namespace {

struct PyLogger : InPython<ILogger> {
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

struct PyProfiler : InPython<IProfiler> {
  void reportLayerTime(const char* name, float ms) noexcept override {
    tell<IProfiler>(this, "report_layer_time", name, ms);
  }
};

// Writes each layer's time to the standard output stream.
struct Profiler : IProfiler {
  void reportLayerTime(const char* name, float ms) noexcept override { std::printf("%s: %gms\n", name, double{ms}); }
};

struct PyProgressMonitor : InPython<IProgressMonitor> {
  void phaseStart(const char* phase, const char* parent, int32_t steps) noexcept override {
    tell<IProgressMonitor>(this, "phase_start", phase, parent, steps);
  }
  bool stepComplete(const char* phase, int32_t step) noexcept override {
    return call<bool, IProgressMonitor>(this, "step_complete", false, phase, step);
  }
  void phaseFinish(const char* phase) noexcept override { tell<IProgressMonitor>(this, "phase_finish", phase); }
};

struct PyErrorRecorder : InPython<IErrorRecorder> {
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

struct PyOutputAllocator : InPython<IOutputAllocator> {
  void* reallocateOutputAsync(const char* name, void* memory, uint64_t size, uint64_t alignment,
                              cudaStream_t stream) override {
    if (overrides<IOutputAllocator>(this, "reallocate_output_async"))
      return call<void*, IOutputAllocator>(this, "reallocate_output_async", nullptr, name, address(memory), size,
                                           alignment, address(stream));
    return call<void*, IOutputAllocator>(this, "reallocate_output", nullptr, name, address(memory), size, alignment);
  }
  void notifyShape(const char* name, const Dims& dims) noexcept override {
    tell<IOutputAllocator>(this, "notify_shape", name, dims);
  }
};

struct PyDebugListener : InPython<IDebugListener> {
  bool processDebugTensor(const void* memory, TensorLocation location, DataType type, const Dims& shape,
                          const char* name, cudaStream_t stream) override {
    tell<IDebugListener>(this, "process_debug_tensor", address(memory), location, type, shape, name, address(stream));
    return true;
  }
};

struct PyGpuAllocator : InPython<IGpuAllocator> {
  void* allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) noexcept override {
    return call<void*, IGpuAllocator>(this, "allocate", nullptr, size, alignment, flags);
  }
  bool deallocate(void* memory) noexcept override {
    return call<bool, IGpuAllocator>(this, "deallocate", false, address(memory));
  }
  void* reallocate(void* memory, uint64_t alignment, uint64_t size) noexcept override {
    if (!overrides<IGpuAllocator>(this, "reallocate")) return nullptr;
    return call<void*, IGpuAllocator>(this, "reallocate", nullptr, address(memory), alignment, size);
  }
};

struct PyGpuAsyncAllocator : InPython<IGpuAsyncAllocator> {
  // The order of the arguments is the original's.
  void* allocateAsync(uint64_t size, uint64_t alignment, AllocatorFlags flags, cudaStream_t stream) noexcept override {
    return call<void*, IGpuAsyncAllocator>(this, "allocate_async", nullptr, size, alignment, address(stream), flags);
  }
  bool deallocateAsync(void* memory, cudaStream_t stream) noexcept override {
    return call<bool, IGpuAsyncAllocator>(this, "deallocate_async", false, address(memory), address(stream));
  }
  void* reallocate(void* memory, uint64_t alignment, uint64_t size) noexcept override {
    if (!overrides<IGpuAsyncAllocator>(this, "reallocate")) return nullptr;
    return call<void*, IGpuAsyncAllocator>(this, "reallocate", nullptr, address(memory), alignment, size);
  }
};

struct PyStreamWriter : InPython<IStreamWriter> {
  int64_t write(const void* data, int64_t size) override {
    return guarded("write", int64_t{0}, [&] {
      const nb::bytes bytes(data, static_cast<size_t>(size));
      return result_of<int64_t>(python_object<IStreamWriter>(this).attr("write")(bytes));
    });
  }
};

struct PyStreamReader : InPython<IStreamReaderV2> {
  int64_t read(void* destination, int64_t size, cudaStream_t stream) noexcept override {
    return guarded("read", int64_t{0}, [&] {
      const nb::object buffer = python_object<IStreamReaderV2>(this).attr("read")(size, address(stream));
      const Bytes bytes(buffer);
      if (bytes.size() > static_cast<size_t>(size)) throw nb::value_error("returned more bytes than it was asked for");
      if (bytes.size() > 0) std::memcpy(destination, bytes.data(), bytes.size());
      return static_cast<int64_t>(bytes.size());
    });
  }
  bool seek(int64_t offset, SeekPosition where) noexcept override {
    return call<bool, IStreamReaderV2>(this, "seek", false, offset, where);
  }
};

void bind_interface_root(nb::module_& m) {
  nb::enum_<APILanguage>(m, "APILanguage", nb::is_arithmetic(), "What an object of an interface is written in.")
      .value("CPP", APILanguage::kCPP)
      .value("PYTHON", APILanguage::kPYTHON);
  nb::class_<InterfaceInfo>(m, "InterfaceInfo", "Which interface an object implements.")
      .def_ro("kind", &InterfaceInfo::kind, "The name of the interface.")
      .def_rw("major", &InterfaceInfo::major, "The version; it differs where methods do.")
      .def_rw("minor", &InterfaceInfo::minor, "The version; it is higher where methods were added.");
  nb::class_<IVersionedInterface>(m, "IVersionedInterface", "Root of what programs implement and the library calls.")
      .def_prop_ro("api_language", &IVersionedInterface::getAPILanguage, "What the object is written in.")
      .def_prop_ro("interface_info", &IVersionedInterface::getInterfaceInfo,
                   "Which interface it implements, of which version.");
}

void bind_memory_callbacks(nb::module_& m) {
  nb::class_<IOutputAllocator, IVersionedInterface, PyOutputAllocator>(
      m, "IOutputAllocator",
      "Subclass: reallocate_output(tensor_name, memory, size, alignment) -> address, sizes in bytes, or "
      "reallocate_output_async, which is given the stream too; notify_shape(tensor_name, shape).")
      .def(nb::init<>());
  nb::class_<IGpuAllocator, IVersionedInterface, PyGpuAllocator>(
      m, "IGpuAllocator",
      "Subclass: allocate(size, alignment, flags) -> address or None, deallocate(memory) -> bool, and, for blocks that "
      "may grow, reallocate(memory, alignment, new_size) -> address or None. Sizes in bytes; from any thread.")
      .def(nb::init<>())
      .def("allocate", to_define<std::optional<size_t>, uint64_t, uint64_t, AllocatorFlags>("allocate"),
           nb::arg("size"), nb::arg("alignment"), nb::arg("flags"),
           "To be defined: the address of memory for size bytes, or None. alignment: 0 or a power of two.")
      .def("deallocate", to_define<bool, size_t>("deallocate"), nb::arg("memory"),
           "To be defined: frees memory that allocate() gave. False where it is none.")
      .def(
          "reallocate", [](nb::handle, size_t, uint64_t, uint64_t) { return std::optional<size_t>(); },
          nb::arg("memory"), nb::arg("alignment"), nb::arg("new_size"),
          "None: blocks do not grow unless a subclass says how.")
      .def(
          "allocate_async",
          [](nb::handle self, uint64_t size, uint64_t alignment, AllocatorFlags flags, size_t) {
            return nb::cast<std::optional<size_t>>(self.attr("allocate")(size, alignment, flags));
          },
          nb::arg("size"), nb::arg("alignment"), nb::arg("flags"), nb::arg("stream"),
          "As allocate(), for use on a stream, unless a subclass says how.")
      .def(
          "deallocate_async",
          [](nb::handle self, size_t memory, size_t) { return nb::cast<bool>(self.attr("deallocate")(memory)); },
          nb::arg("memory"), nb::arg("stream"),
          "As deallocate(), once a stream has got there, unless a subclass says how.");
  nb::class_<IGpuAsyncAllocator, IGpuAllocator, PyGpuAsyncAllocator>(
      m, "IGpuAsyncAllocator",
      "Subclass: allocate_async(size, alignment, stream, flags) -> address or None, deallocate_async(memory, stream) "
      "-> "
      "bool. Calls give the arguments by position, in this order, as the original does.")
      .def(nb::init<>())
      .def("allocate_async",
           to_define<std::optional<size_t>, uint64_t, uint64_t, size_t, AllocatorFlags>("allocate_async"),
           nb::arg("size"), nb::arg("alignment"), nb::arg("stream"), nb::arg("flags"),
           "To be defined: the address of memory for size bytes, or None, for use on the stream.")
      .def("deallocate_async", to_define<bool, size_t, size_t>("deallocate_async"), nb::arg("memory"),
           nb::arg("stream"), "To be defined: frees memory once the stream has got there. False where it is none.");
  nb::class_<IStreamWriter, IVersionedInterface, PyStreamWriter>(
      m, "IStreamWriter", "Subclass: write(data) -> bytes written; fewer than len(data) end the call that writes.")
      .def(nb::init<>())
      .def("write", to_define<int64_t, nb::bytes>("write"), nb::arg("data"),
           "To be defined: writes data and returns how many bytes; fewer than all end the call that writes.");
  nb::class_<IStreamReaderV2, IVersionedInterface, PyStreamReader>(
      m, "IStreamReaderV2",
      "Subclass: read(num_bytes, stream) -> at most so many bytes, as an object with the buffer protocol, none at the "
      "end; "
      "seek(offset, where) -> bool.")
      .def(nb::init<>())
      .def("read", to_define<nb::object, int64_t, size_t>("read"), nb::arg("num_bytes"), nb::arg("stream"),
           "To be defined: at most num_bytes bytes from where the reader stands, none at the end.")
      .def("seek", to_define<bool, int64_t, SeekPosition>("seek"), nb::arg("offset"), nb::arg("where"),
           "To be defined: moves the reader to offset, counted from where, a SeekPosition. False on failure.");
}

}  // namespace

void bind_callbacks(nb::module_& m) {
  bind_interface_root(m);
  nb::class_<ILogger, IVersionedInterface, PyLogger> logger(
      m, "ILogger", "Subclass it and define log(severity, msg), which any thread may call.");
  freed_by_last_reference(logger);
  logger.def(nb::init<>())
      .def("log", to_define<void, ILogger::Severity, const char*>("log"), nb::arg("severity"), nb::arg("msg"),
           "To be defined: takes a message. Any thread may call it.");
  bind_runtime_enums(m);
  nb::class_<Logger, ILogger>(m, "Logger", "Writes to the standard error stream.")
      .def(nb::init<ILogger::Severity>(), nb::arg("min_severity") = ILogger::Severity::kWARNING)
      .def_rw("min_severity", &Logger::min_severity,
              "The least severe messages that are written; WARNING unless given.")
      .def("log", &Logger::log, nb::arg("severity"), nb::arg("msg"), "Writes the message, where it is severe enough.");
  nb::class_<IProfiler, IVersionedInterface, PyProfiler>(m, "IProfiler",
                                                         "Subclass: report_layer_time(layer_name, ms), milliseconds.")
      .def(nb::init<>())
      .def("report_layer_time", to_define<void, const char*, float>("report_layer_time"), nb::arg("layer_name"),
           nb::arg("ms"), "To be defined: takes the time of a layer in a run, milliseconds.");
  nb::class_<Profiler, IProfiler>(m, "Profiler", "Writes the time of each layer to the standard output stream.")
      .def(nb::init<>())
      .def("report_layer_time", &Profiler::reportLayerTime, nb::arg("layer_name"), nb::arg("ms"),
           "Writes a line with the time.");
  nb::class_<IProgressMonitor, IVersionedInterface, PyProgressMonitor>(
      m, "IProgressMonitor",
      "Subclass: phase_start(phase_name, parent_phase, num_steps), "
      "step_complete(phase_name, step) -> bool, where False "
      "gives the build up, and phase_finish(phase_name).")
      .def(nb::init<>())
      .def("phase_start", to_define<void, const char*, std::optional<std::string>, int32_t>("phase_start"),
           nb::arg("phase_name"), nb::arg("parent_phase").none(), nb::arg("num_steps"),
           "To be defined: a phase of a build begins; parent_phase is None for outermost ones.")
      .def("step_complete", to_define<bool, const char*, int32_t>("step_complete"), nb::arg("phase_name"),
           nb::arg("step"), "To be defined: a step of a phase is done. Returns whether the build is to go on.")
      .def("phase_finish", to_define<void, const char*>("phase_finish"), nb::arg("phase_name"),
           "To be defined: a phase ends, perhaps before all steps are done.");
  nb::class_<IErrorRecorder, IVersionedInterface, PyErrorRecorder> recorder(
      m, "IErrorRecorder",
      "Subclass: report_error(code, desc), get_num_errors, get_error_code, get_error_desc, has_overflowed, clear.");
  recorder.attr("MAX_DESC_LENGTH") = static_cast<int>(IErrorRecorder::kMAX_DESC_LENGTH);
  recorder.def(nb::init<>())
      .def("num_errors", to_define<int32_t>("num_errors"),
           "To be defined, as get_num_errors(): how many errors are recorded.")
      .def("get_error_code", to_define<ErrorCode, int32_t>("get_error_code"), nb::arg("index"),
           "To be defined: the code of error index.")
      .def("get_error_desc", to_define<std::string, int32_t>("get_error_desc"), nb::arg("index"),
           "To be defined: the text of error index.")
      .def("has_overflowed", to_define<bool>("has_overflowed"),
           "To be defined: whether errors were dropped for want of room.")
      .def("clear", to_define<void>("clear"), "To be defined: forgets all errors.")
      .def("report_error", to_define<bool, ErrorCode, const char*>("report_error"), nb::arg("code"), nb::arg("desc"),
           "To be defined: records an error. Any thread may call it. Returns whether it is one that ends what was "
           "asked for.");
  nb::class_<IDebugListener, IVersionedInterface, PyDebugListener>(
      m, "IDebugListener", "Subclass: process_debug_tensor(addr, location, type, shape, name, stream).")
      .def(nb::init<>())
      .def("process_debug_tensor",
           to_define<bool, size_t, TensorLocation, DataType, Dims, const char*, size_t>("process_debug_tensor"),
           nb::arg("addr"), nb::arg("location"), nb::arg("type"), nb::arg("shape"), nb::arg("name"), nb::arg("stream"),
           "To be defined: a debug tensor has been computed, and lies at an address until the call returns. False "
           "reports a failure.");
  bind_memory_callbacks(m);
}

}  // namespace lathe::python
