// SPDX-License-Identifier: Apache-2.0
// What all bindings share. Each bind function fills the module with one topic; module.cpp calls them in order.
#ifndef LATHE_PYTHON_BIND_H
#define LATHE_PYTHON_BIND_H

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "lathe.h"

namespace nb = nanobind;

namespace lathe::python {

// The result is part of the object called and keeps it alive.
inline constexpr auto kInside = nb::rv_policy::reference_internal;
// For calls that take long or that call back from other threads.
using Unlocked = nb::call_guard<nb::gil_scoped_release>;
// Keeps a callback alive that a property is set to.
inline auto kept() { return nb::for_setter(nb::keep_alive<1, 2>()); }
// Lets a property be set to None.
inline auto or_none() { return nb::for_setter(nb::arg("value").none()); }

// The bytes of an object with the buffer protocol, held while this lives. Raises TypeError for other objects and
// BufferError where they are not contiguous.
class Bytes {
 public:
  explicit Bytes(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  const void* data() const { return view_.buf; }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

// Pointers, streams and events are plain integers in Python.
template <typename Pointer>
Pointer pointer(size_t address) {
  return reinterpret_cast<Pointer>(address);
}
inline size_t address(const void* pointer) { return reinterpret_cast<size_t>(pointer); }

// What a factory made; raises RuntimeError with the library's report where it made nothing.
template <typename Object>
Object* made(Object* object) {
  if (object == nullptr) throw std::runtime_error(lathe::lastError());
  return object;
}

// Of engines for the CPU that a configuration builds or a runtime makes; 0: all cores of the process.
template <typename Owner>
void set_cpu_threads(Owner& owner, int32_t threads) {
  if (!lathe::setCpuThreads(owner, threads)) throw nb::value_error(lathe::lastError());
}

// A list of a call that fills an array and returns how many there are; -1 is a failure.
template <typename Element, typename Fill>
std::vector<Element> filled(Fill fill) {
  const auto count = fill(0, nullptr);
  if (count < 0) throw std::runtime_error(lathe::lastError());
  std::vector<Element> elements(static_cast<size_t>(count));
  fill(count, elements.data());
  return elements;
}

// [min, opt, max] of what get(selector) returns.
template <typename Get>
auto ranges_of(Get get) {
  using nvinfer1::OptProfileSelector;
  return std::vector{get(OptProfileSelector::kMIN), get(OptProfileSelector::kOPT), get(OptProfileSelector::kMAX)};
}

// Elements of less than a byte lie beside each other.
constexpr int64_t bits_of(nvinfer1::DataType type) {
  switch (type) {
    case nvinfer1::DataType::kINT64:
      return 64;
    case nvinfer1::DataType::kFLOAT:
    case nvinfer1::DataType::kINT32:
      return 32;
    case nvinfer1::DataType::kHALF:
    case nvinfer1::DataType::kBF16:
      return 16;
    case nvinfer1::DataType::kINT4:
    case nvinfer1::DataType::kFP4:
      return 4;
    default:
      return 8;
  }
}

// Frees an object with the interpreter released. Its destructor may wait for threads of the library, and these for the
// interpreter, which their log lines need where the logger is written in Python.
template <typename Object>
void destroy_unlocked(void* object) noexcept {
  const nb::gil_scoped_release unlocked;
  static_cast<Object*>(object)->~Object();
}

// The with statement of objects that are freed when their last reference goes: it warns, as the original's does.
template <typename Bound>
void freed_by_last_reference(Bound& bound) {
  static constexpr const char* kText = "does nothing here: objects are freed when their last reference goes";
  bound
      .def(
          "__enter__",
          [](nb::object self) {
            if (PyErr_WarnFormat(PyExc_DeprecationWarning, 1, "the with statement %s", kText) < 0)
              throw nb::python_error();
            return self;
          },
          nb::sig("def __enter__(self) -> typing_extensions.Self"))
      .def(
          "__exit__", [](nb::handle, nb::handle, nb::handle, nb::handle) {}, nb::arg("exc_type").none(),
          nb::arg("exc_value").none(), nb::arg("traceback").none(), "Does nothing; the object stays usable.");
}

void bind_values(nb::module_& m);
void bind_callbacks(nb::module_& m);
void bind_runtime_enums(nb::module_& m);
void bind_network_enums(nb::module_& m);
void bind_common_layers(nb::module_& m);
void bind_further_layers(nb::module_& m);
void bind_network(nb::module_& m);
void bind_builder(nb::module_& m);
void bind_engine(nb::module_& m);
void bind_context(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_parser(nb::module_& m);
void bind_plugin_values(nb::module_& m);
void bind_plugin_registry(nb::module_& m);
void bind_watched(nb::module_& m);

// The plugin of an IPluginV3Layer: the object of Python where it is written in Python.
nb::object plugin_of_layer(nb::handle layer);
nvinfer1::IPluginV3Layer* add_plugin(nvinfer1::INetworkDefinition& self, const std::vector<nvinfer1::ITensor*>& inputs,
                                     const std::vector<nvinfer1::ITensor*>& shape_inputs, nb::object plugin);

}  // namespace lathe::python

// How nanobind frees objects of these classes.
namespace nanobind::detail {
template <>
inline void wrap_destruct<nvinfer1::IRuntime>(void* object) noexcept {
  lathe::python::destroy_unlocked<nvinfer1::IRuntime>(object);
}
template <>
inline void wrap_destruct<nvinfer1::ICudaEngine>(void* object) noexcept {
  lathe::python::destroy_unlocked<nvinfer1::ICudaEngine>(object);
}
template <>
inline void wrap_destruct<nvinfer1::IExecutionContext>(void* object) noexcept {
  lathe::python::destroy_unlocked<nvinfer1::IExecutionContext>(object);
}
template <>
inline void wrap_destruct<nvinfer1::IRefitter>(void* object) noexcept {
  lathe::python::destroy_unlocked<nvinfer1::IRefitter>(object);
}
}  // namespace nanobind::detail

#endif  // LATHE_PYTHON_BIND_H
