// SPDX-License-Identifier: Apache-2.0
#include "runtime/refittable.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/divide.h"
#include "base/for_each_in_threads.h"
#include "runtime/place_constants.h"

namespace lathe {
Result<std::unique_ptr<Refittable>> Refittable::create(const plan::Plan& plan, std::shared_ptr<Device> device) {
  std::unique_ptr<Refittable> made(new Refittable(plan, std::move(device)));
  LATHE_ASSIGN(made->sources_, find_sources(plan));
  LATHE_ASSIGN(made->steps_, read_steps(plan.refit));
  uint64_t end = 0;
  for (const plan::Constant& constant : plan.constants) {
    made->offsets_.push_back(end);
    made->present_.push_back(!constant.stripped);
    end += round_up(constant.bytes, ConstantUploader::kAlignment);
  }
  LATHE_ASSIGN(made->memory_, made->device_->allocate(end));
  LATHE_ASSIGN(const std::unique_ptr<Queue> queue, made->device_->make_queue());
  for (uint32_t i = 0; i < plan.constants.size(); ++i) {
    const plan::Constant& constant = plan.constants[i];
    if (!constant.stripped && constant.bytes > 0)
      LATHE_TRY(
          made->device_->upload(made->constant(i), plan.weights.data() + constant.offset, constant.bytes, *queue));
  }
  for (const plan::RefitOperand& operand : plan.refit.operands) {
    const plan::Constant& constant = plan.constants[operand.constant];
    const auto bytes = plan.weights.subspan(constant.offset, constant.bytes);
    made->operands_.emplace_back(bytes.begin(), bytes.end());
  }
  LATHE_TRY(made->device_->wait(*queue));
  made->set_present({}, Present::yes);
  return made;
}

Result<std::vector<std::byte>> Refittable::read(uint32_t index) const {
  std::vector<std::byte> bytes(present_[index] ? plan_.constants[index].bytes : 0);
  if (bytes.empty()) return bytes;
  LATHE_ASSIGN(const std::unique_ptr<Queue> queue, device_->make_queue());
  LATHE_TRY(device_->download(bytes.data(), constant(index), bytes.size(), *queue));
  return bytes;
}

Result<> Refittable::take_code(std::span<const std::span<const std::byte>> code) {
  if (plan_.refit.code == 0) return {};
  LATHE_ASSIGN(std::unique_ptr<Kernel> kernel, make_packing_kernel(*device_, code, plan_.refit.code - 1));
  const std::lock_guard turn(refits_);
  uploader_.set_packing(std::move(kernel));
  return {};
}

std::string Refittable::names_of(const std::vector<bool>& weights) const {
  constexpr size_t kMost = 8;
  std::string names;
  size_t count = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!weights[i] || ++count > kMost) continue;
    const plan::RefitWeights& each = plan_.refit.weights[i];
    const std::string name = !each.name.empty() || each.layers.empty() ? each.name : "those of layer " + each.layers[0];
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", name);
  }
  return count > kMost ? fmt::format("{} and {} more", names, count - kMost) : names;
}

Result<RefitGate::Lease> Refittable::use() {
  RefitGate::Lease lease = gate_.enter_run();
  if (is_complete()) return lease;
  return fail(
      ErrorCode::invalid_state,
      "the engine lacks {}, for its plan was stripped or a refit failed halfway: give them by IRefitter and call "
      "refitCudaEngine(), or refit it from its model",
      names_of(needed(std::vector<bool>(plan_.refit.weights.size()))));
}

std::vector<uint32_t> Refittable::affected(const std::vector<bool>& given) const {
  std::vector<uint32_t> constants;
  for (uint32_t i = 0; i < sources_.size(); ++i) {
    const bool follows =
        std::any_of(sources_[i].begin(), sources_[i].end(), [&](uint32_t weights) { return given[weights]; });
    if (follows || !present_[i]) constants.push_back(i);
  }
  return constants;
}

std::vector<bool> Refittable::needed(const std::vector<bool>& given) const {
  std::vector<bool> needed(plan_.refit.weights.size());
  for (const uint32_t constant : affected(given))
    for (const uint32_t weights : sources_[constant])
      if (!given[weights]) needed[weights] = true;
  return needed;
}

