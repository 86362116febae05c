// SPDX-License-Identifier: Apache-2.0
#include "api/guest/guest.h"

#include "NvInferVersion.h"
#include "api/guest/objects.h"
#include "api/guest/other_side.h"

namespace lathe::api::guest {

namespace {

constexpr int32_t kNumbersOfAMajor = 10'000;  // a generation's first version

}  // namespace

Guest::Guest(std::shared_ptr<const Library> library, std::shared_ptr<const Reporter> reporter,
             std::shared_ptr<const void> host)
    : host_(std::move(host)), reporter_(std::move(reporter)), library_(std::move(library)) {
  if (library_->note().generation != NV_TENSORRT_MAJOR) other_side_ = std::make_unique<OtherSide>(*reporter_);
}
Guest::~Guest() = default;

void report_missing(const Guest& guest, const char* name) noexcept {
  guarded(guest.reporter(), name, [&]() -> Result<> {
    return fail(
        ErrorCode::call_missing,
        "the engine runs in Lathe {}, which does not have this function yet; it is one of Lathe {}. Build the engine "
        "again with this version to use it",
        guest.library().note().library_version().to_string(), library_version().to_string());
  });
}

Result<nv::IRuntime*> Guest::start(std::shared_ptr<const Library> library, std::shared_ptr<const Reporter> reporter,
                                   std::shared_ptr<const void> host) {
  const LibraryNote note = library->note();
  auto* const create = library->function<void*(void*, int32_t)>("createInferRuntime_INTERNAL");
  if (!create)
    return fail(ErrorCode::library_refused,
                "Lathe {} that was loaded has no runtime: it lacks createInferRuntime_INTERNAL",
                note.library_version().to_string());
  nv::ILogger* logger = reporter->logger();
  int32_t version = NV_TENSORRT_VERSION;
  std::unique_ptr<Guest> guest(new Guest(std::move(library), std::move(reporter), std::move(host)));
  if (OtherSide* const other = guest->other_side()) {
    logger = other->logger(*logger);
    version = static_cast<int32_t>(kOtherGeneration) * kNumbersOfAMajor;
  }
  auto* const runtime = static_cast<nv::IRuntime*>(create(logger, version));
  if (!runtime) return nullptr;  // it has reported
  nv::IRuntime* const adopted = guest->adopt(runtime);
  // Which is now its objects' own; where that failed, adopt() has released it.
  static_cast<void>(guest.release());
  return adopted;
}

void set_registry_parent(nv::IRuntime& runtime, nv::IPluginRegistry& registry) {
  table_part(runtime)->setPluginRegistryParent(&registry);
}

void Guest::release() noexcept {
  if (objects_.fetch_sub(1) == 1) delete this;
}

const Table& Guest::table(Table::Words original, size_t slots, std::span<const Patch> patches) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Table>& table = tables_[original];
  if (!table) table = std::make_unique<Table>(*this, original, slots, patches);
  return *table;
}

// Nothing of the object is changed where that throws.
void* Guest::take_up(void* object, const ObjectClass& of) {
  if (other_side_) return of.facade(*this, object);
  const Patch destructor[] = {{kDeleteSlot, reinterpret_cast<void*>(&delete_object)}};
  void* const part = of.part(object);
  const Table& own = table(Table::words_of(object), kDeleteSlot + 1, destructor);
  const Table& inner = table(Table::words_of(part), of.slots(), of.patches(library_->note().interface_level));
  own.give_to(object);
  inner.give_to(part);
  return object;
}

void* Guest::adopt(void* object, const ObjectClass& of) noexcept {
  if (!object) return nullptr;
  ++objects_;
  return guarded(*reporter_, "loading by a runtime of another version", static_cast<void*>(nullptr),
                 [&]() -> Result<void*> {
                   try {
                     return take_up(object, of);
                   } catch (...) {
                     delete_by_table(object);
                     release();
                     throw;
                   }
                 });
}

template <class I>
I* Guest::adopt(I* object) noexcept {
  return static_cast<I*>(adopt(object, kObjectClass<I>));
}

#define LATHE_GUEST_OBJECT(I, V) template nv::I* Guest::adopt(nv::I* object) noexcept;
#include "api/guest/objects.def"
#undef LATHE_GUEST_OBJECT

}  // namespace lathe::api::guest
