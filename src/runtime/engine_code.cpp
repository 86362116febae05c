// SPDX-License-Identifier: Apache-2.0
// An engine's device code: which images its device takes, and what is compiled of them.
#include <algorithm>

#include "base/inflate.h"
#include "device/family.h"
#include "plan/limits.h"
#include "runtime/engine.h"

namespace lathe {
namespace {

// What code that is compiled from an image depends on, besides the library, the device and its driver.
Digest key_of(const CodeImage& image, std::string_view target) {
  const std::string words = fmt::format("{} {} for {}\n", name_of(image.form), image.target, target);
  ContentHash hash;
  hash.add(std::as_bytes(std::span(words)));
  hash.add(image.bytes);
  return hash.digest();
}

}  // namespace

// Compressed code is inflated. Where something is compiled, kernels are made later, when the plan's bytes may be gone:
// all code is copied then.
Result<> Engine::choose_codes() {
  const std::string target = device_->target();
  std::vector<const CodeImage*> images;
  for (const CodeModule& module : plan().codes) {
    LATHE_ASSIGN(const CodeImage* image, choose_image(module, target));
    images.push_back(image);
  }
  const auto is_binary = [](const CodeImage* image) { return image->form == CodeForm::binary; };
  has_kernels_ = std::ranges::all_of(images, is_binary);
  size_t most = plan::kMaxDeflatedCode;
  for (size_t i = 0; i < images.size(); ++i) {
    const CodeImage& image = *images[i];
    module_bytes_.push_back(image.bytes);
    const bool is_deflated = plan().is_code_deflated && image.form != CodeForm::source;
    if (has_kernels_ && !is_deflated) continue;
    const auto bytes = std::make_shared<std::vector<std::byte>>();
    if (is_deflated) {
      Result<std::vector<std::byte>> inflated = inflate_bytes(image.bytes, most);
      if (!inflated) return fail(with_context(std::move(inflated).error(), fmt::format("code module {}", i)));
      *bytes = *std::move(inflated);
      most -= bytes->size();
    } else {
      bytes->assign(image.bytes.begin(), image.bytes.end());
    }
    const CodeImage own{image.form, image.target, *bytes};
    module_bytes_[i] = own.bytes;
    compiled_.push_back({i, own, bytes, has_kernels_ ? Digest() : key_of(own, target), {}});
  }
  return has_kernels_ && refittable_ ? refittable_->take_code(module_bytes_) : Result<>();
}

Result<> Engine::compile_images(KernelCache* cache) const {
  for (CompiledImage& one : compiled_) {
    if (one.image.form == CodeForm::binary) continue;
    const auto compile = [&] { return device_->compile(one.image); };
    if (cache) {
      LATHE_ASSIGN(one.code, cache->get(one.key, compile));
    } else {
      LATHE_ASSIGN(std::vector<std::byte> code, compile());
      const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(code));
      one.code = {*owner, owner};
    }
    module_bytes_[one.module] = one.code.bytes;
  }
  return {};
}

Result<> Engine::make_kernels(KernelCache* cache) const {
  const std::lock_guard lock(compile_mutex_);
  if (has_kernels_) {
    for (const CompiledImage& one : compiled_)
      if (cache && one.image.form != CodeForm::binary) cache->put(one.key, one.code);
    return {};
  }
  LATHE_TRY(compile_images(cache));
  for (size_t i = 0; i < code_.size(); ++i) {
    if (!plan().steps[i].is<plan::DeviceLaunches>()) continue;
    LATHE_ASSIGN(code_[i].kernel, make_kernel(i));
  }
  if (refittable_) LATHE_TRY(refittable_->take_code(module_bytes_));
  has_kernels_ = true;
  return {};
}

}  // namespace lathe
