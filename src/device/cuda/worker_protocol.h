// SPDX-License-Identifier: Apache-2.0
// What lathe-compiler and the process that started it say to each other:
//
//   greeting   worker    it runs, and which protocol it speaks
//   setup      process   where NVRTC is, and how much memory the worker may use
//   ready      worker    the NVRTC that it opened, or why not
//   request    process   \  again and again, until either closes
//   reply      worker    /
//
// Each is a frame of a header (magic, kind, length of the rest) and the fields of one structure: numbers as they lie in
// memory, for both ends are on one machine; texts and lists after their lengths.
#pragma once

#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <string_view>
#include <type_traits>

#include "device/cuda/compile_source.h"

namespace lathe::cuda::worker {

// Changes with every change to this file, to a structure below, or to what a worker does.
constexpr uint32_t kProtocol = 1;

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

// Appends fields to bytes.
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

// Takes fields from bytes; `ok` is false as soon as they do not hold them.
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
  // Of a text or a list, each of whose elements takes a byte or more.
  size_t read_size() {
    uint64_t size = 0;
    read(size);
    ok = ok && size <= bytes.size();
    return ok ? size : 0;
  }
};

// One end of the connection. Interrupted calls are resumed, a connection that the other end has closed raises no
// signal.
class Connection {
 public:
  // `wait(events)` returns when one of poll()'s `events` has come, or with the error that ends the conversation.
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

// Until one of `events` has come at the socket, or so many milliseconds have passed (-1: for ever); false: the latter.
bool poll_socket(int socket, short events, int milliseconds);

}  // namespace lathe::cuda::worker
