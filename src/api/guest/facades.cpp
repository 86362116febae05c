// SPDX-License-Identifier: Apache-2.0
#include "api/guest/facades.h"

#include "api/guest/functions.h"
#include "api/guest/objects.h"
#include "api/guest/only_10.h"
#include "api/guest/other_side.h"
#include "base/own_object.h"

namespace lathe::api::guest {
namespace {

// Where a function is in the guest's table.
template <class V>
struct GuestSlots;
#define LATHE_BOTH(name) name,
#if NV_TENSORRT_MAJOR < 11
#define LATHE_ONLY_10(name)
#else
#define LATHE_ONLY_10(name) name##_10,
#endif
#define LATHE_GUEST_OBJECT(I, V)                                                                      \
  template <>                                                                                         \
  struct GuestSlots<nv::apiv::V> {                                                                    \
    using Public = nv::I;                                                                             \
    enum : size_t { behind_delete = kDeleteSlot, LATHE_FUNCTIONS_OF_##V(LATHE_BOTH, LATHE_ONLY_10) }; \
  };
#include "api/guest/objects.def"
#undef LATHE_GUEST_OBJECT
#undef LATHE_BOTH
#undef LATHE_ONLY_10

// What a facade has of its own, which stands in for the application's objects or the guest's.
template <class I>
struct Own {
  explicit Own(const Reporter&) {}
};
template <>
struct Own<nv::IRuntime> {
  explicit Own(const Reporter& reporter) : registry(reporter) {}
  ViewOfGuest registry;
};
template <>
struct Own<nv::IExecutionContext> {
  explicit Own(const Reporter&) {}
  ProfilerForGuest profiler;
};

// What public functions take for an object of the class of their table.
struct Part {
  Table::Words words = nullptr;
  void* target = nullptr;  // the guest's
};

constexpr size_t kMostFunctions = 64;  // of a table

// Owns the guest's object.
struct Owner : Part {
  Owner(Guest& guest, void* object) noexcept : guest(guest), object(object) {}
  ~Owner() {
    if (!words) return;  // it was never complete
    guest.other_side()->remove(object);
    delete_by_table(object);
    guest.release();
  }
  // Throws where memory is short. `frame` is the table's, `list` writes its functions in their order and returns where
  // they end; those of `missing`, which came after the guest's version, refuse.
  void complete(void* facade, void* part, Table::Words frame, void** (*list)(void** at) noexcept,
                std::span<const Patch> missing) {
    void* functions[kMostFunctions];
    std::vector<Patch> patches;
    for (void **at = functions, **const end = list(functions); at != end; ++at)
      patches.push_back({kDeleteSlot + 1 + static_cast<size_t>(at - functions), *at});
    const size_t slots = kDeleteSlot + 1 + patches.size();
    patches.insert(patches.end(), missing.begin(), missing.end());
    target = part;
    const Table& table = guest.table(frame, slots, patches);
    guest.other_side()->add(object, facade);
    table.give_to(static_cast<Part*>(this));
  }

  Guest& guest;
  void* const object;
};

// What is around a table's functions: offset, type and two destructors, which nobody calls.
template <class V>
void* const kFrame[] = {nullptr, const_cast<std::type_info*>(&typeid(V)), nullptr, nullptr};

template <class V>
void** list_functions(void** at) noexcept;

// The guest's object goes before what stands in for others.
template <class I>
class Facade final : public I, public Own<I>, public Owner {
 public:
  using V = typename TableClass<I>::Type;