Result<> Refittable::check_given(std::span<const Tensor> weights, const std::vector<bool>& given) const {
  const std::vector<bool> lacking = needed(given);
  if (std::find(lacking.begin(), lacking.end(), true) != lacking.end())
    return fail(ErrorCode::invalid_state,
                "weights are missing that go into the same constants as those that were given: set {}, too; "
                "getMissing() and getMissingWeights() list them",
                names_of(lacking));
  if (plan_.refit.kind != plan::RefitKind::identical) return {};
  std::vector<bool> others(given.size());
  for (size_t i = 0; i < given.size(); ++i)
    others[i] = given[i] && digest_of(weights[i].raw()) != plan_.refit.weights[i].digest;
  if (std::find(others.begin(), others.end(), true) == others.end()) return {};
  return fail(
      ErrorCode::invalid_argument,
      "{} are not the weights that the plan was built with, and it takes no others (kREFIT_IDENTICAL): build it "
      "with BuilderFlag::kREFIT",
      names_of(others));
}

Result<Tensor> Refittable::operand(const plan::RefitOperand& operand) const {
  const size_t index = static_cast<size_t>(&operand - plan_.refit.operands.data());
  return Tensor::view(operand.dtype, operand.dims, operands_[index].data(), nullptr);
}

Result<> Refittable::derive(const std::vector<uint32_t>& constants, std::span<const Tensor> weights, RangeCheck check,
                            int threads) {
  if (derived_ && derived_->deriver.is_repeatable() && derived_->constants == constants &&
      derived_->deriver.repeat(weights, check, derived_->contents))
    return {};
  derived_.reset();  // what fails then fails anew, and says where
  const auto read = [this](const plan::RefitOperand& each) { return operand(each); };
  std::unique_ptr<Derived> made(new Derived{ConstantDeriver(plan_, steps_, weights, read, check), constants,
                                            std::vector<ConstantContent>(constants.size())});
  std::mutex mutex;
  std::optional<Error> error;
  const auto keep = [&](Error first) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(first);
  };
  for_each_in_threads(constants.size(), threads, [&](size_t i, size_t) {
    try {
      Result<ConstantContent> content = made->deriver.derive(constants[i]);
      content ? void(made->contents[i] = *std::move(content)) : keep(std::move(content).error());
    } catch (const std::bad_alloc&) {
      keep({ErrorCode::out_of_memory, "no memory for the engine's new weights", {}});
    }
  });
  if (error) return fail(*std::move(error));
  derived_ = std::move(made);
  return {};
}

// In the engine.
std::vector<ConstantPlacer::Place> Refittable::places() const {
  std::vector<ConstantPlacer::Place> places;
  for (size_t i = 0; i < derived_->constants.size(); ++i) {
    const uint32_t index = derived_->constants[i];
    places.push_back({&derived_->contents[i], constant(index), plan_.constants[index].bytes});
  }
  return places;
}

Result<> Refittable::check_ranges(int threads) const {
  const std::vector<uint32_t>& constants = derived_->constants;
  const std::vector<ConstantContent>& contents = derived_->contents;
  std::vector<std::optional<ChannelArithmetic::OutOfRange>> found(contents.size());
  for_each_in_threads(contents.size(), threads, [&](size_t i, size_t) {
    if (!contents[i].elements.holds_range()) found[i] = contents[i].elements.find_out_of_range();
  });
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i])
      return fail(with_context(found[i]->error(), fmt::format("constant '{}'", plan_.constants[constants[i]].name)));
  return {};
}

// Where kernels read the host's memory. Nothing fails once the engine is touched.
Result<> Refittable::place(RangeCheck check, int threads) {
  if (check == RangeCheck::on) LATHE_TRY(check_ranges(threads));
  const std::vector<uint32_t>& constants = derived_->constants;
  LATHE_ASSIGN(ConstantPlacer placer, ConstantPlacer::create(places(), threads));
  const RefitGate::Lease lease = gate_.enter_refit();
  for (const uint32_t index : constants)  // what lies between elements stays zero later
    if (!present_[index] && plan_.constants[index].bytes > 0)
      std::memset(constant(index), 0, plan_.constants[index].bytes);
  placer.run();
  set_present(constants, Present::yes);
  return {};
}

