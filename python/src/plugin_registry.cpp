// SPDX-License-Identifier: Apache-2.0
// Registries, and the plugins and creators in them that are not Python's.
#include <algorithm>
#include <cstring>

#include "plugin_adapter.h"

using namespace nvinfer1;

namespace lathe::python {
namespace {

// Creators of Python in a registry, which does not own them.
struct Registered {
  IPluginRegistry* registry;
  nb::object object;
  std::unique_ptr<IPluginCreatorV3One> creator;
};
// Never destroyed: registries may outlive all that Python has.
std::vector<Registered>& registered() {
  static auto* const all = new std::vector<Registered>;
  return *all;
}

bool register_creator(IPluginRegistry& registry, nb::object creator, const char* space) {
  if (IPluginCreatorInterface* foreign = nullptr; nb::try_cast(creator, foreign) && foreign != nullptr)
    return registry.registerCreator(*foreign, space);
  std::unique_ptr<IPluginCreatorV3One> adapter = adapt_creator(creator);
  if (!registry.registerCreator(*adapter, space)) return false;
  registered().push_back({&registry, std::move(creator), std::move(adapter)});
  return true;
}

bool deregister_creator(IPluginRegistry& registry, nb::handle creator) {
  if (IPluginCreatorInterface* foreign = nullptr; nb::try_cast(creator, foreign) && foreign != nullptr)
    return registry.deregisterCreator(*foreign);
  auto& all = registered();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Registered& each) {
    return each.registry == &registry && each.object.is(creator);
  });
  if (found == all.end() || !registry.deregisterCreator(*found->creator)) return false;
  all.erase(found);
  return true;
}

// Before the interpreter ends: nobody may ask creators of Python any more. Of registries that belong to builders and
// runtimes it is not known whether they still are.
void deregister_all() {
  for (Registered& each : registered()) {
    if (each.registry == getPluginRegistry()) each.registry->deregisterCreator(*each.creator);
    each.creator.release();
    each.object.reset();
  }
  registered().clear();
}

nb::object creator_object(IPluginCreatorInterface* creator) {
  if (creator == nullptr) return nb::none();
  if (nb::object own = python_of(*creator); own.is_valid()) return own;
  const char* const kind = creator->getInterfaceInfo().kind;
  if (kind != nullptr && std::strcmp(kind, "PLUGIN CREATOR_V3ONE") == 0)
    return nb::cast(static_cast<IPluginCreatorV3One*>(creator), nb::rv_policy::reference);
  return nb::cast(creator, nb::rv_policy::reference);
}

nb::list creator_objects(IPluginCreatorInterface* const* creators, int32_t count) {
  nb::list list;
  for (int32_t i = 0; i < count; ++i) list.append(creator_object(creators[i]));
  return list;
}

// A plugin that the caller owns.
nb::object owned_plugin(IPluginV3* plugin) {
  if (plugin == nullptr) return nb::none();
  if (nb::object own = python_of(*plugin); own.is_valid()) {
    delete plugin;
    return own;
  }
  return nb::cast(plugin, nb::rv_policy::take_ownership);
}

IPluginV3OneCore& core_of(IPluginV3& plugin) {
  auto* const core = static_cast<IPluginV3OneCore*>(plugin.getCapabilityInterface(PluginCapabilityType::kCORE));
  if (core == nullptr) throw std::runtime_error("the plugin has no capability CORE");
  return *core;
}

IPluginResource* acquire(IPluginRegistry& registry, const char* key, nb::object resource) {
  std::unique_ptr<IPluginResource> adapter;
  if (!resource.is_none()) adapter = adapt_resource(std::move(resource));
  return registry.acquirePluginResource(key, adapter.get());
}

void bind_foreign(nb::module_& m) {
  nb::class_<IPluginV3, IVersionedInterface>(m, "_CppPlugin", "A plugin of another language.")
      .def_prop_ro("plugin_name", [](IPluginV3& self) { return core_of(self).getPluginName(); })
      .def_prop_ro("plugin_version", [](IPluginV3& self) { return core_of(self).getPluginVersion(); })
      .def_prop_ro("plugin_namespace", [](IPluginV3& self) { return core_of(self).getPluginNamespace(); })
      .def("clone", [](IPluginV3& self) { return owned_plugin(self.clone()); });
  nb::class_<IPluginCreatorInterface, IVersionedInterface>(m, "_CppPluginCreatorInterface");
  nb::class_<IPluginCreatorV3One, IPluginCreatorInterface>(m, "_CppPluginCreator", "A creator of another language.")
      .def_prop_ro("name", &IPluginCreatorV3One::getPluginName)
      .def_prop_ro("plugin_version", &IPluginCreatorV3One::getPluginVersion)
      .def_prop_ro("plugin_namespace", &IPluginCreatorV3One::getPluginNamespace)
      .def_prop_ro("field_names", [](IPluginCreatorV3One& self) { return python_fields(self.getFieldNames()); })
      .def(
          "create_plugin",
          [](IPluginCreatorV3One& self, const char* name, nb::handle fields, TensorRTPhase phase) {
            const FieldList list(fields);
            return owned_plugin(self.createPlugin(name, list.get(), phase));
          },
          nb::arg("name"), nb::arg("field_collection"), nb::arg("phase"), "None on failure.");
}

}  // namespace

