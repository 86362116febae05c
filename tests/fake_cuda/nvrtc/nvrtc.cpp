// SPDX-License-Identifier: Apache-2.0
// A libnvrtc.so whose cubins are shared objects for the emulator. Options are checked for form and otherwise ignored.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "emulated_compiler.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Numbers of NVRTC's interface.
enum Status {
  kSuccess = 0,
  kOutOfMemory = 1,
  kInvalidInput = 3,
  kInvalidProgram = 4,
  kInvalidOption = 5,
  kCompilationFailed = 6,
};

struct FakeProgram {
  std::string source;
  std::map<std::string, std::string> headers;
  emulator::Compiled compiled;
};

// FAKE_NVRTC_FAULT="crash:text" makes the compiler crash at every source that holds the text. The other faults: it
// exits, hangs, starts another process and hangs, spins, eats memory, or says megabytes. Two need no text: with "load"
// NVRTC itself cannot be used, with "newer" it is of another version.
bool is_faulty(const std::string& source, const char* fault) {
  const char* wanted = std::getenv("FAKE_NVRTC_FAULT");
  const size_t length = std::strlen(fault);
  return wanted && std::strncmp(wanted, fault, length) == 0 && wanted[length] == ':' &&
         source.find(wanted + length + 1) != std::string::npos;
}

void misbehave(FakeProgram& program) {
  if (is_faulty(program.source, "crash")) raise(SIGSEGV);
  if (is_faulty(program.source, "exit")) _exit(7);
  if (is_faulty(program.source, "start")) (void)fork();
  while (is_faulty(program.source, "hang") || is_faulty(program.source, "start")) pause();
  for (volatile unsigned turns = 0; is_faulty(program.source, "spin");) turns = turns + 1;
  while (is_faulty(program.source, "memory")) {
    constexpr size_t kPiece = 64 << 20;
    std::memset(new char[kPiece], 1, kPiece);
  }
  if (is_faulty(program.source, "log"))
    program.compiled.log = "first line\n" + std::string(64 << 20, 'x') + "\nptxas info: 8 bytes spill stores\n";
  if (is_faulty(program.source, "noise"))
    for (int descriptor = 0; descriptor < 3; ++descriptor)
      while (write(descriptor, "noise\n", 6) < 0 && errno == EINTR) {
      }
}

[[gnu::constructor]] void load() {
  const char* wanted = std::getenv("FAKE_NVRTC_FAULT");
  if (wanted && std::strcmp(wanted, "load") == 0) raise(SIGSEGV);
}

}  // namespace

EXPORT Status nvrtcVersion(int* major, int* minor) {
  if (!major || !minor) return kInvalidInput;
  *major = 13;
  const char* wanted = std::getenv("FAKE_NVRTC_FAULT");
  *minor = wanted && std::strcmp(wanted, "newer") == 0 ? 1 : 0;
  return kSuccess;
}

EXPORT const char* nvrtcGetErrorString(Status status) {
  switch (status) {
    case kSuccess:
      return "NVRTC_SUCCESS";
    case kOutOfMemory:
      return "NVRTC_ERROR_OUT_OF_MEMORY";
    case kInvalidInput:
      return "NVRTC_ERROR_INVALID_INPUT";
    case kInvalidProgram:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case kInvalidOption:
      return "NVRTC_ERROR_INVALID_OPTION";
    case kCompilationFailed:
      return "NVRTC_ERROR_COMPILATION";
  }
  return "NVRTC_ERROR unknown";
}

EXPORT Status nvrtcGetNumSupportedArchs(int* count) {
  if (!count) return kInvalidInput;
  *count = 6;
  return kSuccess;
}
EXPORT Status nvrtcGetSupportedArchs(int* archs) {
  if (!archs) return kInvalidInput;
  for (const int arch : {75, 80, 86, 90, 100, 120}) *archs++ = arch;
  return kSuccess;
}

EXPORT Status nvrtcCreateProgram(FakeProgram** program, const char* source, const char* /*name*/, int num_headers,
                                 const char* const* headers, const char* const* names) {
  if (!program || !source || num_headers < 0) return kInvalidInput;
  *program = new FakeProgram{source, {}, {}};
  for (int i = 0; i < num_headers; ++i) (*program)->headers[names[i]] = headers[i];
  return kSuccess;
}

EXPORT Status nvrtcDestroyProgram(FakeProgram** program) {
  if (!program || !*program) return kInvalidProgram;
  delete *program;
  *program = nullptr;
  return kSuccess;
}

EXPORT Status nvrtcCompileProgram(FakeProgram* program, int num_options, const char* const* options) {
  if (!program) return kInvalidProgram;
  for (int i = 0; i < num_options; ++i)
    if (options[i][0] != '-') {
      program->compiled.log = std::string("not an option: ") + options[i];
      return kInvalidOption;
    }
  program->compiled = emulator::compile(program->source, program->headers);
  misbehave(*program);
  return program->compiled.ok ? kSuccess : kCompilationFailed;
}

EXPORT Status nvrtcGetCUBINSize(FakeProgram* program, size_t* size) {
  if (!program) return kInvalidProgram;
  if (!size || !program->compiled.ok) return kInvalidInput;
  *size = program->compiled.object.size();
  return kSuccess;
}

EXPORT Status nvrtcGetCUBIN(FakeProgram* program, char* object) {
  if (!program) return kInvalidProgram;
  if (!object || !program->compiled.ok) return kInvalidInput;
  std::copy(program->compiled.object.begin(), program->compiled.object.end(), object);
  return kSuccess;
}

// There is no PTX: what would be compiled from it is the same object.
EXPORT Status nvrtcGetPTXSize(FakeProgram* program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
EXPORT Status nvrtcGetPTX(FakeProgram* program, char* object) { return nvrtcGetCUBIN(program, object); }

EXPORT Status nvrtcGetProgramLogSize(FakeProgram* program, size_t* size) {
  if (!program) return kInvalidProgram;
  if (!size) return kInvalidInput;
  *size = program->compiled.log.size() + 1;
  return kSuccess;
}

EXPORT Status nvrtcGetProgramLog(FakeProgram* program, char* log) {
  if (!program) return kInvalidProgram;
  if (!log) return kInvalidInput;
  std::memcpy(log, program->compiled.log.c_str(), program->compiled.log.size() + 1);
  return kSuccess;
}