// Where they do not: numbers are looked at on the way, and runs wait for a copy within the device's memory alone.
Result<> Refittable::upload(RangeCheck check, int threads) {
  const std::vector<uint32_t>& constants = derived_->constants;
  std::vector<ConstantPlacer::Place> places = this->places();
  const auto aligned = [](const ConstantPlacer::Place& place) {
    return round_up(place.bytes, ConstantUploader::kAlignment);
  };
  uint64_t bytes = 0;
  for (const ConstantPlacer::Place& place : places) bytes += aligned(place);
  uint64_t scratch = uploader_.scratch_bytes(places);
  Result<DeviceMemory> beside = device_->allocate(bytes + scratch);
  if (!beside && scratch > 0) {
    scratch = 0;  // then the host packs
    beside = device_->allocate(bytes);
  }
  if (!beside && beside.error().code == ErrorCode::out_of_memory) return upload_in_place(check, threads);
  if (!beside) return fail(beside.error());
  std::byte* end = beside->data();
  for (ConstantPlacer::Place& place : places) place.to = std::exchange(end, end + aligned(place));
  LATHE_ASSIGN(const ConstantPlacer::Found found, uploader_.run(places, check, threads, scratch > 0 ? end : nullptr));
  if (found != ConstantPlacer::Found::none) {
    LATHE_TRY(check_ranges(threads));  // says where
    return fail(ErrorCode::internal, "a number out of range is not found again");
  }
  LATHE_ASSIGN(const std::unique_ptr<Queue> queue, device_->make_queue());
  const RefitGate::Lease lease = gate_.enter_refit();
  LATHE_TRY(device_->follow_all(*queue));
  set_present(constants, Present::no);  // after a failure, the constants are undefined
  for (size_t first = 0, next = 0; first < constants.size(); first = next) {
    do ++next;
    while (next < constants.size() && constants[next] - constants[first] == next - first);
    std::byte* const from = places[first].to;
    const auto width = static_cast<size_t>((next < places.size() ? places[next].to : end) - from);
    LATHE_TRY(device_->copy({.to = constant(constants[first]), .from = from, .width = width}, *queue));
  }
  LATHE_TRY(device_->wait(*queue));
  set_present(constants, Present::yes);
  return {};
}

// On a device without room for both.
Result<> Refittable::upload_in_place(RangeCheck check, int threads) {
  if (check == RangeCheck::on) LATHE_TRY(check_ranges(threads));
  const std::vector<ConstantPlacer::Place> places = this->places();
  LATHE_TRY(uploader_.prepare(places));
  LATHE_ASSIGN(const std::unique_ptr<Queue> queue, device_->make_queue());
  const RefitGate::Lease lease = gate_.enter_refit();
  LATHE_TRY(device_->follow_all(*queue));
  LATHE_TRY(device_->wait(*queue));
  set_present(derived_->constants, Present::no);
  LATHE_TRY(uploader_.run(places, RangeCheck::off, threads));
  set_present(derived_->constants, Present::yes);
  return {};
}

void Refittable::set_present(const std::vector<uint32_t>& constants, Present present) {
  for (const uint32_t constant : constants) present_[constant] = present == Present::yes;
  complete_.store(std::ranges::find(present_, /*value=*/false) == present_.end(), std::memory_order_release);
}

Result<> Refittable::refit(std::span<const Tensor> weights, RangeCheck check, int threads) {
  std::vector<bool> given;
  for (const Tensor& each : weights) given.push_back(each.defined());
  // What is there changes by refits alone, which the gate keeps apart, so that runs wait no longer than they must: for
  // the copies.
  const std::lock_guard turn(refits_);
  LATHE_TRY(check_given(weights, given));
  const std::vector<uint32_t> constants = affected(given);
  LATHE_TRY(derive(constants, weights, check, threads));
  Result<> placed = device_->is_host() ? place(check, threads) : upload(check, threads);
  if (!derived_->deriver.is_repeatable()) derived_.reset();
  return placed;
}

}  // namespace lathe
