// SPDX-License-Identifier: Apache-2.0
#include "plan/validate.h"

#include <algorithm>
#include <unordered_set>

#include "plan/expressions.h"
#include "plan/limits.h"
#include "plan/validate_refit.h"
#include "plan/validate_steps.h"
#include "plan/windows.h"

namespace lathe::plan {
namespace {

template <class... Args>
tl::unexpected<Error> malformed(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::plan_malformed, format, std::forward<Args>(args)...);
}

class Validator {
 public:
  explicit Validator(const Plan& plan) : plan_(plan) {}

  Result<> run() {
    LATHE_TRY(check_limits());
    LATHE_TRY(check_expressions());
    LATHE_TRY(check_weights());
    LATHE_TRY(validate_refit(plan_));
    LATHE_TRY(each(plan_.codes, "code module", &Validator::check_module));
    LATHE_TRY(each(plan_.headers, "header", &Validator::check_header));
    LATHE_TRY(check_buffers());
    LATHE_TRY(check_bindings());
    LATHE_TRY(each(plan_.tensors, "tensor", &Validator::check_tensor));
    LATHE_TRY(each(plan_.symbols, "symbol", &Validator::check_symbol));
    LATHE_TRY(check_profiles());
    LATHE_TRY(validate_steps(plan_));
    return check_window_proofs(plan_, profile_hull());
  }

 private:
  template <class T>
  Result<> each(const std::vector<T>& list, const char* what, Result<> (Validator::*check)(size_t, const T&)) {
    for (size_t i = 0; i < list.size(); ++i) {
      Result<> result = (this->*check)(i, list[i]);
      if (!result) return fail(with_context(std::move(result).error(), fmt::format("plan: {} {}", what, i)));
    }
    return {};
  }

  Result<> check_limits() {
    if (plan_.target.size() > kMaxTarget || plan_.target.find('\0') != std::string::npos)
      return malformed("plan: the target's name is longer than {} bytes or holds a zero", kMaxTarget);
    for (const size_t count : {plan_.symbols.size(), plan_.profiles.size(), plan_.tensors.size(), plan_.buffers.size(),
                               plan_.constants.size(), plan_.codes.size(), plan_.headers.size(),
                               plan_.constraints.size(), plan_.bindings.size(), plan_.steps.size(),
                               plan_.sections.size(), plan_.metadata.size(), size_t{plan_.dynamic_slots}})
      if (count > kMaxEntries) return malformed("plan: a list has {} entries; the limit is {}", count, kMaxEntries);
    return {};
  }

  Result<> check_pieces() {
    if (plan_.pieces.empty()) return {};
    if (plan_.pieces.size() != plan_.constants.size() || !plan_.weights.empty() || plan_.detached)
      return malformed("plan: {} pieces of weights do not fit its {} constants", plan_.pieces.size(),
                       plan_.constants.size());
    uint64_t end = 0;
    for (size_t i = 0; i < plan_.pieces.size(); ++i) {
      const Constant& c = plan_.constants[i];
      if (c.stripped) continue;
      if (c.bytes != plan_.pieces[i].bytes.size() || c.offset < end || c.offset - end >= kWeightsAlignment)
        return malformed("plan: constant at {} with {} bytes is not where its {} bytes end up", c.offset, c.bytes,
                         plan_.pieces[i].bytes.size());
      end = c.offset + c.bytes;
    }
    if (end != plan_.pieces_bytes) return malformed("plan: its pieces end at {}, not at {}", end, plan_.pieces_bytes);
    return {};
  }

  Result<> check_weights() {
    const uint64_t weights = plan_.weights_bytes();
    if (plan_.detached && !plan_.weights.empty() && plan_.weights.size() != weights)
      return malformed("plan: it has {} bytes of weights and says {}", plan_.weights.size(), weights);
    if (!plan_.detached && !plan_.weights_file.empty())
      return malformed("plan: its weights are in its file and in '{}'", plan_.weights_file);
    LATHE_TRY(check_pieces());
    std::unordered_set<std::string_view> names;
    for (const Constant& c : plan_.constants) {
      if (c.name.empty() || !names.insert(c.name).second)
        return malformed("plan: a constant has no name or that of another, '{}'", c.name);
      if (c.offset % kConstantAlignment != 0)
        return malformed("plan: a constant is not {}-byte aligned", kConstantAlignment);
      if (!c.stripped && (c.offset > weights || c.bytes > weights - c.offset))
        return malformed("plan: constant at {} with {} bytes lies outside the weights ({} bytes)", c.offset, c.bytes,
                         weights);
    }
    return {};
  }

