// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/adapt_code.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include "base/never_destroyed.h"
#include "device/cuda/architecture.h"
#include "device/cuda/known_numbers.h"
#include "device/cuda/link_assembly.h"
#include "device/cuda/nvrtc_compiler.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kFamily = "cuda";

// Starting one takes longer than compiling a small kernel, so they are kept.
struct Compilers {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<NvrtcCompiler>, std::less<>> by_target;  // and by where it compiles
};

Compilers& compilers() {
  static NeverDestroyed<Compilers> all;  // for threads
  return *all;
}

Result<std::shared_ptr<NvrtcCompiler>> compiler_for(std::string_view target, const CompilerOptions& options) {
  Compilers& all = compilers();
  const std::string key = fmt::format("{} {}", target, options.in_process ? "anywhere" : "elsewhere");
  const std::lock_guard lock(all.mutex);
  if (const auto it = all.by_target.find(key); it != all.by_target.end()) return it->second;
  LATHE_ASSIGN(std::unique_ptr<NvrtcCompiler> compiler, NvrtcCompiler::create(target, {}, options));
  return all.by_target[key] = std::move(compiler);
}

// The number of the architecture that the PTX is for, where the other one can run it; else 0.
int number_for(const CodeImage& image, const Architecture& architecture) {
  if (image.form != CodeForm::assembly || image.target.empty()) return 0;
  std::string_view target = image.target;
  const bool is_exact = std::isalpha(static_cast<unsigned char>(target.back())) != 0;
  if (is_exact) target.remove_suffix(1);
  const Result<const Architecture*> least = parse_target(target);
  if (!least || (is_exact ? (*least)->number != architecture.number : (*least)->number > architecture.number)) return 0;
  return (*least)->number;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<std::vector<std::byte>> compile_text(std::string_view text, std::span<const SourceFile> headers,
                                            std::string_view target, const CompilerOptions& options) {
  LATHE_ASSIGN(const std::shared_ptr<NvrtcCompiler> compiler, compiler_for(target, options));
  std::vector<std::string> texts;
  for (const SourceFile& header : headers) texts.push_back(text_of(header.bytes));
  std::vector<SourceHeader> files;
  for (size_t i = 0; i < headers.size(); ++i) files.push_back({headers[i].name.c_str(), texts[i].c_str()});
  Result<std::vector<std::byte>> code = compiler->compile(text, files);
  if (!code) return fail(with_context(std::move(code).error(), "device code that the plan has as source"));
  return code;
}

}  // namespace

const CodeImage* find_assembly(const CodeModule& module, std::string_view target) {
  const Result<const Architecture*> architecture = parse_target(target);
  if (!architecture) return nullptr;
  const CodeImage* best = nullptr;
  int newest = 0;
  for (const CodeImage& image : module.images) {
    const int number = number_for(image, **architecture);
    if (number > newest) best = &image, newest = number;
  }
  return best;
}

Result<const CodeImage*> adaptable_image(const CodeModule& module, std::string_view target) {
  if (const CodeImage* image = find_assembly(module, target)) return image;
  const auto source = std::find_if(module.images.begin(), module.images.end(), [](const CodeImage& image) {
    return image.form == CodeForm::source && image.target == kFamily;
  });
  if (source == module.images.end()) return fail(no_image(module, target));
  return &*source;
}

Result<std::vector<std::byte>> compile_image(const CodeImage& image, PrimaryContext& context, std::string_view target) {
  if (image.form == CodeForm::assembly) return link_assembly(image.bytes, context);
  return compile_text(text_of(image.bytes), {}, target, {});
}

Result<std::vector<std::byte>> specialize_source(const OpenSource& source, const Launch& launch,
                                                 std::span<const int64_t> numbers, std::string_view target) {
  LATHE_ASSIGN(const std::string text, with_known_numbers(text_of(source.image.bytes), launch, numbers));
  CompilerOptions options;
  options.in_process = false;  // where the application runs meanwhile
  return compile_text(text, source.headers, target, options);
}

void release_compilers() {
  Compilers& all = compilers();
  std::map<std::string, std::shared_ptr<NvrtcCompiler>, std::less<>> released;  // destroyed without the lock
  const std::lock_guard lock(all.mutex);
  released.swap(all.by_target);
}

}  // namespace lathe::cuda
