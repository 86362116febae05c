// SPDX-License-Identifier: Apache-2.0
#include "plugin_adapter.h"

#include <cstring>
#include <optional>

using namespace nvinfer1;

namespace lathe::python {
namespace {

constexpr int32_t kFailure = -1;

// Calls of methods of a Python object that report success with 0 or None.
template <typename... Args>
int32_t status(const nb::object& object, const char* method, Args&&... args) {
  const nb::object answer = object.attr(method)(std::forward<Args>(args)...);
  return answer.is_none() ? 0 : result_of<int32_t>(answer);
}

template <typename Element>
nb::list list_of(const Element* elements, int32_t count) {
  nb::list list;
  for (int32_t i = 0; i < count; ++i) list.append(nb::cast(elements[i], nb::rv_policy::copy));
  return list;
}

template <typename Pointer>
nb::list addresses_of(Pointer const* pointers, size_t count) {
  nb::list list;
  for (size_t i = 0; i < count; ++i) list.append(address(pointers[i]));
  return list;
}

// The elements of a sequence that a method returned; as many as the caller has place for.
template <typename Element>
void take(const nb::object& answer, Element* elements, int32_t count, const char* what) {
  const auto given = static_cast<int64_t>(nb::len(answer));
  if (given != count)
    throw nb::value_error(
        ("returned " + std::to_string(given) + " " + what + ", where " + std::to_string(count) + " are wanted")
            .c_str());
  for (int32_t i = 0; i < count; ++i) elements[i] = nb::cast<Element>(answer[i]);
}

// Texts that the library is given pointers to.
class Text {
 public:
  // The attribute of an object; null, and a report, where it has none or it is no text.
  const char* of(const nb::object& object, const char* attribute) {
    return guarded<const char*>(attribute, nullptr, [&] {
      keep(object.attr(attribute));
      return text_.c_str();
    });
  }
  // Null where the attribute is None or missing.
  const char* optional(const nb::object& object, const char* attribute) {
    return guarded<const char*>(attribute, nullptr, [&]() -> const char* {
      const nb::object value = nb::getattr(object, attribute, nb::none());
      if (value.is_none()) return nullptr;
      keep(value);
      return text_.c_str();
    });
  }

 private:
  // Another thread may be reading the text, so that it is not written again.
  void keep(const nb::object& value) {
    if (auto text = nb::cast<std::string>(value); text != text_) text_ = std::move(text);
  }
  std::string text_;
};

class Core final : public InPython<IPluginV3OneCore> {
 public:
  explicit Core(nb::object object) : object_(std::move(object)) {}
  const char* getPluginName() const noexcept override { return name_.of(object_.get(), "plugin_name"); }
  const char* getPluginVersion() const noexcept override { return version_.of(object_.get(), "plugin_version"); }
  const char* getPluginNamespace() const noexcept override { return space_.of(object_.get(), "plugin_namespace"); }

 private:
  Held object_;
  mutable Text name_, version_, space_;
};

class Build final : public InPython<IPluginV3OneBuildV2> {
 public:
  explicit Build(nb::object object) : object_(std::move(object)) {}

