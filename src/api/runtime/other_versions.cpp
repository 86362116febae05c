// SPDX-License-Identifier: Apache-2.0
// Plans of other versions: read directly where formats agree, else by a runtime of their own version.
#include "api/convert.h"
#include "api/guest/guest.h"
#include "api/runtime/runtime.h"
#include "plan/compatibility.h"

namespace lathe::api {
namespace {

// Called before any section with host code is read.
Result<> check_host_code(const plan::PlanHeader& header, bool allowed) {
  if (allowed || !plan::holds_host_code(header)) return {};
  std::string sections;
  for (const plan::Section& section : header.sections)
    if (section.trust == plan::TrustClass::host_code)
      sections += fmt::format("{}'{}' of {} bytes", sections.empty() ? "" : ", ", section.name, section.bytes);
  return fail(
      ErrorCode::plan_host_code,
      "the plan holds code that would run in this process ({}), and none of it is loaded unless "
      "IRuntime::setEngineHostCodeAllowed(true) allows that, for plans that you trust: docs/trust.md. Plans that "
      "are built with BuilderFlag::kEXCLUDE_LEAN_RUNTIME hold none{}",
      sections,
      header.version == library_version()
          ? ""
          : fmt::format(": load them with liblathe_lean.so of version {} and IRuntime::loadRuntime()",
                        header.version.to_string()));
}

// Calls a function of lathe.h that is another library's, if it has that.
template <class... Args>
void call(const guest::Library& library, const char* name, std::type_identity_t<Args>... args) {
  if (auto* const function = library.function<void(Args...)>(name)) function(args...);
}

}  // namespace

Result<nv::ICudaEngine*> Runtime::load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(bytes));
  LATHE_TRY(core_->trust.check(bytes, header, core_->loading_threads()));
  if (core_->inspection_only) return load_engine(*this, bytes, std::move(owner));  // nothing of it is run
  LATHE_TRY(check_host_code(header, host_code_allowed_));
  const bool brings_runtime = header.find(plan::kLeanRuntime) != nullptr;
  if (brings_runtime && !plan::check_version(header, library_version()) &&
      plan::check_other_runtime(header, library_version()))
    return load_by_own_runtime(bytes, header);
  return load_engine(*this, bytes, std::move(owner));
}

Result<nv::ICudaEngine*> Runtime::load_by_own_runtime(std::span<const std::byte> bytes,
                                                      const plan::PlanHeader& header) {
  const plan::Section& section = *header.find(plan::kLeanRuntime);
  LATHE_ASSIGN(const auto content, plan::host_code(bytes, header, section));
  LATHE_ASSIGN(std::shared_ptr<const guest::Library> library,
               guest::Library::open_image(content, section.digest, header.version, image_policy()));
  core_->reporter->log().print(Severity::info, "the plan is run by its own runtime, Lathe {}",
                               header.version.to_string());
  return load_by(std::move(library), bytes);
}

Result<nv::ICudaEngine*> Runtime::load_by(std::shared_ptr<const guest::Library> library,
                                          std::span<const std::byte> bytes) {
  LATHE_ASSIGN(nv::IRuntime* const runtime, guest_of(library));
  if (!runtime) return nullptr;
  nv::ICudaEngine* const engine = runtime->deserializeCudaEngine(bytes.data(), bytes.size());
  if (!engine)
    if (auto* const text = library->function<const char*()>("_ZN5lathe9lastErrorEv")) set_last_error(text());
  return engine;
}

Result<nv::IRuntime*> Runtime::guest_of(const std::shared_ptr<const guest::Library>& library) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(guests_, [&](const auto& guest) { return guest.first->is_same(*library); });
  nv::IRuntime* runtime = known == guests_.end() ? nullptr : known->second.get();
  if (!runtime) {
    LATHE_ASSIGN(runtime, start(library));
    if (!runtime) return nullptr;
    std::unique_ptr<nv::IRuntime> owned(runtime);
    guests_.emplace_back(library, std::move(owned));
  }
  pass_settings(*runtime, *library);
  return runtime;
}

Result<nv::IRuntime*> Runtime::start(std::shared_ptr<const guest::Library> library) const {
  return guest::Guest::start(std::move(library), core_->reporter, core_);
}

// All of them, for a runtime that is used again may have other ones. The caller holds mutex_.
void Runtime::pass_settings(nv::IRuntime& runtime, const guest::Library& library) const {
  runtime.setErrorRecorder(core_->reporter->recorder());
  runtime.setGpuAllocator(core_->allocator);
  guest::set_registry_parent(runtime, core_->registry);
  runtime.setTempfileControlFlags(tempfile_flags_);
  runtime.setTemporaryDirectory(temporary_directory_.empty() ? nullptr : temporary_directory_.c_str());
  runtime.setEngineHostCodeAllowed(host_code_allowed_);
  call<nv::IRuntime&, int32_t>(library, "_ZN5lathe13setCpuThreadsERN8nvinfer18IRuntimeEi",
                               guest::object_of_guest(runtime), core_->cpu_threads);
}

guest::ImagePolicy Runtime::image_policy() const {
  const nv::TempfileControlFlags flags = tempfile_flags_;
  const std::lock_guard lock(mutex_);
  return {(flags & bit_of(nv::TempfileControlFlag::kALLOW_IN_MEMORY_FILES)) != 0,
          (flags & bit_of(nv::TempfileControlFlag::kALLOW_TEMPORARY_FILES)) != 0, temporary_directory_};
}

void Runtime::setErrorRecorder(nv::IErrorRecorder* recorder) noexcept {
  core_->reporter->set_recorder(recorder);
  const std::lock_guard lock(mutex_);
  for (const auto& guest : guests_) guest.second->setErrorRecorder(recorder);
}

namespace {

// Plans that the other library's runtime loads have to satisfy the policy of the one that loaded it.
Result<> pass_trust(const TrustPolicy& trust, nv::IRuntime& runtime, const guest::Library& library) {
  const std::string keys = trust.keys();
  if (keys.empty()) return {};
  auto* const set =
      library.function<bool(nv::IRuntime&, const char*)>("_ZN5lathe14setTrustedKeysERN8nvinfer18IRuntimeEPKc");
  if (set && set(guest::object_of_guest(runtime), keys.c_str())) return {};
  return fail(ErrorCode::plan_signature,
              "this runtime loads plans of trusted keys alone (lathe::setTrustedKeys), and Lathe {} cannot be told so",
              library.note().library_version().to_string());
}

}  // namespace

nv::IRuntime* Runtime::loadRuntime(const char* path) noexcept {
  return guarded(*core_->reporter, "IRuntime::loadRuntime", static_cast<nv::IRuntime*>(nullptr),
                 [&]() -> Result<nv::IRuntime*> {
                   LATHE_ASSIGN(const std::string name, to_string(path, "path of the runtime library"));
                   LATHE_ASSIGN(std::shared_ptr<const guest::Library> library, guest::Library::open(name));
                   const guest::Library& mapped = *library;
                   LATHE_ASSIGN(nv::IRuntime* const runtime, start(std::move(library)));
                   if (!runtime) return nullptr;
                   std::unique_ptr<nv::IRuntime> owned(runtime);
                   LATHE_TRY(pass_trust(core_->trust, *runtime, mapped));
                   const std::lock_guard lock(mutex_);
                   pass_settings(*runtime, mapped);
                   return owned.release();
                 });
}

}  // namespace lathe::api
