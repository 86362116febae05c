// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/plan_bytes.h"

#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/memory_tally.h"
#include "plan/foreign_prefix.h"
#include "plan/header.h"

namespace lathe::api {
namespace {

// Fills `target` unless the stream ends before; returns how many bytes came. Readers may give fewer than they are asked
// for.
Result<size_t> fill(nv::IStreamReaderV2& reader, std::span<std::byte> target) {
  size_t filled = 0;
  while (filled < target.size()) {
    const auto wanted = static_cast<int64_t>(target.size() - filled);
    const int64_t count = reader.read(target.data() + filled, wanted, nullptr);
    if (count < 0 || count > wanted)
      return fail(ErrorCode::file_read, "the stream reader was asked for {} bytes of the plan and returned {}", wanted,
                  count);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  return filled;
}

struct Start {
  std::vector<std::byte> bytes;  // up to the end of the plan's prefix
  size_t skipped = 0;            // of them, in front of the plan
};

Result<Start> read_start(nv::IStreamReaderV2& reader) {
  Start start;
  plan::ForeignPrefix foreign;
  std::optional<size_t> skipped;
  for (;;) {
    const size_t read = start.bytes.size();
    start.bytes.resize(read + plan::kPrefixBytes);
    LATHE_ASSIGN(const size_t count, fill(reader, std::span(start.bytes).subspan(read)));
    start.bytes.resize(read + count);
    if (!skipped) skipped = foreign.find(start.bytes);
    start.skipped = skipped.value_or(0);
    if (count < plan::kPrefixBytes || (skipped && start.bytes.size() >= *skipped + plan::kPrefixBytes)) return start;
  }
}

}  // namespace

Result<std::shared_ptr<std::byte>> reserve_plan(size_t size) {
  void* const memory =
      mmap(nullptr, std::max<size_t>(size, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(ErrorCode::out_of_memory, "{} bytes for a plan", size);
  host_tally().add(size);
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), [size](std::byte* pages) {
    munmap(pages, std::max<size_t>(size, 1));
    host_tally().remove(size);
  });
}

Result<PlanBytes> copy_plan(std::span<const std::byte> bytes) {
  LATHE_ASSIGN(const std::shared_ptr<std::byte> copy, reserve_plan(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return PlanBytes{{copy.get(), bytes.size()}, copy};
}

Result<PlanBytes> read_plan(nv::IStreamReaderV2& reader) {
  LATHE_ASSIGN(const Start start, read_start(reader));
  LATHE_ASSIGN(const plan::PlanPrefix prefix, plan::read_prefix(start.bytes));
  if (prefix.plan_bytes < plan::kHeaderBytes || prefix.plan_bytes > INT64_MAX - start.bytes.size())
    return fail(ErrorCode::plan_malformed, "the plan claims {} bytes", prefix.plan_bytes);
  const size_t size = start.skipped + prefix.plan_bytes, read = start.bytes.size();
  LATHE_ASSIGN(const std::shared_ptr<std::byte> memory, reserve_plan(size));
  std::copy(start.bytes.begin(), start.bytes.end(), memory.get());
  LATHE_ASSIGN(const size_t rest, fill(reader, {memory.get() + read, size - read}));
  if (read + rest < size)
    return fail(ErrorCode::plan_malformed, "the stream ended after {} of the plan's {} bytes", read + rest, size);
  return PlanBytes{{memory.get(), size}, memory};
}

}  // namespace lathe::api
