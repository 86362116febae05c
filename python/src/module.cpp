// SPDX-License-Identifier: Apache-2.0
// The module lathe._tensorrt: the public C++ interface. lathe.tensorrt adds what is easier said in Python.
#include "bind.h"

NB_MODULE(_tensorrt, m) {
  using namespace lathe::python;
  // Interpreters that end with engines alive are no leak worth a page of warnings.
  nb::set_leak_warnings(false);
  bindCallbacks(m);
  bindValues(m);
  bindNetworkEnums(m);
  bindFirstLayers(m);
  bindSecondLayers(m);
  bindNetwork(m);
  bindEngine(m);
  bindBuilder(m);
  bindRuntime(m);
  bindParser(m);
  m.def("_last_error", &lathe::lastError, "The last failure on this thread, \"LATHE-2101 shape_mismatch: ...\".");
  m.def("_lathe_version", &lathe::latheVersion);
  m.attr("_interface_version") =
      nb::make_tuple(NV_TENSORRT_MAJOR, NV_TENSORRT_MINOR, NV_TENSORRT_PATCH, NV_TENSORRT_BUILD);
}
