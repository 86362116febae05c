// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/refitter.h"

#include <algorithm>

#include "plan/plan.h"

namespace lathe::api {
namespace {

constexpr nv::Weights kNone{nv::DataType::kFLOAT, nullptr, 0};

std::string text_of(const char* name) { return name ? name : "(null)"; }

int64_t count_of(const plan::RefitWeights& weights) { return checked_volume(weights.dims).value_or(0); }

}  // namespace

Refitter::Refitter(std::shared_ptr<EngineCore> engine, nv::ILogger& logger)
    : engine_(std::move(engine)), reporter_(&logger), given_(engine_->plan().refit.weights.size()) {
  mImpl = this;
}

#if NV_TENSORRT_MAJOR < 11
bool Refitter::refuse(SettingId id) noexcept {
  return guarded(reporter_, setting_of(id).name, [&]() -> Result<> { return fail(refusal_of(id)); });
}
#endif

Result<> Refitter::check_refittable() const {
  if (weights().kind == plan::RefitKind::none)
    return fail(ErrorCode::invalid_state,
                "the engine has no weights that can be replaced: build the plan with BuilderFlag::kREFIT, or anew with "
                "the new ones");
  if (engine_->engine->refittable()) return {};
  return fail(ErrorCode::invalid_state,
              "the engine was loaded for inspection only, and has no weights to replace: load it for running");
}

Result<size_t> Refitter::number_of(const char* name) const {
  LATHE_TRY(check_refittable());
  const std::vector<plan::RefitWeights>& all = weights().weights;
  const auto has_name = [&](const plan::RefitWeights& each) { return name && *name && each.name == name; };
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const plan::RefitWeights& each) { return !each.is_fixed && has_name(each); });
  if (found != all.end()) return static_cast<size_t>(found - all.begin());
  if (std::any_of(all.begin(), all.end(), has_name))
    return fail(ErrorCode::invalid_argument,
                "weights '{}' cannot be replaced: the plan was optimised for them (sizes, single numbers, integers, "
                "scales of quantisation, or not marked with BuilderFlag::kREFIT_INDIVIDUAL)",
                text_of(name));
  return fail(ErrorCode::invalid_argument, "the engine has no refittable weights '{}'; getAllWeights() lists them",
              text_of(name));
}

Result<> Refitter::set(size_t number, const nv::Weights& given, nv::TensorLocation location,
                       std::shared_ptr<const void> owner) {
  const plan::RefitWeights& wanted = weights().weights[number];
  const std::string name = !wanted.name.empty() || wanted.layers.empty() ? wanted.name : wanted.layers[0];
  LATHE_ASSIGN(const DType dtype, to_dtype(given.type));
  if (dtype != wanted.dtype || given.count != count_of(wanted))
    return fail(ErrorCode::invalid_argument, "weights of '{}' are {} elements of type {}, but {} of type {} were given",
                name, count_of(wanted), name_of(wanted.dtype), given.count, name_of(dtype));
  if (!given.values) return fail(ErrorCode::invalid_argument, "the values of weights '{}' are null", name);
  if (location != nv::TensorLocation::kHOST && location != nv::TensorLocation::kDEVICE)
    return fail(ErrorCode::invalid_argument, "{} is no location of weights", static_cast<int>(location));
  if (location == nv::TensorLocation::kDEVICE && !engine_->engine->device().is_accessible(given.values))
    return fail(ErrorCode::invalid_argument, "the values of weights '{}' lie at {}, which {} cannot read", name,
                given.values, engine_->engine->device().name());
  given_[number] = Given{given, location, std::move(owner)};
  return {};
}

Result<> Refitter::set_named(const char* name, const nv::Weights& given, nv::TensorLocation location) {
  LATHE_ASSIGN(const size_t number, number_of(name));
  return set(number, given, location);
}

bool Refitter::setWeights(const char* layerName, nv::WeightsRole role, const nv::Weights weights) noexcept {
  return guarded(changing(), "IRefitter::setWeights", [&]() -> Result<> {
    LATHE_TRY(check_refittable());
    const std::vector<plan::RefitWeights>& all = this->weights().weights;
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t k = 0; k < all[i].layers.size() && !all[i].is_fixed; ++k)
        if (layerName && all[i].layers[k] == layerName && all[i].roles[k] == static_cast<uint32_t>(role))
          return set(i, weights, nv::TensorLocation::kHOST);
    return fail(ErrorCode::invalid_argument,
                "the engine has no refittable weights of layer '{}' and role {}; getAll() lists them",
                text_of(layerName), static_cast<int>(role));
  });
}