nb::object plugin_of_layer(nb::handle layer) {
  IPluginV3& plugin = nb::cast<IPluginV3Layer&>(layer).getPlugin();
  if (nb::object own = python_of(plugin); own.is_valid()) return own;
  return nb::cast(&plugin, kInside, layer);
}

IPluginV3Layer* add_plugin(INetworkDefinition& self, const std::vector<ITensor*>& inputs,
                           const std::vector<ITensor*>& shape_inputs, nb::object plugin) {
  const auto add = [&](IPluginV3& given) {
    return self.addPluginV3(inputs.data(), static_cast<int32_t>(inputs.size()), shape_inputs.data(),
                            static_cast<int32_t>(shape_inputs.size()), given);
  };
  if (IPluginV3* foreign = nullptr; nb::try_cast(plugin, foreign) && foreign != nullptr) return add(*foreign);
  return add(*lend_plugin(std::move(plugin)));  // of which the network keeps a clone
}

void bind_plugin_registry(nb::module_& m) {
  nb::class_<IPluginRegistry>(m, "IPluginRegistry", "Creators of plugins by name, version and namespace.")
      .def_prop_ro(
          "all_creators",
          [](IPluginRegistry& self) {
            int32_t count = 0;
            IPluginCreatorInterface* const* const creators = self.getAllCreators(&count);
            return creator_objects(creators, count);
          },
          nb::sig("def all_creators(self) -> list[typing.Any]"), "The creators in this registry.")
      .def_prop_ro(
          "all_creators_recursive",
          [](IPluginRegistry& self) {
            int32_t count = 0;
            IPluginCreatorInterface* const* const creators = self.getAllCreatorsRecursive(&count);
            return creator_objects(creators, count);
          },
          nb::sig("def all_creators_recursive(self) -> list[typing.Any]"),
          "The creators in this registry and its parents.")
      .def("register_creator", &register_creator, nb::arg("creator"), nb::arg("plugin_namespace") = "",
           "Keeps the creator. False where one of its name, version and namespace is there.")
      .def("deregister_creator", &deregister_creator, nb::arg("creator"), "False where it is not registered.")
      .def(
          "get_creator",
          [](IPluginRegistry& self, const char* type, const char* version, const char* space) {
            return creator_object(self.getCreator(type, version, space));
          },
          nb::arg("type"), nb::arg("version"), nb::arg("plugin_namespace") = "", "None where there is none.")
      .def_prop_rw("error_recorder", &IPluginRegistry::getErrorRecorder, &IPluginRegistry::setErrorRecorder, kInside,
                   kept(), or_none(), "Told of errors instead of the logger; None for none.")
      .def_prop_rw("parent_search_enabled", &IPluginRegistry::isParentSearchEnabled,
                   &IPluginRegistry::setParentSearchEnabled,
                   "Whether get_creator() looks in parents, too; True unless set.")
      .def(
          "load_library", [](IPluginRegistry& self, const char* path) { return address(self.loadLibrary(path)); },
          nb::arg("plugin_path"), "A handle, 0 on failure.")
      .def(
          "deregister_library",
          [](IPluginRegistry& self, size_t handle) { self.deregisterLibrary(pointer<void*>(handle)); },
          nb::arg("handle"), "Unloads a library, by the handle that load_library() gave, with its creators.")
      .def(
          "acquire_plugin_resource",
          [](IPluginRegistry& self, const char* key, nb::object resource) -> nb::object {
            IPluginResource* const found = acquire(self, key, std::move(resource));
            return found == nullptr ? nb::none() : python_of(*found);
          },
          nb::arg("key"), nb::arg("resource").none(), "The resource of that key, of which there is one: a clone.")
      .def("release_plugin_resource", &IPluginRegistry::releasePluginResource, nb::arg("key"), Unlocked(),
           "0 on success.");
  bind_foreign(m);
  m.def("get_plugin_registry", &getPluginRegistry, nb::rv_policy::reference, "The registry of the process.");
  m.def("get_builder_plugin_registry", &getBuilderPluginRegistry, nb::arg("capability"), nb::rv_policy::reference,
        "The registry of builders for a capability; None where there is none.");
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&deregister_all));
}

}  // namespace lathe::python
