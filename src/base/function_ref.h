// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

namespace lathe {

template <class Signature>
class FunctionRef;

// A function object of the caller's, for an argument that is called before the call returns: unlike std::function it
// copies nothing, and needs none of the code and types that copying takes for each lambda.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                                              std::is_invocable_r_v<R, F&, Args...>>>
  FunctionRef(F&& function)
      : function_(const_cast<void*>(static_cast<const void*>(&function))), call_([](void* called, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(called))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(function_, std::forward<Args>(args)...); }

 private:
  void* function_;
  R (*call_)(void*, Args...);
};

}  // namespace lathe