  int32_t configurePlugin(const DynamicPluginTensorDesc* in, int32_t inputs, const DynamicPluginTensorDesc* out,
                          int32_t outputs) noexcept override {
    return guarded("configure_plugin", kFailure, [&] {
      return status(object_.get(), "configure_plugin", list_of(in, inputs), list_of(out, outputs));
    });
  }
  int32_t getOutputDataTypes(DataType* types, int32_t outputs, const DataType* in,
                             int32_t inputs) const noexcept override {
    return guarded("get_output_data_types", kFailure, [&] {
      take(object_.get().attr("get_output_data_types")(list_of(in, inputs)), types, outputs, "types");
      return 0;
    });
  }
  int32_t getOutputShapes(const DimsExprs* in, int32_t inputs, const DimsExprs* shape_in, int32_t shape_inputs,
                          DimsExprs* out, int32_t outputs, IExprBuilder& builder) noexcept override {
    return guarded("get_output_shapes", kFailure, [&] {
      take(object_.get().attr("get_output_shapes")(list_of(in, inputs), list_of(shape_in, shape_inputs),
                                                   nb::cast(&builder, nb::rv_policy::reference)),
           out, outputs, "shapes");
      return 0;
    });
  }
  bool supportsFormatCombination(int32_t position, const DynamicPluginTensorDesc* all, int32_t inputs,
                                 int32_t outputs) noexcept override {
    return guarded("supports_format_combination", false, [&] {
      return result_of<bool>(
          object_.get().attr("supports_format_combination")(position, list_of(all, inputs + outputs), inputs));
    });
  }
  int32_t getNbOutputs() const noexcept override { return number("num_outputs", 0); }
  size_t getWorkspaceSize(const DynamicPluginTensorDesc* in, int32_t inputs, const DynamicPluginTensorDesc* out,
                          int32_t outputs) const noexcept override {
    // What the library refuses, with its reason.
    return guarded("get_workspace_size", SIZE_MAX, [&] {
      if (!nb::hasattr(object_.get(), "get_workspace_size")) return size_t{0};
      return result_of<size_t>(object_.get().attr("get_workspace_size")(list_of(in, inputs), list_of(out, outputs)));
    });
  }
  int32_t getNbTactics() noexcept override {
    return guarded("get_valid_tactics", kFailure, [&] {
      if (nb::hasattr(object_.get(), "get_valid_tactics"))
        tactics_ = nb::cast<std::vector<int32_t>>(object_.get().attr("get_valid_tactics")());
      return static_cast<int32_t>(tactics_.size());
    });
  }
  int32_t getValidTactics(int32_t* tactics, int32_t count) noexcept override {
    if (count != static_cast<int32_t>(tactics_.size())) return kFailure;
    std::copy(tactics_.begin(), tactics_.end(), tactics);
    return 0;
  }
  const char* getTimingCacheID() noexcept override { return timing_id_.optional(object_.get(), "timing_cache_id"); }
  const char* getMetadataString() noexcept override { return metadata_.optional(object_.get(), "metadata_string"); }
  int32_t getFormatCombinationLimit() noexcept override {
    return guarded("format_combination_limit", kDEFAULT_FORMAT_COMBINATION_LIMIT, [&] {
      return nb::cast<int32_t>(
          nb::getattr(object_.get(), "format_combination_limit", nb::int_(int32_t{kDEFAULT_FORMAT_COMBINATION_LIMIT})));
    });
  }
  int32_t getAliasedInput(int32_t output) noexcept override {
    return guarded("get_aliased_input", INT32_MIN, [&] {
      if (!nb::hasattr(object_.get(), "get_aliased_input")) return -1;
      return result_of<int32_t>(object_.get().attr("get_aliased_input")(output));
    });
  }

 private:
  int32_t number(const char* attribute, int32_t otherwise) const noexcept {
    return guarded(attribute, otherwise, [&] { return nb::cast<int32_t>(object_.get().attr(attribute)); });
  }
  Held object_;
  std::vector<int32_t> tactics_;
  Text timing_id_, metadata_;
};

class Run final : public InPython<IPluginV3OneRuntime> {
 public:
  explicit Run(nb::object object) : object_(std::move(object)) {}

