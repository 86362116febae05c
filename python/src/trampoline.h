// SPDX-License-Identifier: Apache-2.0
// Calls of methods that Python classes define, from any thread. What a method raises is reported once, as the original
// does, and the default that its interface documents is returned: an exception never enters the library.
#ifndef LATHE_PYTHON_TRAMPOLINE_H
#define LATHE_PYTHON_TRAMPOLINE_H

#include "bind.h"

namespace lathe::python {

// Tells sys.unraisablehook of the exception that is set, which it takes. A KeyboardInterrupt, which was meant for the
// program and came in a callback by chance, is raised again where the interpreter goes on.
void report_exception(const char* method) noexcept;

// A method's result as its interface has it. Throws nb::python_error with a TypeError where it is something else. Truth
// is taken of everything, as the original does; addresses are integers, or None for null.
template <typename Result>
Result result_of(nb::object object) {
  Result result{};
  if constexpr (std::is_same_v<Result, bool>) {
    const int truth = PyObject_IsTrue(object.ptr());
    if (truth < 0) throw nb::python_error();
    return truth != 0;
  } else if constexpr (std::is_same_v<Result, void*>) {
    if (object.is_none()) return nullptr;
    const nb::object integer = nb::steal(PyNumber_Index(object.ptr()));
    if (!integer.is_valid()) throw nb::python_error();
    result = PyLong_AsVoidPtr(integer.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
  } else if constexpr (std::is_same_v<Result, nb::object>) {
    return object;
  } else if (!nb::try_cast(object, result)) {
    nb::raise_type_error("returned %s, which its interface does not take", nb::repr(object).c_str());
  }
  return result;
}

// What function() returns, with the interpreter held; `otherwise` where it raises or the interpreter has ended. What
// was raised before, and is being unwound, stays so: objects that an exception lets go of may call back.
template <typename Result, typename Function>
Result guarded(const char* method, Result otherwise, Function function) noexcept {
  if (!Py_IsInitialized()) return otherwise;
  nb::gil_scoped_acquire gil;
  nb::error_scope unwound;
  try {
    return function();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (nb::builtin_exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  report_exception(method);
  return otherwise;
}

// The Python object that implements an interface. Throws where it has gone.
template <typename Interface>
nb::object python_object(const Interface* self) {
  nb::object found = nb::find(*self);
  if (!found.is_valid()) nb::raise("the Python object behind this interface was freed before its user");
  return found;
}

// self.method(args...) as Result.
template <typename Result, typename Interface, typename... Args>
Result call(const Interface* self, const char* method, Result otherwise, Args... args) noexcept {
  return guarded(method, otherwise, [&] { return result_of<Result>(python_object(self).attr(method)(args...)); });
}

template <typename Interface, typename... Args>
void tell(const Interface* self, const char* method, Args... args) noexcept {
  guarded(method, false, [&] {
    python_object(self).attr(method)(args...);
    return true;
  });
}

// Whether the class of the object defines the method itself rather than inherits what the interface says of it.
template <typename Interface>
bool overrides(const Interface* self, const char* method) noexcept {
  return guarded(method, false, [&] {
    const nb::object own = nb::getattr(python_object(self).type(), method, nb::none());
    return !own.is_none() && !own.is(nb::getattr(nb::type<Interface>(), method, nb::none()));
  });
}

// What a subclass has to define: the signature, for whoever reads it; calls raise NotImplementedError with the class's
// name.
template <typename Result, typename... Args>
auto to_define(const char* method) {
  return [method](nb::handle self, Args...) -> Result {
    PyErr_Format(PyExc_NotImplementedError, "%s must define %s()", nb::type_name(self.type()).c_str(), method);
    throw nb::python_error();
  };
}

// An interface as Python implements it.
template <typename Interface>
struct InPython : Interface {
  nvinfer1::APILanguage getAPILanguage() const noexcept final { return nvinfer1::APILanguage::kPYTHON; }
};

}  // namespace lathe::python

#endif  // LATHE_PYTHON_TRAMPOLINE_H
