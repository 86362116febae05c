// SPDX-License-Identifier: Apache-2.0
// The interface of the emulator library: what device code calls (emulator.h), and the launch.
#include <signal.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <string>

#include "cluster_run.h"
#include "warp_units.h"

namespace emulator {
namespace {

constexpr size_t kSignalStackBytes = 64 << 10;

// Of a host thread. `active` while it runs a launch.
struct Host {
  ClusterRun run;
  bool active = false;
  std::string error;
  unsigned char signal_stack[kSignalStackBytes];
};
thread_local std::unique_ptr<Host> host;
// What device code calls most goes by this pointer, which is read without a call.
[[gnu::tls_model("initial-exec")]] thread_local ClusterRun* current = nullptr;

struct sigaction previous[2];
constexpr int kSignals[] = {SIGSEGV, SIGBUS};

// A fault of device code ends its launch; any other goes where it would have gone.
void on_fault(int signal, siginfo_t* info, void* context) {
  if (host && host->active) return host->run.fault(info->si_addr, context);
  sigaction(signal, &previous[signal == SIGBUS], nullptr);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &previous[i]);
  });
}

int launch(const Launch& what) {
  if (!host) host = std::make_unique<Host>();
  current = &host->run;
  install_handler();
  stack_t stack = {}, before = {};
  stack.ss_sp = host->signal_stack;
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, &before);
  host->active = true;
  host->error = host->run.run(what);
  host->active = false;
  sigaltstack(&before, nullptr);
  return host->error.empty() ? 0 : 1;
}

}  // namespace
}  // namespace emulator

using emulator::current;
using emulator::host;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int lathe_emulate_launch(void* function, const unsigned grid[3], unsigned block, unsigned shared_bytes,
                                void** params, unsigned nparams, unsigned cluster) {
  emulator::Launch launch{function, {grid[0], grid[1], grid[2]}, block, shared_bytes, cluster, {}};
  for (unsigned i = 0; i < nparams; ++i) {
    uint64_t value;
    std::memcpy(&value, params[i], sizeof value);
    launch.arguments.push_back(value);
  }
  return emulator::launch(launch);
}
// Why the last launch of this host thread failed; "" when it did not.
EXPORT const char* lathe_emulate_error() { return host ? host->error.c_str() : ""; }

EXPORT const lathe_emulated_thread* lathe_emulated_self() { return &current->self(); }
EXPORT void lathe_emulated_barrier() { current->barrier(); }
EXPORT void lathe_emulated_begin_part(int threads) { current->begin_part(threads); }
EXPORT void lathe_emulated_part_barrier() { current->part_barrier(); }
EXPORT void lathe_emulated_cluster_arrive() { current->cluster_arrive(); }
EXPORT void lathe_emulated_cluster_wait() { current->cluster_wait(); }
EXPORT void lathe_emulated_fail(const char* message) { current->fail(message); }
EXPORT void* lathe_emulated_peer(const void* shared, int rank) { return current->peer(shared, rank); }
EXPORT const unsigned char* lathe_emulated_collect(const char* what, const void* value, unsigned bytes) {
  return current->collect(what, value, bytes, nullptr).values;
}
EXPORT void lathe_emulated_mma(const char* shape, void* d, const unsigned* a, const unsigned* b) {
  emulator::mma(*current, shape, d, a, b);
}
EXPORT void lathe_emulated_sparse_mma(const char* shape, void* d, const unsigned* a, const unsigned* b, unsigned e) {
  emulator::sparse_mma(*current, shape, d, a, b, e);
}
EXPORT void lathe_emulated_wgmma(const char* type, int columns, bool keep, void* d, const unsigned* registers,
                                 emulator::PanelView a, emulator::PanelView b) {
  current->multiply_async({type, columns, keep, d, a, b, current->self().thread, {}, emulator::wgmma}, registers);
}
EXPORT void lathe_emulated_phase_barrier_init(void* barrier, int arrivals) {
  current->phase_barrier_init(barrier, arrivals);
}
EXPORT void lathe_emulated_phase_barrier_arrive(void* barrier, int rank) {
  current->phase_barrier_arrive(barrier, rank);
}
EXPORT void lathe_emulated_phase_barrier_expect(void* barrier, int bytes) {
  current->phase_barrier_expect(barrier, bytes);
}
EXPORT void lathe_emulated_phase_barrier_wait(void* barrier, unsigned parity) {
  current->phase_barrier_wait(barrier, parity);
}
EXPORT void lathe_emulated_store_async(void* shared, const void* value, int bytes, void* barrier, int rank) {
  current->store_async(shared, value, static_cast<size_t>(bytes), barrier, rank);
}
EXPORT void lathe_emulated_copy_tensor(void* shared, const void* map, int rank, const int* at, void* barrier,
                                       unsigned peers) {
  current->copy_tensor(shared, map, rank, at, barrier, peers);
}
EXPORT void lathe_emulated_wgmma_commit() { current->multiply_async_commit(); }
EXPORT void lathe_emulated_wgmma_wait(int pending) { current->multiply_async_wait(pending); }
EXPORT void lathe_emulated_matrix_units_fence() { current->matrix_units_fence(); }
EXPORT void lathe_emulated_ldmatrix(unsigned* r, int count, bool transposed, const void* row) {
  emulator::ldmatrix(*current, r, count, transposed, row);
}
EXPORT void lathe_emulated_copy_async(void* shared, const void* global, int bytes, int bytes_valid) {
  current->copy_async(shared, global, bytes, bytes_valid);
}
EXPORT void lathe_emulated_copy_async_commit() { current->copy_async_commit(); }
EXPORT void lathe_emulated_copy_async_wait(int pending) { current->copy_async_wait(pending); }
EXPORT void lathe_emulated_dependency_wait() { current->dependency_wait(); }
EXPORT void lathe_emulated_misaligned(const void*, unsigned bytes) {
  current->fail("access of " + std::to_string(bytes) + " bytes at an address that is no multiple of them");
}
EXPORT long lathe_emulated_clock() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