bool Refitter::setNamedWeights(const char* name, nv::Weights weights) noexcept {
  return guarded(changing(), "IRefitter::setNamedWeights",
                 [&] { return set_named(name, weights, nv::TensorLocation::kHOST); });
}

bool Refitter::setNamedWeightsWithLocation(const char* name, nv::Weights weights,
                                           nv::TensorLocation location) noexcept {
  return guarded(changing(), "IRefitter::setNamedWeights", [&] { return set_named(name, weights, location); });
}

bool Refitter::unsetNamedWeights(const char* weightsName) noexcept {
  return guarded(changing(), "IRefitter::unsetNamedWeights", [&]() -> Result<> {
    LATHE_ASSIGN(const size_t number, number_of(weightsName));
    if (!given_[number]) return fail(ErrorCode::invalid_state, "weights '{}' were not set", text_of(weightsName));
    given_[number].reset();
    return {};
  });
}

Result<> Refitter::give(const Contents& contents) {
  LATHE_ASSIGN(const Exclusive::Turn turn, use_.take());
  std::vector<std::optional<Given>> before = given_;
  for (size_t i = 0; i < given_.size(); ++i)
    if (Result<> taken = give(i, contents); !taken) {
      given_ = std::move(before);
      return taken;
    }
  return {};
}

Result<> Refitter::give(size_t number, const Contents& contents) {
  const plan::RefitWeights& wanted = weights().weights[number];
  const std::string& name = wanted.model_name.empty() ? wanted.name : wanted.model_name;
  if (wanted.is_added || name.empty()) return {};
  const auto found = contents.find(name);
  if (found == contents.end())
    return fail(ErrorCode::invalid_argument,
                "the model has no weights '{}', as that of the plan had: refit the engine from a model that differs "
                "in values alone",
                name);
  const Content& content = found->second;
  if (wanted.dtype != content.dtype || wanted.dims != content.dims)
    return fail(ErrorCode::invalid_argument, "weights '{}' are {}{}, but {}{} in the model", name,
                name_of(wanted.dtype), lathe::to_string(to_shape(wanted.dims)), name_of(content.dtype),
                lathe::to_string(to_shape(content.dims)));
  if (!wanted.is_fixed)
    return set(number, {to_nv(content.dtype), content.bytes.data(), count_of(wanted)}, nv::TensorLocation::kHOST,
               content.owner);
  if (digest_of(content.bytes) == wanted.digest) return {};
  return fail(ErrorCode::invalid_argument,
              "'{}' has another value in the model, and the plan was optimised for the one it had: build it anew",
              name);
}

Result<std::vector<Tensor>> Refitter::contents() const {
  std::vector<Tensor> contents(given_.size());
  Device& device = engine_->engine->device();
  for (size_t i = 0; i < given_.size(); ++i) {
    if (!given_[i]) continue;
    const plan::RefitWeights& wanted = weights().weights[i];
    if (given_[i]->location == nv::TensorLocation::kHOST || device.is_host()) {
      contents[i] = Tensor::view(wanted.dtype, wanted.dims, given_[i]->weights.values, given_[i]->owner);
      continue;
    }
    LATHE_ASSIGN(contents[i], Tensor::allocate(wanted.dtype, wanted.dims));
    LATHE_ASSIGN(const std::unique_ptr<Queue> queue, device.make_queue());
    LATHE_TRY(device.follow_all(*queue));
    LATHE_TRY(device.download(contents[i].mutable_data(), given_[i]->weights.values, contents[i].bytes(), *queue));
  }
  return contents;
}

Result<> Refitter::refit() {
  LATHE_TRY(check_refittable());
  LATHE_ASSIGN(const std::vector<Tensor> contents, this->contents());
  return engine_->engine->refittable()->refit(contents, validates_ ? RangeCheck::on : RangeCheck::off, max_threads_);
}

bool Refitter::refitCudaEngine() noexcept {
  return guarded(changing(), "IRefitter::refitCudaEngine", [&] { return refit(); });
}

bool Refitter::refitCudaEngineAsync(cudaStream_t stream) noexcept {
  return guarded(changing(), "IRefitter::refitCudaEngineAsync", [&]() -> Result<> {
    LATHE_TRY(check_refittable());
    Device& device = engine_->engine->device();
    LATHE_ASSIGN(const std::unique_ptr<Queue> queue, device.make_stream_queue(stream));
    LATHE_TRY(device.wait(*queue));  // weights may be made on it
    return refit();
  });
}

