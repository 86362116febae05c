// SPDX-License-Identifier: Apache-2.0
// A guard for objects of the public interface that one thread at a time may use: it refuses a second thread instead of
// letting it race.
#pragma once

#include <pthread.h>

#include <atomic>
#include <utility>

#include "base/result.h"

namespace lathe::api {

// Each call on such an object takes a turn; nobody waits. While a turn lasts, all calls of other threads are refused,
// getters too, for what they read may be changing. The thread that has the turn may come back from a callback (an
// output allocator, a progress monitor), but only to look: an output allocator may ask for getTensorShape(), not for
// enqueueV3().
class Exclusive {
 public:
  enum class Call { changes, looks };

  class Turn {
   public:
    Turn(Turn&& other) noexcept
        : use_(other.use_), state_(std::exchange(other.state_, State::nested)), is_mine_(other.is_mine_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (state_ == State::taken) use_.owner_.store(0, std::memory_order_release);
    }

    explicit operator bool() const { return state_ != State::refused; }
    tl::unexpected<Error> refusal() const;

   private:
    friend class Exclusive;
    enum class State : uint8_t { taken, nested, refused };  // nested: within a turn of this thread, which goes on
    Turn(Exclusive& use, State state, bool is_mine) : use_(use), state_(state), is_mine_(is_mine) {}

    Exclusive& use_;
    State state_;
    bool is_mine_;  // whether the turn that was in the way is this thread's own
  };

  explicit Exclusive(const char* what) : what_(what) {}  // the object's name in messages: "context"

  // The turn, which the caller must ask whether it was given. Every call begins here: it costs one
  // compare-and-exchange.
  Turn begin(Call call) {
    const pthread_t self = pthread_self();
    pthread_t owner = 0;
    if (owner_.compare_exchange_strong(owner, self, std::memory_order_acquire))
      return Turn(*this, Turn::State::taken, false);
    const bool is_mine = owner == self;
    return Turn(*this, is_mine && call == Call::looks ? Turn::State::nested : Turn::State::refused, is_mine);
  }
  // The same, with a refusal as an error.
  Result<Turn> take(Call call = Call::changes) {
    Turn turn = begin(call);
    if (!turn) return turn.refusal();
    return turn;
  }

 private:
  const char* what_;
  std::atomic<pthread_t> owner_{0};  // the thread whose turn lasts; no thread is 0
};

}  // namespace lathe::api
