// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of threads to shared memory, and what of them the matrix units may read.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "cluster_run.h"

namespace emulator {

// The destination is spoilt at once and written at the wait: whoever reads too early, and whoever still needed what
// was there, sees NaN.
void ClusterRun::copy_async(void* shared, const void* global, int bytes, int bytes_valid) {
  if (!is_shared(shared, static_cast<size_t>(bytes))) fail("asynchronous copy to outside of shared memory");
  if (reinterpret_cast<uintptr_t>(shared) % static_cast<size_t>(bytes) != 0 ||
      (bytes_valid > 0 && reinterpret_cast<uintptr_t>(global) % static_cast<size_t>(bytes) != 0))
    fail("asynchronous copy of misaligned addresses");
  if (bytes_valid < 0 || bytes_valid > bytes) fail("asynchronous copy of less than no or more than all bytes");
  std::memset(shared, kPoison, static_cast<size_t>(bytes));
  threads_[current_]->copies.push_back({shared, global, bytes, bytes_valid});
}

void ClusterRun::copy_async_commit() {
  Thread& thread = *threads_[current_];
  thread.groups.push_back(thread.copies.size() -
                          std::accumulate(thread.groups.begin(), thread.groups.end(), size_t{0}));
}

void ClusterRun::copy_async_wait(int pending) {
  Thread& thread = *threads_[current_];
  if (thread.groups.size() <= static_cast<size_t>(pending)) return;
  const auto groups_end = thread.groups.end() - pending;
  const auto copies_end = thread.copies.begin() +
                          static_cast<std::ptrdiff_t>(std::accumulate(thread.groups.begin(), groups_end, size_t{0}));
  for (auto copy = thread.copies.begin(); copy != copies_end; ++copy) {
    note_unfenced(static_cast<unsigned char*>(copy->to), static_cast<size_t>(copy->bytes));
    std::memset(copy->to, 0, static_cast<size_t>(copy->bytes));
    if (copy->valid) std::memcpy(copy->to, copy->from, static_cast<size_t>(copy->valid));
  }
  thread.copies.erase(thread.copies.begin(), copies_end);
  thread.groups.erase(thread.groups.begin(), groups_end);
}

// Stages are written again and again: each place is noted once.
void ClusterRun::note_unfenced(const unsigned char* to, size_t bytes) {
  Thread& thread = *threads_[current_];
  if (thread.unfenced.empty()) {
    ++own_block().unfenced;
    thread.unfenced_begin = thread.unfenced_end = to;
  }
  thread.unfenced_begin = std::min(thread.unfenced_begin, to);
  thread.unfenced_end = std::max(thread.unfenced_end, to + bytes);
  const auto is_same = [&](const Bytes& noted) { return noted.first == to; };
  const auto noted = std::find_if(thread.unfenced.begin(), thread.unfenced.end(), is_same);
  if (noted == thread.unfenced.end())
    thread.unfenced.emplace_back(to, bytes);
  else
    noted->second = std::max(noted->second, bytes);
}

void ClusterRun::fence(size_t index) {
  if (threads_[index]->unfenced.empty()) return;
  threads_[index]->unfenced.clear();
  --blocks_[index / launch_->block]->unfenced;
}

// Whole atoms of 1024 bytes.
ClusterRun::Bytes ClusterRun::panel_bytes(const PanelView& panel, int outer) {
  constexpr size_t kRowBytes = 128, kAtom = 1024;
  const auto* start = static_cast<const unsigned char*>(panel.start);
  const auto rows = static_cast<size_t>(outer);
  if (!panel.mn_major) return {start - reinterpret_cast<uintptr_t>(start) % kAtom, rows * kRowBytes};
  const size_t last = (rows - 1) / 64 * static_cast<size_t>(panel.panel_bytes);
  return {start, last + 2 * kAtom};
}

void ClusterRun::check_panel(const PanelView& panel, int outer) {
  const auto [begin, size] = panel_bytes(panel, outer);
  if (!is_shared(begin, size)) fail("wgmma of a panel outside of shared memory");
  if (own_block().unfenced == 0) return;
  const size_t first = current_ / launch_->block * launch_->block;
  for (size_t i = first; i < first + launch_->block; ++i) {
    const Thread& thread = *threads_[i];
    if (thread.unfenced.empty() || thread.unfenced_begin >= begin + size || begin >= thread.unfenced_end) continue;
    for (const auto& [to, bytes] : thread.unfenced)
      if (to < begin + size && begin < to + bytes) fail("wgmma after copies without matrix_units_fence()");
  }
}

}  // namespace emulator