bool Refitter::setMaxThreads(int32_t maxThreads) noexcept {
  return guarded(changing(), "IRefitter::setMaxThreads", [&]() -> Result<> {
    if (maxThreads < 1) return fail(ErrorCode::invalid_argument, "{} threads; at least 1 is needed", maxThreads);
    max_threads_ = maxThreads;
    return {};
  });
}

std::vector<bool> Refitter::all() const {
  std::vector<bool> all;
  for (const plan::RefitWeights& each : weights().weights) all.push_back(!each.is_fixed);
  return all;
}

std::vector<bool> Refitter::missing() const {
  const Refittable* const refittable = engine_->engine->refittable();
  std::vector<bool> given;
  for (const std::optional<Given>& each : given_) given.push_back(each.has_value());
  return refittable ? refittable->missing(given) : std::vector<bool>(given.size());
}

int32_t Refitter::list_names(const char* where, Which which, int32_t size, const char** names) noexcept {
  return guarded(looking(), where, 0, [&]() -> Result<int32_t> {
    const std::vector<bool> wanted = (this->*which)();
    if (size < 0 || (size > 0 && !names)) return fail(ErrorCode::invalid_argument, "{} names have no room", size);
    int32_t count = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::string& name = weights().weights[i].name;
      if (!wanted[i] || name.empty()) continue;
      if (count < size) names[count] = name.c_str();
      ++count;
    }
    return count;
  });
}

int32_t Refitter::list_layers(const char* where, Which which, int32_t size, const char** layers,
                              nv::WeightsRole* roles) noexcept {
  return guarded(looking(), where, 0, [&]() -> Result<int32_t> {
    const std::vector<bool> wanted = (this->*which)();
    if (size < 0 || (size > 0 && (!layers || !roles)))
      return fail(ErrorCode::invalid_argument, "{} layers and roles have no room", size);
    int32_t count = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const plan::RefitWeights& each = weights().weights[i];
      for (size_t k = 0; k < each.layers.size() && wanted[i]; ++k, ++count) {
        if (count >= size) continue;
        layers[count] = each.layers[k].c_str();
        roles[count] = static_cast<nv::WeightsRole>(each.roles[k]);
      }
    }
    return count;
  });
}

int32_t Refitter::getMissing(int32_t size, const char** layerNames, nv::WeightsRole* roles) noexcept {
  return list_layers("IRefitter::getMissing", &Refitter::missing, size, layerNames, roles);
}

int32_t Refitter::getAll(int32_t size, const char** layerNames, nv::WeightsRole* roles) noexcept {
  return list_layers("IRefitter::getAll", &Refitter::all, size, layerNames, roles);
}

int32_t Refitter::getMissingWeights(int32_t size, const char** weightsNames) noexcept {
  return list_names("IRefitter::getMissingWeights", &Refitter::missing, size, weightsNames);
}

int32_t Refitter::getAllWeights(int32_t size, const char** weightsNames) noexcept {
  return list_names("IRefitter::getAllWeights", &Refitter::all, size, weightsNames);
}

nv::Weights Refitter::getNamedWeights(const char* weightsName) const noexcept {
  return guarded(looking(), "IRefitter::getNamedWeights", kNone, [&]() -> Result<nv::Weights> {
    LATHE_ASSIGN(const size_t number, number_of(weightsName));
    return given_[number] ? given_[number]->weights : kNone;
  });
}

nv::TensorLocation Refitter::getWeightsLocation(const char* weightsName) const noexcept {
  return guarded(looking(), "IRefitter::getWeightsLocation", nv::TensorLocation::kHOST,
                 [&]() -> Result<nv::TensorLocation> {
                   LATHE_ASSIGN(const size_t number, number_of(weightsName));
                   return given_[number] ? given_[number]->location : nv::TensorLocation::kHOST;
                 });
}

nv::Weights Refitter::getWeightsPrototype(const char* weightsName) const noexcept {
  constexpr nv::Weights kUnknown{nv::DataType::kFLOAT, nullptr, -1};
  return guarded(looking(), "IRefitter::getWeightsPrototype", kUnknown, [&]() -> Result<nv::Weights> {
    LATHE_ASSIGN(const size_t number, number_of(weightsName));
    const plan::RefitWeights& wanted = weights().weights[number];
    return nv::Weights{to_nv(wanted.dtype), nullptr, count_of(wanted)};
  });
}

}  // namespace lathe::api
