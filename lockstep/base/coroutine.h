// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace lockstep::base {

// A coroutine that begins when it is awaited and gives its result, or its exception, to the one that awaits it. Control
// passes by symmetric transfer: a chain of any length needs no stack. It knows no threads: it goes on where the thing
// that it awaits resumes it.
// Write coroutines as functions with parameters, never as lambdas with captures: those die before the coroutine does.
template <class Result>
class [[nodiscard]] Coroutine {
 public:
  struct promise_type {
    std::optional<Result> result;
    std::exception_ptr error;
    std::coroutine_handle<> waiting;

    Coroutine get_return_object() { return Coroutine(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Back {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
          return done.promise().waiting;
        }
        void await_resume() noexcept {}
      };
      return Back{};
    }
    void return_value(Result value) { result = std::move(value); }
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit Coroutine(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Coroutine(Coroutine&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Coroutine& operator=(Coroutine&&) = delete;
  ~Coroutine() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) noexcept {
    handle_.promise().waiting = waiting;
    return handle_;
  }
  Result await_resume() {
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return std::move(*handle_.promise().result);
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// A coroutine that begins at once, belongs to nobody and ends by itself. It must not throw.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

}  // namespace lockstep::base