  int32_t setTactic(int32_t tactic) noexcept override {
    return guarded("set_tactic", kFailure, [&] {
      return nb::hasattr(object_.get(), "set_tactic") ? status(object_.get(), "set_tactic", tactic) : 0;
    });
  }
  int32_t onShapeChange(const PluginTensorDesc* in, int32_t inputs, const PluginTensorDesc* out,
                        int32_t outputs) noexcept override {
    inputs_ = static_cast<size_t>(inputs);
    outputs_ = static_cast<size_t>(outputs);
    return guarded("on_shape_change", kFailure, [&] {
      return status(object_.get(), "on_shape_change", list_of(in, inputs), list_of(out, outputs));
    });
  }
  int32_t enqueue(const PluginTensorDesc* in, const PluginTensorDesc* out, const void* const* inputs,
                  void* const* outputs, void* workspace, cudaStream_t stream) noexcept override {
    return guarded("enqueue", kFailure, [&] {
      return status(object_.get(), "enqueue", list_of(in, static_cast<int32_t>(inputs_)),
                    list_of(out, static_cast<int32_t>(outputs_)), addresses_of(inputs, inputs_),
                    addresses_of(outputs, outputs_), address(workspace), address(stream));
    });
  }
  IPluginV3* attachToContext(IPluginResourceContext* context) noexcept override {
    return guarded<IPluginV3*>("attach_to_context", nullptr, [&] {
      return adapt_plugin(object_.get().attr("attach_to_context")(nb::cast(context, nb::rv_policy::reference)))
          .release();
    });
  }
  const PluginFieldCollection* getFieldsToSerialize() noexcept override {
    return guarded<const PluginFieldCollection*>("get_fields_to_serialize", nullptr, [&] {
      fields_.emplace(object_.get().attr("get_fields_to_serialize")());
      return fields_->get();
    });
  }

 private:
  Held object_;
  size_t inputs_ = 0, outputs_ = 0;  // as onShapeChange() was told, which comes before each enqueue()
  std::optional<FieldList> fields_;
};

class Plugin : public InPython<IPluginV3> {
 public:
  explicit Plugin(nb::object object) : object_(std::move(object)) {}
  const nb::object& object() const { return object_.get(); }

  IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override {
    switch (type) {
      case PluginCapabilityType::kCORE:
        return capability(core_, type);
      case PluginCapabilityType::kBUILD:
        return capability(build_, type);
      case PluginCapabilityType::kRUNTIME:
        return capability(run_, type);
    }
    return nullptr;
  }
  IPluginV3* clone() noexcept override {
    return guarded<IPluginV3*>("clone", nullptr, [&] { return adapt_plugin(object().attr("clone")()).release(); });
  }

 private:
  template <typename Capability>
  IPluginCapability* capability(std::unique_ptr<Capability>& kept, PluginCapabilityType type) noexcept {
    if (kept) return kept.get();
    return guarded<IPluginCapability*>("get_capability_interface", nullptr, [&]() -> IPluginCapability* {
      nb::object found = object().attr("get_capability_interface")(type);
      if (found.is_none()) return nullptr;
      if (!kept) kept = std::make_unique<Capability>(std::move(found));  // unless another thread has, meanwhile
      return kept.get();
    });
  }
  Held object_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Build> build_;
  std::unique_ptr<Run> run_;
};

// The library's own, which ends with it.
class OwnedPlugin final : public Plugin {
 public:
  using Plugin::Plugin;
  ~OwnedPlugin() override {
    guarded("destroy", false, [&] {
      if (nb::hasattr(object(), "destroy")) object().attr("destroy")();
      return true;
    });
  }
  OwnedPlugin(const OwnedPlugin&) = delete;
  OwnedPlugin& operator=(const OwnedPlugin&) = delete;
};

class Creator final : public InPython<IPluginCreatorV3One> {
 public:
  explicit Creator(nb::object object) : object_(std::move(object)) {}
  const nb::object& object() const { return object_.get(); }

  IPluginV3* createPlugin(const char* name, const PluginFieldCollection* fields,
                          TensorRTPhase phase) noexcept override {
    return guarded<IPluginV3*>("create_plugin", nullptr, [&]() -> IPluginV3* {
      nb::object made = object().attr("create_plugin")(name, python_fields(fields), phase);
      return made.is_none() ? nullptr : adapt_plugin(std::move(made)).release();
    });
  }
  const PluginFieldCollection* getFieldNames() noexcept override {
    return guarded<const PluginFieldCollection*>("field_names", nullptr, [&] {
      fields_.emplace(object().attr("field_names"));
      return fields_->get();
    });
  }
  const char* getPluginName() const noexcept override { return name_.of(object(), "name"); }
  const char* getPluginVersion() const noexcept override { return version_.of(object(), "plugin_version"); }
  const char* getPluginNamespace() const noexcept override { return space_.of(object(), "plugin_namespace"); }

