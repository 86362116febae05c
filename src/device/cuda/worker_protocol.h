// SPDX-License-Identifier: Apache-2.0
// The messages between lathe-compiler and the process that started it, in their order:
//
//   greeting   worker    it runs, and which protocol it speaks
//   setup      process   where NVRTC is, and how much memory the worker may use
//   ready      worker    the NVRTC that it opened, or why not
//   request    process   \  again and again, until either closes
//   reply      worker    /
//
// A message is a frame: a header (magic, kind, size of the rest in bytes), then the fields of one structure. Numbers
// have their representation in memory, for both ends are on one machine; strings and lists follow their length
// (uint64_t).
#pragma once

#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <string_view>
#include <type_traits>

#include "device/cuda/compile_source.h"

namespace lathe::cuda::worker {

// To be raised with every change to the messages or to what a worker does: an older program beside the library is
// refused by it.
constexpr uint32_t kProtocol = 2;

enum class Kind : uint32_t { greeting = 1, setup, ready, request, reply };

struct Greeting {
  static constexpr Kind kKind = Kind::greeting;
  uint32_t protocol = kProtocol;
  template <class Visit>
  void fields(Visit&& visit) {
    visit(protocol);
  }
};

struct Setup {
  static constexpr Kind kKind = Kind::setup;
  uint64_t memory = 0;  // bytes
  std::vector<std::string> nvrtc;
  template <class Visit>
  void fields(Visit&& visit) {
    visit(memory, nvrtc);
  }
};

struct Ready {
  static constexpr Kind kKind = Kind::ready;
  int32_t error = 0;  // an ErrorCode; 0: NVRTC is open
  std::string message;
  NvrtcInfo nvrtc;
  template <class Visit>
  void fields(Visit&& visit) {
    visit(error, message, nvrtc);
  }
};

struct Request : CompileRequest {
  static constexpr Kind kKind = Kind::request;
};

struct Reply : Compiled {
  static constexpr Kind kKind = Kind::reply;
};

// Serializes fields.
struct Writer {
  std::string bytes;
  template <class... Fields>
  void operator()(Fields&... fields) {
    (write(fields), ...);
  }

 private:
  template <class T>
  void write(T& field) {
    if constexpr (std::is_arithmetic_v<T>) {
      bytes.append(reinterpret_cast<const char*>(&field), sizeof field);
    } else if constexpr (std::is_same_v<T, std::string>) {
      uint64_t size = field.size();
      write(size);
      bytes += field;
    } else if constexpr (requires { field.fields(*this); }) {
      field.fields(*this);
    } else {
      uint64_t size = field.size();
      write(size);
      for (auto& element : field) write(element);
    }
  }
};

// Deserializes fields. `ok` becomes false, and stays so, when `bytes` end too early.
struct Reader {
  std::string_view bytes;
  bool ok = true;
  template <class... Fields>
  void operator()(Fields&... fields) {
    (read(fields), ...);
  }

 private:
  template <class T>
  void read(T& field) {
    if constexpr (std::is_arithmetic_v<T>) {
      ok = ok && bytes.size() >= sizeof field;
      if (!ok) return;
      std::memcpy(&field, bytes.data(), sizeof field);
      bytes.remove_prefix(sizeof field);
    } else if constexpr (std::is_same_v<T, std::string>) {
      const size_t size = read_size();
      field = bytes.substr(0, size);
      bytes.remove_prefix(size);
    } else if constexpr (requires { field.fields(*this); }) {
      field.fields(*this);
    } else {
      for (size_t left = read_size(); ok && left > 0; --left) read(field.emplace_back());
    }
  }
  // The length of a string or list, at most the bytes that are left: each element takes one or more.
  size_t read_size() {
    uint64_t size = 0;
    read(size);
    ok = ok && size <= bytes.size();
    return ok ? size : 0;
  }
};

// One end of the connection; the socket is not owned. Interrupted calls are resumed. A connection that the other end
// has closed is an error, never a SIGPIPE.
class Connection {
 public:
  // `wait(events)` blocks until one of poll()'s `events` occurs at the socket; its error is that of the send or
  // receive.
  using Wait = std::function<Result<>(short events)>;
  Connection(int socket, Wait wait) : socket_(socket), wait_(std::move(wait)) {}

  template <class Message>
  Result<> send(Message message) {
    Writer writer;
    message.fields(writer);
    return send_frame(Message::kKind, writer.bytes);
  }

  template <class Message>
  Result<Message> receive() {
    LATHE_ASSIGN(const std::string bytes, receive_frame(Message::kKind));
    Message message;
    Reader reader{bytes};
    message.fields(reader);
    if (!reader.ok || !reader.bytes.empty())
      return fail(ErrorCode::kernel_compile_failed, "the compiler's answer is damaged");
    return message;
  }

 private:
  Result<> send_frame(Kind kind, std::string_view bytes);
  Result<std::string> receive_frame(Kind kind);
  Result<> send_all(std::string_view bytes);
  Result<> receive_all(char* to, size_t size);

  int socket_;
  Wait wait_;
};

// Waits until one of poll()'s `events` occurs at the socket. False when that many milliseconds have passed (-1: no
// limit) or a signal has interrupted it.
bool poll_socket(int socket, short events, int milliseconds);

}  // namespace lathe::cuda::worker