  Facade(Guest& guest, I& object) : Own<I>(guest.reporter()), Owner(guest, &object) {
    complete(static_cast<I*>(this), table_part(object), kFrame<V> + 2, &list_functions<V>,
             missing_in<V>(guest.library().note().interface_level));
    this->mImpl = reinterpret_cast<V*>(static_cast<Part*>(this));
  }
  static Facade& of(const V* part) {
    auto* const own_part = reinterpret_cast<Part*>(const_cast<V*>(part));
    return static_cast<Facade&>(*own_part);
  }
};

template <class T>
using Named = std::remove_const_t<std::remove_pointer_t<std::remove_reference_t<T>>>;
template <class T>
concept Product = requires {
  typename TableClass<Named<T>>::Type;
};

// The guest's object; others as they are, which the guest knows not to be its own.
template <class I>
I* unwrapped(I* object) {
  using Class = std::remove_const_t<I>;
  if (!object) return nullptr;
  auto& plain = const_cast<Class&>(*object);
  return is_own<Facade<Class>>(plain) ? static_cast<Class*>(static_cast<Facade<Class>&>(plain).object) : object;
}

// What the guest is given for an argument.
template <class T, class F>
T to_guest(F& facade, T value) noexcept {
  if constexpr (Product<T> && std::is_pointer_v<T>)
    return unwrapped(value);
  else if constexpr (Product<T>)
    return *unwrapped(&value);
  else if constexpr (std::is_same_v<T, nv::ILogger&>)
    return *facade.guest.other_side()->logger(value);
  else if constexpr (std::is_same_v<T, nv::IPluginRegistry*>)
    return facade.guest.other_side()->parent(value);
  else if constexpr (std::is_same_v<T, nv::IProfiler*>)
    return facade.profiler.as_guest_sees(value);
  else
    return static_cast<T>(value);
}

// What the application is given for a result: a facade that is there already, or a new one for a new object.
template <class T, class F>
T to_application(F& facade, T value) noexcept {
  if constexpr (Product<T> && std::is_pointer_v<T>) {
    auto* const known = static_cast<Named<T>*>(facade.guest.other_side()->facade_of(value));
    if constexpr (std::is_const_v<std::remove_pointer_t<T>>)
      return known;
    else
      return known ? known : facade.guest.adopt(value);
  } else if constexpr (Product<T>) {
    auto* const known = static_cast<Named<T>*>(facade.guest.other_side()->facade_of(&value));
    return known ? *known : value;
  } else if constexpr (std::is_same_v<T, nv::ILogger*>) {
    return LoggerForGuest::application_of(value);
  } else if constexpr (std::is_same_v<T, nv::IPluginRegistry&>) {
    facade.registry.show(reinterpret_cast<OtherRegistry&>(value));
    return facade.registry;
  } else if constexpr (std::is_same_v<T, nv::IProfiler*>) {
    return facade.profiler.application_of(value);
  } else {
    return static_cast<T>(value);
  }
}

// TacticSource is the one enumeration of runtimes whose numbers differ.
constexpr nv::TacticSources to_own_sources(nv::TacticSources guests) {
  nv::TacticSources own = 0;
#define LATHE_SOURCE(number_10, number_11)                                                   \
  if (guests & nv::TacticSources{1} << (NV_TENSORRT_MAJOR < 11 ? (number_11) : (number_10))) \
    own |= nv::TacticSources{1} << (NV_TENSORRT_MAJOR < 11 ? (number_10) : (number_11));
  LATHE_SOURCE(1, 16)  // kCUBLAS_LT of lathe.h
  LATHE_SOURCE(2, 17)  // kCUDNN of lathe.h
  LATHE_SOURCE(3, 0)   // kEDGE_MASK_CONVOLUTIONS
  LATHE_SOURCE(4, 1)   // kJIT_CONVOLUTIONS
#undef LATHE_SOURCE
  return own;
}

// The function that stands in the facade's table.
template <class V, size_t kSlot, class R, class... Args>
R forward(const V* self, Args... args) noexcept {
  auto& facade = Facade<typename GuestSlots<V>::Public>::of(self);
  auto* const function = reinterpret_cast<R (*)(void*, Args...) noexcept>(Table::words_of(facade.target)[kSlot]);
  if constexpr (std::is_same_v<V, nv::apiv::VCudaEngine> && std::is_same_v<R, nv::TacticSources>)
    return to_own_sources(function(facade.target));
  else if constexpr (std::is_void_v<R>)
    function(facade.target, to_guest<Args>(facade, args)...);
  else
    return to_application<R>(facade, function(facade.target, to_guest<Args>(facade, args)...));
}

template <size_t kSlot, class V, class R, class... Args>
void* forwarding(R (V::*)(Args...) noexcept) {
  return reinterpret_cast<void*>(&forward<V, kSlot, R, Args...>);
}
template <size_t kSlot, class V, class R, class... Args>
void* forwarding(R (V::*)(Args...) const noexcept) {
  return reinterpret_cast<void*>(&forward<V, kSlot, R, Args...>);
}
// Of two functions of this name, the one that both generations have.
template <size_t kSlot>
void* forwarding(nv::ICudaEngine* (nv::apiv::VRuntime::*)(const void*, std::size_t) noexcept) {
  return reinterpret_cast<void*>(&forward<nv::apiv::VRuntime, kSlot, nv::ICudaEngine*, const void*, std::size_t>);
}

#define LATHE_COUNTED(name) +1
#define LATHE_BOTH(name) *at++ = forwarding<GuestSlots<V>::name>(&V::name);
#if NV_TENSORRT_MAJOR < 11
#define LATHE_ONLY_10(name) *at++ = only_10::name();
#else
#define LATHE_ONLY_10(name)
#endif
#define LATHE_GUEST_OBJECT(I, TABLE)                                                           \
  static_assert(0 LATHE_FUNCTIONS_OF_##TABLE(LATHE_COUNTED, LATHE_COUNTED) <= kMostFunctions); \
  template <>                                                                                  \
  void** list_functions<nv::apiv::TABLE>(void** at) noexcept {                                 \
    using V = nv::apiv::TABLE;                                                                 \
    LATHE_FUNCTIONS_OF_##TABLE(LATHE_BOTH, LATHE_ONLY_10) return at;                           \
  }
#include "api/guest/objects.def"
#undef LATHE_GUEST_OBJECT
#undef LATHE_BOTH
#undef LATHE_ONLY_10
#undef LATHE_COUNTED

}  // namespace

template <class I>
I* make_facade(Guest& guest, I& object) {
  return new Facade<I>(guest, object);
}

nv::IRuntime& object_of_guest(nv::IRuntime& runtime) { return *unwrapped(&runtime); }

#define LATHE_GUEST_OBJECT(I, V) template nv::I* make_facade(Guest& guest, nv::I& object);
#include "api/guest/objects.def"
#undef LATHE_GUEST_OBJECT

}  // namespace lathe::api::guest
