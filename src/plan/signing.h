// SPDX-License-Identifier: Apache-2.0
// Keys that sign plans. Secret keys are seeds of 32 bytes; what is left of them in memory is wiped.
#pragma once

#include <string>
#include <vector>

#include "plan/signature.h"

namespace lathe::plan {

class SecretKey {
 public:
  static Result<SecretKey> make();
  // Of a file that write_key_files() wrote.
  static Result<SecretKey> read(const std::string& path);
  SecretKey(SecretKey&& other) noexcept;
  SecretKey& operator=(SecretKey&& other) = delete;
  ~SecretKey();

  PublicKey public_key() const;
  Signature sign(const Digest& message) const;
  std::string to_text() const;  // to be kept secret, as the object is

 private:
  using Seed = std::array<std::byte, 32>;
  explicit SecretKey(const Seed& seed);
  std::array<std::byte, 64> bytes_;  // seed and public key
};

// Two new files of one line each: the secret key, which their owner alone can read, and the public key. Neither may be
// there.
Result<> write_key_files(const SecretKey& key, const std::string& secret_path, const std::string& public_path);

// The plan with a signature section; a section that is there already is replaced. Checks header and digests first, so
// that a damaged plan is not signed. A foreign prefix, which no signature covers, is left out.
Result<std::vector<std::byte>> sign_plan(std::span<const std::byte> plan, const SecretKey& key);

}  // namespace lathe::plan
