// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/worker_protocol.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

namespace lathe::cuda::worker {
namespace {

constexpr uint32_t kMagic = 0x4b574c4c;
constexpr uint64_t kMaxFrame = uint64_t{256} << 20;
constexpr size_t kPiece = 1 << 20;  // bytes allocated at a time, so that a wrong size in a header costs little memory

struct Header {
  uint32_t magic;
  Kind kind;
  uint64_t size;
};

tl::unexpected<Error> closed() { return fail(ErrorCode::kernel_compile_failed, "the compiler has ended"); }

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Result<> Connection::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (would_block(errno)) {
      LATHE_TRY(wait_(POLLOUT));
    } else if (errno != EINTR) {
      return closed();
    }
  }
  return {};
}

Result<> Connection::receive_all(char* to, size_t size) {
  while (size > 0) {
    const ssize_t received = ::recv(socket_, to, size, MSG_DONTWAIT);
    if (received > 0) {
      to += received;
      size -= static_cast<size_t>(received);
    } else if (received < 0 && would_block(errno)) {
      LATHE_TRY(wait_(POLLIN));
    } else if (received == 0 || errno != EINTR) {
      return closed();
    }
  }
  return {};
}

Result<> Connection::send_frame(Kind kind, std::string_view bytes) {
  if (bytes.size() > kMaxFrame)
    return fail(ErrorCode::kernel_compile_failed, "the message has {} bytes, more than {}", bytes.size(), kMaxFrame);
  const Header header{kMagic, kind, bytes.size()};
  LATHE_TRY(send_all({reinterpret_cast<const char*>(&header), sizeof header}));
  return send_all(bytes);
}

Result<std::string> Connection::receive_frame(Kind kind) {
  Header header;
  LATHE_TRY(receive_all(reinterpret_cast<char*>(&header), sizeof header));
  if (header.magic != kMagic || header.kind != kind || header.size > kMaxFrame)
    return fail(ErrorCode::kernel_compile_failed, "the compiler's answer is not of its protocol");
  std::string bytes;
  while (bytes.size() < header.size) {
    const size_t begin = bytes.size();
    bytes.resize(std::min<size_t>(header.size, begin + kPiece));
    LATHE_TRY(receive_all(bytes.data() + begin, bytes.size() - begin));
  }
  return bytes;
}

bool poll_socket(int socket, short events, int milliseconds) {
  pollfd wanted{socket, events, 0};
  return ::poll(&wanted, 1, milliseconds) > 0;
}

}  // namespace lathe::cuda::worker