  Result<> check_module(size_t, const CodeModule& module) {
    if (module.images.empty() || module.images.size() > kMaxImages)
      return malformed("it has {} images", module.images.size());
    for (size_t i = 0; i < module.images.size(); ++i) {
      const CodeImage& image = module.images[i];
      if (image.target.empty() || image.bytes.empty()) return malformed("an image is for no target or empty");
      for (size_t j = 0; j < i; ++j)
        if (module.images[j].form == image.form && module.images[j].target == image.target)
          return malformed("it has two images of form '{}' for {}", lathe::name_of(image.form), image.target);
    }
    return {};
  }

  Result<> check_header(size_t i, const SourceFile& header) {
    if (header.name.empty() || header.bytes.empty()) return malformed("it has no name or is empty");
    for (size_t j = 0; j < i; ++j)
      if (plan_.headers[j].name == header.name) return malformed("there are two of the name '{}'", header.name);
    return {};
  }

  // Symbols exist. Sizes of the arena use none that running computes, nor do dimensions of inputs.
  Result<> check_expressions() {
    std::vector<bool> is_input(plan_.tensors.size());
    for (const Binding& b : plan_.bindings)
      if (b.is_input && b.tensor < is_input.size()) is_input[b.tensor] = true;
    Result<> result;
    for_each_expression(plan_, [&](const Expr& e, const ExprPlace& place) {
      if (!result || (e.is_valid() && e.is_constant())) return;
      const bool early =
          place.use == ExprUse::buffer_size || (place.use == ExprUse::dimension && is_input[place.index]);
      result = check_expression(e, name_of(place.use), early);
      if (!result)
        result = fail(with_context(std::move(result).error(), fmt::format("plan: {} {}", place.owner, place.index)));
    });
    return result;
  }

  Result<> check_expression(const Expr& e, std::string_view what, bool known_before_running) {
    if (!e.is_valid()) return malformed("{} is an invalid expression", what);
    scratch_.clear();
    e.collect_symbols(scratch_);
    for (const SymbolId id : scratch_) {
      if (id >= plan_.symbols.size()) return malformed("{} uses symbol {} of {}", what, id, plan_.symbols.size());
      if (known_before_running && plan_.symbols[id].source == SymbolSource::computed)
        return malformed("{} uses symbol {}, which is computed while running", what, id);
    }
    return {};
  }

  Result<> check_buffers() {
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer& b = plan_.buffers[i];
      if (const auto bytes = b.bytes.as_constant(); bytes && *bytes < 0)
        return malformed("plan: buffer {} has a negative size", i);
      if (b.first > b.last || b.last >= plan_.steps.size())
        return malformed("plan: buffer {} lives from step {} to {} of {}", i, b.first, b.last, plan_.steps.size());
    }
    return {};
  }

  Result<> check_bindings() {
    std::unordered_set<std::string_view> names;
    bool outputs_began = false;
    for (size_t i = 0; i < plan_.bindings.size(); ++i) {
      const Binding& b = plan_.bindings[i];
      if (b.name.empty() || b.name.find('\0') != std::string::npos)
        return malformed("plan: binding {} has no usable name", i);
      if (!names.insert(b.name).second) return malformed("plan: two bindings are named '{}'", b.name);
      if (b.is_input && outputs_began) return malformed("plan: input '{}' comes after an output", b.name);
      outputs_began |= !b.is_input;
      if (b.tensor >= plan_.tensors.size())
        return malformed("plan: binding '{}' refers to tensor {}", b.name, b.tensor);
      const TensorDesc& t = plan_.tensors[b.tensor];
      if (t.storage != StorageKind::binding || t.index != i || !(t.offset == Expr(0)))
        return malformed("plan: the tensor of binding '{}' is not the binding itself", b.name);
      if (!b.dim_names.empty() && b.dim_names.size() != t.dims.size())
        return malformed("plan: binding '{}' has {} dimension names for {} dimensions", b.name, b.dim_names.size(),
                         t.dims.size());
    }
    return {};
  }

