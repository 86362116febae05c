// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>

#include "bind.h"
#include "lathe_onnx.h"

using namespace nvinfer1;

namespace lathe::python {

template <typename Parser>
static bool load_initializer(Parser& self, const char* name, size_t data, size_t size) {
  return self.loadInitializer(name, pointer<const void*>(data), size);
}

static void add_steps(nb::class_<nvonnxparser::IParser>& parser) {
  parser
      .def(
          "load_model_proto",
          [](nvonnxparser::IParser& self, nb::handle model, const std::optional<std::string>& path) {
            const Bytes bytes(model);
            nb::gil_scoped_release unlocked;
            return self.loadModelProto(bytes.data(), bytes.size(), path ? path->c_str() : nullptr);
          },
          nb::arg("model"), nb::arg("path") = nb::none(),
          "First of three steps: keeps the model, whose initializers may then be given, and parse_model_proto() ends "
          "it.")
      .def("load_initializer", &load_initializer<nvonnxparser::IParser>, nb::arg("name"), nb::arg("data"),
           nb::arg("size"), "Bytes at an address for an initializer whose data are outside of the model.")
      .def(
          "get_used_vc_plugin_libraries",
          [](const nvonnxparser::IParser& self) {
            int64_t count = 0;
            const char* const* const names = self.getUsedVCPluginLibraries(count);
            return names == nullptr ? std::vector<std::string>() : std::vector<std::string>(names, names + count);
          },
          "Paths of plugin libraries that a version-compatible plan would need.");
}

static void add_own(nb::class_<nvonnxparser::IParser>& parser) {
  parser
      .def("_set_int64_as_int32", &lathe::setInt64AsInt32, nb::arg("enabled"),
           "Lathe's own: weights, inputs and outputs of INT64 become INT32, clamped to its limits, with one warning.")
      .def(
          "_set_input_elements",
          [](nvonnxparser::IParser& self, const char* input, int32_t count, const std::optional<Dims>& dims) {
            return lathe::setInputElements(self, input, count, dims ? &*dims : nullptr);
          },
          nb::arg("input"), nb::arg("count"), nb::arg("dims") = nb::none(),
          "Lathe's own: an input that is a sequence has so many tensors, of these dims unless they are None; -1 is for "
          "an optional without an element. False, with a report, for what makes no sense.");
}

// Whole models from memory.
static void add_models(nb::class_<nvonnxparser::IParser>& parser) {
  parser
      .def(
          "parse",
          [](nvonnxparser::IParser& self, nb::handle model, const std::optional<std::string>& path) {
            const Bytes bytes(model);
            nb::gil_scoped_release unlocked;
            return self.parse(bytes.data(), bytes.size(), path ? path->c_str() : nullptr);
          },
          nb::arg("model"), nb::arg("path") = nb::none(),
          "Adds the layers of a ModelProto, bytes, to the network. path: where external data lie. False after errors, "
          "which get_error() has.")
      .def(
          "supports_model_v2",
          [](nvonnxparser::IParser& self, nb::handle model, const std::optional<std::string>& path) {
            const Bytes bytes(model);
            nb::gil_scoped_release unlocked;
            return self.supportsModelV2(bytes.data(), bytes.size(), path ? path->c_str() : nullptr);
          },
          nb::arg("model"), nb::arg("path") = nb::none(),
          "Whether all of the model can be imported; subgraphs tell which parts can.");
}

static void bind_parsers_1(nb::module_& m) {
  nb::class_<nvonnxparser::IParserError>(
      m, "ParserError",
      "A problem that was found in a model. Valid until errors are cleared or the next model is parsed.")
      .def("__str__", [](const nvonnxparser::IParserError& self) { return std::string(self.desc()); })
      .def("__repr__", [](const nvonnxparser::IParserError& self) { return std::string(self.desc()); })
      .def(
          "local_function_stack",
          [](const nvonnxparser::IParserError& self) {
            return std::vector<std::string>(self.localFunctionStack(),
                                            self.localFunctionStack() + self.localFunctionStackSize());
          },
          "Names of the model's functions around the node, the outermost one first.")
      .def("code", &nvonnxparser::IParserError::code, kInside, "Which kind of problem: an ErrorCode.")
      .def("desc", &nvonnxparser::IParserError::desc, kInside, "The problem in words.")
      .def("file", &nvonnxparser::IParserError::file, kInside, "The source file of the library that found it.")
      .def("line", &nvonnxparser::IParserError::line, kInside, "The line of the source file.")
      .def("func", &nvonnxparser::IParserError::func, kInside, "The function that found it.")
      .def("node", &nvonnxparser::IParserError::node, kInside, "The number of the ONNX node to blame; -1 for none.")
      .def("node_name", &nvonnxparser::IParserError::nodeName, kInside,
           "The name of the ONNX node to blame; '' for none.")
      .def("node_operator", &nvonnxparser::IParserError::nodeOperator, kInside,
           "The operator of the ONNX node to blame; '' for none.")
      .def("local_function_stack_size", &nvonnxparser::IParserError::localFunctionStackSize, kInside,
           "How many functions of the model are around the node.");
  nb::class_<nvonnxparser::IParser> parser(m, "OnnxParser",
                                           "Adds the layers of an ONNX model to a network. Keep it until the network "
                                           "is built: weights lie in it. One thread at a time.");
  freed_by_last_reference(parser);
  add_own(parser);
  parser
      .def("supports_operator", &nvonnxparser::IParser::supportsOperator, nb::arg("op_name"), kInside,
           "Whether there is an importer for the operator.")
      .def_prop_ro("num_subgraphs", &nvonnxparser::IParser::getNbSubgraphs, kInside,
                   "Parts of the model that supports_model_v2() has found.")
      .def_prop_ro("num_errors", &nvonnxparser::IParser::getNbErrors, kInside, "How many errors there are.")
      .def("get_error", &nvonnxparser::IParser::getError, nb::arg("index"), kInside,
           "Error index; None where there is none.")
      .def("clear_errors", &nvonnxparser::IParser::clearErrors, kInside, "Forgets all errors.")
      .def_prop_rw("flags", &nvonnxparser::IParser::getFlags, &nvonnxparser::IParser::setFlags, kInside,
                   "Bit i stands for OnnxParserFlag i.")
      .def("clear_flag", &nvonnxparser::IParser::clearFlag, nb::arg("flag"), kInside, "Unsets a flag.")
      .def("set_flag", &nvonnxparser::IParser::setFlag, nb::arg("flag"), kInside, "Sets a flag.")
      .def("get_flag", &nvonnxparser::IParser::getFlag, nb::arg("flag"), kInside, "Whether the flag is set.")
      .def("get_layer_output_tensor", &nvonnxparser::IParser::getLayerOutputTensor, nb::arg("name"), nb::arg("i"),
           kInside, "Output i of the layer that a node became; None where there is none.")
      .def("parse_model_proto", &nvonnxparser::IParser::parseModelProto, Unlocked(),
           "Adds the layers of the model that load_model_proto() was given. False after errors.")
      .def("set_builder_config", &nvonnxparser::IParser::setBuilderConfig, nb::arg("builder_config"),
           nb::keep_alive<1, 2>(), kInside, "Shows the parser the configuration of the build to come.")
      .def(nb::new_([](INetworkDefinition& network, ILogger& logger) {
             return made(nvonnxparser::createParser(network, logger));
           }),
           nb::arg("network"), nb::arg("logger"), nb::keep_alive<0, 3>(), nb::keep_alive<2, 0>())
      .def(
          "parse_from_file",
          [](nvonnxparser::IParser& self, const std::string& model) {
            return self.parseFromFile(model.c_str(), static_cast<int>(ILogger::Severity::kWARNING));
          },
          nb::arg("model"), Unlocked(),
          "Adds the layers of a model file to the network. False after errors, which get_error() has.")
      .def(
          "is_subgraph_supported",
          [](nvonnxparser::IParser& self, int64_t index) { return self.isSubgraphSupported(index); }, nb::arg("index"),
          "Whether the part of the model can be imported.")
      .def(
          "get_subgraph_nodes",
          [](nvonnxparser::IParser& self, int64_t index) {
            int64_t length = 0;
            const int64_t* nodes = self.getSubgraphNodes(index, length);
            return nodes == nullptr ? std::vector<int64_t>() : std::vector<int64_t>(nodes, nodes + length);
          },
          nb::arg("index"), "Numbers of the nodes of a subgraph.");
  add_models(parser);
  add_steps(parser);
}

static void bind_parsers_2(nb::module_& m) {
  nb::class_<nvonnxparser::IParserRefitter>(
      m, "OnnxParserRefitter",
      "Gives an engine the weights of an ONNX model that differs in nothing else. One thread at a time.")
      .def_prop_ro("num_errors", &nvonnxparser::IParserRefitter::getNbErrors, kInside, "How many errors there are.")
      .def("get_error", &nvonnxparser::IParserRefitter::getError, nb::arg("index"), kInside,
           "Error index; None where there is none.")
      .def("clear_errors", &nvonnxparser::IParserRefitter::clearErrors, kInside, "Forgets all errors.")
      .def("refit_model_proto", &nvonnxparser::IParserRefitter::refitModelProto, Unlocked(),
           "Takes the weights of the model that load_model_proto() was given. False after errors.")
      .def(nb::new_([](IRefitter& refitter, ILogger& logger) {
             return made(nvonnxparser::createParserRefitter(refitter, logger));
           }),
           nb::arg("refitter"), nb::arg("logger"), nb::keep_alive<0, 3>(), nb::keep_alive<2, 0>())
      .def(
          "refit_from_file",
          [](nvonnxparser::IParserRefitter& self, const std::string& model) {
            return self.refitFromFile(model.c_str());
          },
          nb::arg("model"), Unlocked(),
          "Takes the weights of a model file. False after errors; Refitter.refit_cuda_engine() does the rest.")
      .def(
          "refit_from_bytes",
          [](nvonnxparser::IParserRefitter& self, nb::handle model, const std::optional<std::string>& path) {
            const Bytes bytes(model);
            nb::gil_scoped_release unlocked;
            return self.refitFromBytes(bytes.data(), bytes.size(), path ? path->c_str() : nullptr);
          },
          nb::arg("model"), nb::arg("path") = nb::none(),
          "Takes the weights of a ModelProto, bytes; path: where external data lie. False after errors; "
          "Refitter.refit_cuda_engine() does the rest.")
      .def("load_initializer", &load_initializer<nvonnxparser::IParserRefitter>, nb::arg("name"), nb::arg("data"),
           nb::arg("size"),
           "Gives an initializer of the model its bytes, which stay with the caller. False after errors.")
      .def(
          "load_model_proto",
          [](nvonnxparser::IParserRefitter& self, nb::handle model, const std::optional<std::string>& path) {
            const Bytes bytes(model);
            nb::gil_scoped_release unlocked;
            return self.loadModelProto(bytes.data(), bytes.size(), path ? path->c_str() : nullptr);
          },
          nb::arg("model"), nb::arg("path") = nb::none(),
          "Takes a ModelProto, bytes; path: where external data lie. False after errors.");
  m.def("get_nv_onnx_parser_version", &getNvOnnxParserVersion,
        "The version of the parser, as major * 10000 + minor * 100 + patch.");
}

void bind_parser(nb::module_& m) {
  bind_parsers_1(m);
  bind_parsers_2(m);
}

}  // namespace lathe::python
