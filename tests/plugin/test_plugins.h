// SPDX-License-Identifier: Apache-2.0
// Plugins for tests, which run on the host.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lathe.h"

namespace nvinfer1 {

// Which callback does not do what it should.
enum class Lie : int32_t {
  none,
  no_build,
  no_name,
  no_outputs,
  types_fail,
  types_unknown,
  shapes_fail,
  shapes_null,
  shapes_foreign,
  shapes_negative,
  no_format,
  configure_fails,
  huge_workspace,
  tactics_fail,
  tactic_zero,
  alias_wrong,
  fields_null,
  field_without_name,
  attach_null,
  tactic_refused,
  shape_change_fails,
  enqueue_fails,
  size_too_large,
  size_negative,
  clone_null,
  waits_on_stream,  // which a capture refuses
  hides_waiting,    // and says nothing of it
};

inline std::atomic<int> g_alive{0};          // plugins that exist
inline std::atomic<int> g_shape_changes{0};  // onShapeChange() calls
inline std::atomic<int> g_timed{0};          // runs of TacticPlugin

// All capabilities in one object. What derived classes do not say: one output like input 0, no fields but `value`.
class HostPlugin : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuildV2, public IPluginV3OneRuntime {
 public:
  HostPlugin(const char* name, float value, Lie lie) : name_(name), value_(value), lie_(lie) { ++g_alive; }
  HostPlugin(const HostPlugin& other)
      : IPluginV3(other),
        IPluginV3OneCore(other),
        IPluginV3OneBuildV2(other),
        IPluginV3OneRuntime(other),
        name_(other.name_),
        value_(other.value_),
        lie_(other.lie_),
        tactic_(other.tactic_),
        on_host_(other.on_host_) {
    ++g_alive;
  }
  ~HostPlugin() override { --g_alive; }

  virtual HostPlugin* copy() const = 0;
  InterfaceInfo getInterfaceInfo() const noexcept override { return IPluginV3OneBuildV2::getInterfaceInfo(); }
  IPluginV3* clone() noexcept override { return lie_ == Lie::clone_null ? nullptr : copy(); }
  IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override {
    switch (type) {
      case PluginCapabilityType::kCORE:
        return static_cast<IPluginV3OneCore*>(this);
      case PluginCapabilityType::kBUILD:
        return lie_ == Lie::no_build ? nullptr : static_cast<IPluginV3OneBuildV2*>(this);
      case PluginCapabilityType::kRUNTIME:
        return static_cast<IPluginV3OneRuntime*>(this);
    }
    return nullptr;
  }

  const char* getPluginName() const noexcept override { return lie_ == Lie::no_name ? nullptr : name_; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return "test"; }

  int32_t getNbOutputs() const noexcept override { return lie_ == Lie::no_outputs ? 0 : outputs(); }
  int32_t getOutputDataTypes(DataType* types, int32_t count, const DataType* inputs, int32_t) const noexcept override {
    for (int32_t i = 0; i < count; ++i) types[i] = lie_ == Lie::types_unknown ? static_cast<DataType>(99) : inputs[0];
    return lie_ == Lie::types_fail ? 7 : 0;
  }
  int32_t getOutputShapes(const DimsExprs* inputs, int32_t, const DimsExprs*, int32_t, DimsExprs* outputs, int32_t,
                          IExprBuilder& builder) noexcept override {
    outputs[0] = inputs[0];
    if (lie_ == Lie::shapes_null) outputs[0].d[0] = nullptr;
    if (lie_ == Lie::shapes_foreign) outputs[0].d[0] = reinterpret_cast<const IDimensionExpr*>(this);
    if (lie_ == Lie::shapes_negative) outputs[0].d[0] = builder.constant(-4);
    return lie_ == Lie::shapes_fail ? 5 : 0;
  }
  bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc* all, int32_t, int32_t) noexcept override {
    return lie_ != Lie::no_format && all[pos].desc.format == TensorFormat::kLINEAR;
  }
  int32_t configurePlugin(const DynamicPluginTensorDesc*, int32_t, const DynamicPluginTensorDesc*,
                          int32_t) noexcept override {
    return lie_ == Lie::configure_fails ? 3 : 0;
  }
  size_t getWorkspaceSize(const DynamicPluginTensorDesc*, int32_t, const DynamicPluginTensorDesc*,
                          int32_t) const noexcept override {
    return lie_ == Lie::huge_workspace ? SIZE_MAX : 64;
  }
  int32_t getNbTactics() noexcept override { return lie_ == Lie::tactics_fail || lie_ == Lie::tactic_zero ? 1 : 0; }
  int32_t getValidTactics(int32_t* tactics, int32_t) noexcept override {
    tactics[0] = lie_ == Lie::tactic_zero ? 0 : 1;
    return lie_ == Lie::tactics_fail ? 9 : 0;
  }
  int32_t getAliasedInput(int32_t) noexcept override { return lie_ == Lie::alias_wrong ? 12 : -1; }