  Result<> check_tensor(size_t, const TensorDesc& t) {
    if (!dtype_from_number(static_cast<int>(t.dtype))) return malformed("unknown element type");
    if (t.dims.size() > kMaxRank) return malformed("rank {} exceeds {}", t.dims.size(), kMaxRank);
    if (!t.strides.empty() && t.strides.size() != t.dims.size())
      return malformed("{} strides for {} dimensions", t.strides.size(), t.dims.size());
    if (is_packed(t.dtype) && (!t.strides.empty() || t.offset != Expr(0)))
      return malformed("elements of type {} are part of a larger tensor; they must be one by themselves",
                       name_of(t.dtype));
    size_t storages = 0;
    switch (t.storage) {
      case StorageKind::arena:
        storages = plan_.buffers.size();
        break;
      case StorageKind::constant:
        storages = plan_.constants.size();
        break;
      case StorageKind::binding:
        storages = plan_.bindings.size();
        break;
      case StorageKind::dynamic:
        storages = plan_.dynamic_slots;
        break;
    }
    if (t.index >= storages) return malformed("storage {} of {} does not exist", t.index, storages);
    if (t.kind != ValueKind::tensor && t.storage != StorageKind::dynamic)
      return malformed("it is a sequence or an optional and does not lie in a dynamic slot");
    return {};
  }

  Result<> check_symbol(size_t i, const Symbol& s) {
    if (s.range.min > s.range.max) return malformed("its range {} .. {} is empty", s.range.min, s.range.max);
    if (s.source == SymbolSource::computed) return {};
    if (s.tensor >= plan_.bindings.size() || !plan_.bindings[s.tensor].is_input)
      return malformed("its source is input {}, which does not exist", s.tensor);
    const Binding& b = plan_.bindings[s.tensor];
    const TensorDesc& t = plan_.tensors[b.tensor];
    if (s.source == SymbolSource::input_dim) {
      if (s.range.min < 0) return malformed("a dimension may not be negative");
      if (s.index >= t.dims.size() || t.dims[s.index].as_symbol() != static_cast<SymbolId>(i))
        return malformed("dimension {} of input '{}' is not this symbol", s.index, b.name);
      return {};
    }
    if (!b.is_shape_tensor) return malformed("input '{}' is not a shape tensor", b.name);
    const auto dims = as_constant(t.dims);
    int64_t count = 1;
    bool fits = dims.has_value();
    for (size_t d = 0; fits && d < dims->size(); ++d)
      fits = (*dims)[d] >= 0 && !__builtin_mul_overflow(count, (*dims)[d], &count);
    if (!fits || s.index >= count) return malformed("shape tensor '{}' has no element {}", b.name, s.index);
    return {};
  }

  Result<> check_profiles() {
    if (plan_.profiles.empty()) return malformed("plan: it has no optimization profile");
    for (const Profile& profile : plan_.profiles) {
      if (profile.symbols.size() != plan_.symbols.size())
        return malformed("plan: a profile covers {} symbols of {}", profile.symbols.size(), plan_.symbols.size());
      for (size_t i = 0; i < profile.symbols.size(); ++i) {
        const SymbolProfile& p = profile.symbols[i];
        const Range& range = plan_.symbols[i].range;
        if (p.min > p.opt || p.opt > p.max || p.min < range.min || p.max > range.max)
          return malformed("plan: a profile gives symbol {} the values {} / {} / {}, its range is {} .. {}", i, p.min,
                           p.opt, p.max, range.min, range.max);
      }
    }
    return {};
  }

  // For each symbol, all values that some profile allows.
  std::vector<Range> profile_hull() const {
    std::vector<Range> hull(plan_.symbols.size());
    for (size_t i = 0; i < hull.size(); ++i) {
      hull[i] = {plan_.profiles[0].symbols[i].min, plan_.profiles[0].symbols[i].max};
      for (const Profile& p : plan_.profiles)
        hull[i] = {std::min(hull[i].min, p.symbols[i].min), std::max(hull[i].max, p.symbols[i].max)};
    }
    return hull;
  }

  const Plan& plan_;
  std::vector<SymbolId> scratch_;
};

}  // namespace

Result<> validate(const Plan& plan) { return Validator(plan).run(); }

}  // namespace lathe::plan