 private:
  Held object_;
  std::optional<FieldList> fields_;
  mutable Text name_, version_, space_;
};

class Resource final : public InPython<IPluginResource> {
 public:
  explicit Resource(nb::object object) : object_(std::move(object)) {}
  const nb::object& object() const { return object_.get(); }
  int32_t release() noexcept override {
    return guarded("release", kFailure, [&] { return status(object(), "release"); });
  }
  IPluginResource* clone() noexcept override {
    return guarded<IPluginResource*>("clone", nullptr,
                                     [&] { return adapt_resource(object().attr("clone")()).release(); });
  }

 private:
  Held object_;
};

template <typename Adapter>
std::unique_ptr<Adapter> adapted(nb::object object, const char* interface) {
  if (!nb::isinstance(object, plugin_class(interface)))
    nb::raise_type_error("%s is wanted, got %s", interface, nb::repr(object).c_str());
  return std::make_unique<Adapter>(std::move(object));
}

// APILanguage tells adapters from what other languages implement.
template <typename Adapter, typename Interface>
nb::object object_of(Interface& interface) {
  return interface.getAPILanguage() == APILanguage::kPYTHON ? static_cast<Adapter&>(interface).object() : nb::object();
}

}  // namespace

Held::~Held() {
  if (Py_IsInitialized()) {
    nb::gil_scoped_acquire gil;
    object_.reset();
  } else {
    object_.release();
  }
}

FieldList::FieldList(nb::handle fields) {
  const size_t count = nb::len(fields);
  names_.reserve(count);  // their texts stay where they are
  for (size_t i = 0; i < count; ++i) {
    const nb::object field = fields[i];
    const nb::object array = field.attr("data");
    const Bytes bytes(array);
    names_.push_back(nb::cast<std::string>(field.attr("name")));
    const auto* const first = static_cast<const std::byte*>(bytes.data());
    data_.emplace_back(first, first + bytes.size());
    fields_.emplace_back(names_.back().c_str(), bytes.size() > 0 ? data_.back().data() : nullptr,
                         nb::cast<PluginFieldType>(field.attr("type")), nb::cast<int32_t>(field.attr("size")));
    if (bytes_of(fields_.back()) != bytes.size())
      throw nb::value_error(("field " + names_.back() + ": its data are " + std::to_string(bytes.size()) +
                             " bytes, which its type and size do not make: set the data after the type")
                                .c_str());
  }
  collection_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
}

nb::object plugin_class(const char* name) { return nb::module_::import_("lathe.tensorrt._plugins").attr(name); }

std::unique_ptr<IPluginV3> adapt_plugin(nb::object plugin) {
  return adapted<OwnedPlugin>(std::move(plugin), "IPluginV3");
}
std::unique_ptr<IPluginV3> lend_plugin(nb::object plugin) { return adapted<Plugin>(std::move(plugin), "IPluginV3"); }
std::unique_ptr<IPluginCreatorV3One> adapt_creator(nb::object creator) {
  return adapted<Creator>(std::move(creator), "IPluginCreatorV3One");
}
std::unique_ptr<IPluginResource> adapt_resource(nb::object resource) {
  return adapted<Resource>(std::move(resource), "IPluginResource");
}

nb::object python_of(IPluginV3& plugin) { return object_of<Plugin>(plugin); }
nb::object python_of(IPluginCreatorInterface& creator) { return object_of<Creator>(creator); }
nb::object python_of(IPluginResource& resource) { return object_of<Resource>(resource); }

}  // namespace lathe::python