  int32_t setTactic(int32_t tactic) noexcept override {
    tactic_ = tactic;
    return lie_ == Lie::tactic_refused ? 4 : 0;
  }
  int32_t onShapeChange(const PluginTensorDesc*, int32_t, const PluginTensorDesc*, int32_t) noexcept override {
    ++g_shape_changes;
    return lie_ == Lie::shape_change_fails ? 6 : 0;
  }
  int32_t enqueue(const PluginTensorDesc* in, const PluginTensorDesc* out, const void* const* inputs,
                  void* const* outputs, void* workspace, cudaStream_t stream) noexcept override {
    if (lie_ == Lie::enqueue_fails || !on_host_ || stream != nullptr) return 8;
    if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0 || !workspace) return 10;
    std::memset(workspace, 0x5a, 64);
    return run(in, out, inputs, outputs);
  }
  IPluginV3* attachToContext(IPluginResourceContext* context) noexcept override {
    if (lie_ == Lie::attach_null) return nullptr;
    HostPlugin* attached = copy();
    attached->on_host_ = lathe::runsOnHost(*context);
    return attached;
  }
  const PluginFieldCollection* getFieldsToSerialize() noexcept override {
    fields_ = {PluginField(lie_ == Lie::field_without_name ? nullptr : "value", &value_, PluginFieldType::kFLOAT32, 1),
               PluginField("lie", &lie_, PluginFieldType::kINT32, 1),
               PluginField("built", &built_, PluginFieldType::kCHAR, 1)};
    collection_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
    return lie_ == Lie::fields_null ? nullptr : &collection_;
  }

 protected:
  virtual int32_t outputs() const noexcept { return 1; }
  virtual bool is_slow() const noexcept { return false; }
  virtual int32_t run(const PluginTensorDesc* in, const PluginTensorDesc* out, const void* const* inputs,
                      void* const* outputs) noexcept = 0;
  static int64_t volume(const Dims& dims) {
    int64_t product = 1;
    for (int32_t i = 0; i < dims.nbDims; ++i) product *= dims.d[i];
    return product;
  }

  const char* name_;
  float value_;
  Lie lie_;
  int32_t tactic_ = 0;
  bool on_host_ = false;

 private:
  char built_ = 'b';
  std::vector<PluginField> fields_;
  PluginFieldCollection collection_{};
};

// y = value * x.
class ScalePlugin : public HostPlugin {
 public:
  using HostPlugin::HostPlugin;
  HostPlugin* copy() const override { return new ScalePlugin(*this); }
  int32_t run(const PluginTensorDesc* in, const PluginTensorDesc*, const void* const* inputs,
              void* const* outputs) noexcept override {
    for (int64_t i = 0; i < volume(in[0].dims); ++i)
      static_cast<float*>(outputs[0])[i] = value_ * static_cast<const float*>(inputs[0])[i];
    return 0;
  }
};

