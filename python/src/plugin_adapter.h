// SPDX-License-Identifier: Apache-2.0
// Plugins, creators and resources that are written in Python, as the library sees them. Those are plain Python classes
// (lathe/tensorrt/_plugins.py); an adapter holds the object, which lives as long as the library keeps the adapter.
#ifndef LATHE_PYTHON_PLUGIN_ADAPTER_H
#define LATHE_PYTHON_PLUGIN_ADAPTER_H

#include <memory>

#include "trampoline.h"

namespace lathe::python {

// A reference that may be dropped from any thread, and after the interpreter has ended.
class Held {
 public:
  explicit Held(nb::object object) : object_(std::move(object)) {}
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  const nb::object& get() const { return object_; }

 private:
  nb::object object_;
};

// Fields in the memory of C++, made of a sequence of PluginField. Throws nb::python_error.
class FieldList {
 public:
  explicit FieldList(nb::handle fields);
  const nvinfer1::PluginFieldCollection* get() const { return &collection_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::byte>> data_;
  std::vector<nvinfer1::PluginField> fields_;
  nvinfer1::PluginFieldCollection collection_{};
};

// The PluginFieldCollection of Python with copies of the fields; None for null.
nb::object python_fields(const nvinfer1::PluginFieldCollection* fields);

size_t bytes_of(const nvinfer1::PluginField& field);

// A class of lathe.tensorrt._plugins.
nb::object plugin_class(const char* name);

// A plugin, or a creator, that the library calls; the caller owns it. Throws nb::python_error for objects that are
// none. A plugin's destroy() is called with the adapter's end, but for a plugin that is only lent.
std::unique_ptr<nvinfer1::IPluginV3> adapt_plugin(nb::object plugin);
std::unique_ptr<nvinfer1::IPluginV3> lend_plugin(nb::object plugin);
std::unique_ptr<nvinfer1::IPluginCreatorV3One> adapt_creator(nb::object creator);
std::unique_ptr<nvinfer1::IPluginResource> adapt_resource(nb::object resource);

// The object behind an adapter of ours; invalid where the interface is implemented in another language.
nb::object python_of(nvinfer1::IPluginV3& plugin);
nb::object python_of(nvinfer1::IPluginCreatorInterface& creator);
nb::object python_of(nvinfer1::IPluginResource& resource);

}  // namespace lathe::python

#endif  // LATHE_PYTHON_PLUGIN_ADAPTER_H
