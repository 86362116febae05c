// SPDX-License-Identifier: Apache-2.0
// Values that plugins are told and answer with.
#include "plugin_adapter.h"

#include "impl/NvInferPythonPlugin.h"

using namespace nvinfer1;

namespace lathe::python {
namespace {

// An index of expressions, which counts from the end where it is negative.
const IDimensionExpr*& at(DimsExprs& self, int32_t index) {
  if (index < -self.nbDims || index >= self.nbDims) throw nb::index_error();
  return self.d[index < 0 ? index + self.nbDims : index];
}

DimsExprs expressions(int32_t rank) {
  if (rank < 0 || rank > Dims::MAX_DIMS) throw nb::value_error("there are 0 to 8 dimensions");
  DimsExprs made{};
  made.nbDims = rank;
  return made;
}

void bind_expressions(nb::module_& m) {
  nb::class_<IDimensionExpr>(m, "IDimensionExpr",
                             "A size, perhaps known when the engine runs only. Valid during the call.")
      .def("is_constant", &IDimensionExpr::isConstant, "Whether the size is known now.")
      .def("get_constant_value", &IDimensionExpr::getConstantValue, "INT64_MIN where it is not constant.")
      .def("is_size_tensor", &IDimensionExpr::isSizeTensor,
           "Whether a run finds the size: IExprBuilder.declare_size_tensor().");
  nb::class_<DimsExprs>(m, "DimsExprs", "Sizes of a tensor as expressions, of sizes of the plugin's inputs.")
      .def(nb::init<>())
      .def(nb::init<const DimsExprs&>(), nb::arg("other"))
      .def(
          "__init__", [](DimsExprs* self, int32_t rank) { new (self) DimsExprs(expressions(rank)); }, nb::arg("size"))
      .def(
          "__init__",
          [](DimsExprs* self, const std::vector<const IDimensionExpr*>& sizes) {
            new (self) DimsExprs(expressions(static_cast<int32_t>(sizes.size())));
            std::copy(sizes.begin(), sizes.end(), self->d);
          },
          nb::arg("dims"))
      .def("__len__", [](const DimsExprs& self) { return self.nbDims; })
      .def(
          "__getitem__", [](DimsExprs& self, int32_t index) { return at(self, index); }, nb::rv_policy::reference)
      .def("__setitem__", [](DimsExprs& self, int32_t index, const IDimensionExpr& size) { at(self, index) = &size; })
      .def(
          "__iter__", [](nb::handle self) { return nb::steal(PySeqIter_New(self.ptr())); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[IDimensionExpr]"));
  nb::implicitly_convertible<nb::list, DimsExprs>();
  nb::implicitly_convertible<nb::tuple, DimsExprs>();
  nb::class_<IExprBuilder>(m, "IExprBuilder", "Makes expressions; valid during the call that passes it.")
      .def("constant", &IExprBuilder::constant, nb::arg("value"), nb::rv_policy::reference,
           "The expression of a number.")
      .def("operation", &IExprBuilder::operation, nb::arg("op"), nb::arg("first"), nb::arg("second"),
           nb::rv_policy::reference, "None on failure.")
      .def("declare_size_tensor", &IExprBuilder::declareSizeTensor, nb::arg("output_index"), nb::arg("opt"),
           nb::arg("upper"), nb::rv_policy::reference,
           "A size that output output_index, without dimensions and of type INT32 or INT64, will hold.");
}

void bind_descriptions(nb::module_& m) {
  nb::class_<PluginTensorDesc>(m, "PluginTensorDesc", "Sizes, type and format of a tensor.")
      .def("__init__", [](PluginTensorDesc* self) { new (self) PluginTensorDesc{}; })
      .def_rw("dims", &PluginTensorDesc::dims, "The sizes; -1 is one known at run time.")
      .def_rw("type", &PluginTensorDesc::type, "The type of the elements.")
      .def_rw("format", &PluginTensorDesc::format, "How it lies in memory.")
      .def_rw("scale", &PluginTensorDesc::scale, "What INT8 elements are multiplied by; 1 for others.");
  nb::class_<DynamicPluginTensorDesc>(m, "DynamicPluginTensorDesc", "A tensor whose open sizes, -1, have ranges.")
      .def("__init__", [](DynamicPluginTensorDesc* self) { new (self) DynamicPluginTensorDesc{}; })
      .def_rw("desc", &DynamicPluginTensorDesc::desc, "Sizes, -1 for open ones, type and format.")
      .def_rw("min", &DynamicPluginTensorDesc::min, "The least sizes.")
      .def_rw("opt", &DynamicPluginTensorDesc::opt, "The sizes that are tuned for.")
      .def_rw("max", &DynamicPluginTensorDesc::max, "The largest sizes.");
  nb::class_<IPluginResourceContext>(m, "IPluginResourceContext",
                                     "What a context offers to the plugins attached to it.")
      .def_prop_ro("gpu_allocator", &IPluginResourceContext::getGpuAllocator, nb::rv_policy::reference,
                   "Who gives device memory.")
      .def_prop_ro("error_recorder", &IPluginResourceContext::getErrorRecorder, nb::rv_policy::reference,
                   "Told of errors.")
      .def_prop_ro("runs_on_host", &lathe::runsOnHost,
                   "Whether enqueue() is given addresses of the host's memory; no part of the original's interface.");
  nb::enum_<QuickPluginCreationRequest>(m, "QuickPluginCreationRequest", nb::is_arithmetic(),
                                        "Which implementation of a plugin is wanted where there are several.")
      .value("UNKNOWN", QuickPluginCreationRequest::kUNKNOWN)
      .value("PREFER_JIT", QuickPluginCreationRequest::kPREFER_JIT)
      .value("PREFER_AOT", QuickPluginCreationRequest::kPREFER_AOT)
      .value("STRICT_JIT", QuickPluginCreationRequest::kSTRICT_JIT)
      .value("STRICT_AOT", QuickPluginCreationRequest::kSTRICT_AOT);
}

}  // namespace

size_t bytes_of(const PluginField& field) {
  const auto length = static_cast<size_t>(field.length);
  switch (field.type) {
    case PluginFieldType::kFLOAT64:
    case PluginFieldType::kINT64:
      return length * 8;
    case PluginFieldType::kFLOAT32:
    case PluginFieldType::kINT32:
      return length * 4;
    case PluginFieldType::kFLOAT16:
    case PluginFieldType::kBF16:
    case PluginFieldType::kINT16:
      return length * 2;
    case PluginFieldType::kINT4:
    case PluginFieldType::kFP4:
      return (length + 1) / 2;
    case PluginFieldType::kDIMS:
      return length * sizeof(Dims);
    default:
      return length;
  }
}

nb::object python_fields(const PluginFieldCollection* fields) {
  if (fields == nullptr) return nb::none();
  const nb::object field_class = plugin_class("PluginField");
  nb::object list = plugin_class("PluginFieldCollection_")();
  for (int32_t i = 0; i < fields->nbFields; ++i) {
    const PluginField& field = fields->fields[i];
    const size_t size = field.data == nullptr ? 0 : bytes_of(field);
    list.attr("append")(field_class(field.name, nb::bytes(field.data, size), field.type));
  }
  return list;
}

void bind_plugin_values(nb::module_& m) {
  bind_expressions(m);
  bind_descriptions(m);
}

}  // namespace lathe::python