// Places of the elements of x[r, c] that are not zero, as rows (row, column), and their number.
class NonzeroPlugin : public HostPlugin {
 public:
  using HostPlugin::HostPlugin;
  HostPlugin* copy() const override { return new NonzeroPlugin(*this); }
  int32_t outputs() const noexcept override { return 2; }
  int32_t getOutputDataTypes(DataType* types, int32_t, const DataType*, int32_t) const noexcept override {
    types[0] = DataType::kINT32;
    types[1] = DataType::kINT64;
    return 0;
  }
  int32_t getOutputShapes(const DimsExprs* inputs, int32_t, const DimsExprs*, int32_t, DimsExprs* outputs, int32_t,
                          IExprBuilder& builder) noexcept override {
    const IDimensionExpr* upper = builder.operation(DimensionOperation::kPROD, *inputs[0].d[0], *inputs[0].d[1]);
    const IDimensionExpr* opt = builder.operation(DimensionOperation::kFLOOR_DIV, *upper, *builder.constant(2));
    const IDimensionExpr* size = builder.declareSizeTensor(1, *opt, *upper);
    if (!size || !size->isSizeTensor() || size->isConstant()) return 2;
    outputs[0].nbDims = 2;
    outputs[0].d[0] = size;
    outputs[0].d[1] = builder.constant(2);
    outputs[1].nbDims = 0;
    return 0;
  }
  int32_t run(const PluginTensorDesc* in, const PluginTensorDesc* out, const void* const* inputs,
              void* const* outputs) noexcept override {
    if (out[0].dims.d[0] != -1 || out[0].dims.d[1] != 2) return 11;
    int64_t count = 0;
    for (int64_t i = 0; i < volume(in[0].dims); ++i) {
      if (static_cast<const float*>(inputs[0])[i] == 0) continue;
      static_cast<int32_t*>(outputs[0])[2 * count] = static_cast<int32_t>(i / in[0].dims.d[1]);
      static_cast<int32_t*>(outputs[0])[2 * count++ + 1] = static_cast<int32_t>(i % in[0].dims.d[1]);
    }
    *static_cast<int64_t*>(outputs[1]) = lie_ == Lie::size_too_large ? 1000 : lie_ == Lie::size_negative ? -1 : count;
    return 0;
  }
};

// Adds `value` to its input in place.
class InPlacePlugin : public HostPlugin {
 public:
  using HostPlugin::HostPlugin;
  HostPlugin* copy() const override { return new InPlacePlugin(*this); }
  int32_t getAliasedInput(int32_t) noexcept override { return 0; }
  int32_t run(const PluginTensorDesc* in, const PluginTensorDesc*, const void* const* inputs,
              void* const* outputs) noexcept override {
    if (inputs[0] != outputs[0]) return 12;
    for (int64_t i = 0; i < volume(in[0].dims); ++i) static_cast<float*>(outputs[0])[i] += value_;
    return 0;
  }
};

// Gives the number of its tactic everywhere; only tactic 3 is fast. Its times are kept if `value` is more than 0.
class TacticPlugin : public HostPlugin {
 public:
  using HostPlugin::HostPlugin;
  HostPlugin* copy() const override { return new TacticPlugin(*this); }
  bool is_slow() const noexcept override { return tactic_ != 3; }
  const char* getTimingCacheID() noexcept override { return value_ > 0 ? "timed" : nullptr; }
  int32_t getNbTactics() noexcept override { return 3; }
  int32_t getValidTactics(int32_t* tactics, int32_t count) noexcept override {
    for (int32_t i = 0; i < count; ++i) tactics[i] = i + 2;
    return 0;
  }
  int32_t run(const PluginTensorDesc* in, const PluginTensorDesc*, const void* const*,
              void* const* outputs) noexcept override {
    ++g_timed;
    if (is_slow()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (int64_t i = 0; i < volume(in[0].dims); ++i) static_cast<float*>(outputs[0])[i] = static_cast<float>(tactic_);
    return 0;
  }
};

template <class P>
class TestCreator final : public IPluginCreatorV3One {
 public:
  explicit TestCreator(const char* name) : name_(name) {}
  IPluginV3* createPlugin(const char*, const PluginFieldCollection* fields, TensorRTPhase phase) noexcept override {
    float value = 0;
    Lie lie = Lie::none;
    bool built = false;
    for (int32_t i = 0; i < fields->nbFields; ++i) {
      const PluginField& field = fields->fields[i];
      const std::string name = field.name;
      if (name == "value" && field.length == 1) value = *static_cast<const float*>(field.data);
      if (name == "lie") lie = *static_cast<const Lie*>(field.data);
      built = built || name == "built";
    }
    return phase == TensorRTPhase::kRUNTIME && built ? new P(name_, value, lie) : nullptr;
  }
  const PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  const char* getPluginName() const noexcept override { return name_; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return "test"; }

 private:
  const char* name_;
};

}  // namespace nvinfer1
