// SPDX-License-Identifier: Apache-2.0
// The module lathe._tensorrt: the public C++ interface. lathe.tensorrt adds what is easier said in Python.
#include <memory>

#include "NvInferPlugin.h"
#include "bind.h"
#include "lathe_artifacts.h"

NB_MODULE(_tensorrt, m) {
  using namespace lathe::python;
  // Interpreters that end with engines alive are no leak worth a page of warnings; tests ask for them.
  nb::set_leak_warnings(false);
  m.def("_set_leak_warnings", &nb::set_leak_warnings, nb::arg("wanted"));
  bind_callbacks(m);
  bind_values(m);
  bind_network_enums(m);
  bind_common_layers(m);
  bind_further_layers(m);
  bind_network(m);
  bind_engine(m);
  bind_context(m);
  bind_builder(m);
  bind_runtime(m);
  bind_parser(m);
  bind_plugin_values(m);
  bind_plugin_registry(m);
  bind_watched(m);
  m.def("_last_error", &lathe::lastError, "The last failure on this thread, \"LATHE-2101 shape_mismatch: ...\".");
  m.def("_plan_json", [](nb::bytes plan) {
    const std::unique_ptr<nvinfer1::IHostMemory> report(lathe::planJson(plan.data(), plan.size()));
    if (report == nullptr) throw std::runtime_error(lathe::lastError());
    return std::string(static_cast<const char*>(report->data()), report->size());
  });
  m.def(
      "_artifact_plan",
      [](const std::string& request, nvinfer1::ILogger& logger, int64_t most_bytes) {
        return made(lathe::artifactPlan(request.c_str(), logger, most_bytes));
      },
      nb::arg("request"), nb::arg("logger"), nb::arg("most_bytes") = 0, Unlocked(),
      "The plan that the artifact cache has for a request, which is JSON, or builds. Raises RuntimeError.");
  m.def(
      "init_libnvinfer_plugins",
      [](nvinfer1::ILogger* logger, const std::string& space) { return initLibNvInferPlugins(logger, space.c_str()); },
      nb::arg("logger").none(), nb::arg("namespace"),
      "Registers the standard plugins, in a namespace. True on success.");
  m.def("_lathe_version", &lathe::latheVersion);
  m.attr("_interface_version") =
      nb::make_tuple(NV_TENSORRT_MAJOR, NV_TENSORRT_MINOR, NV_TENSORRT_PATCH, NV_TENSORRT_BUILD);
}
