// SPDX-License-Identifier: Apache-2.0
#include "trampoline.h"

namespace lathe::python {

void report_exception(const char* method) noexcept {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    PyErr_Clear();
    PyErr_SetInterrupt();
    return;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* const where = PyUnicode_FromFormat("[ERROR] Exception caught in %s()", method);
  PyErr_Restore(type, value, traceback);
  PyErr_WriteUnraisable(where);
  Py_XDECREF(where);
}

}  // namespace lathe::python
