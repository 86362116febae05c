// SPDX-License-Identifier: Apache-2.0
#include "plan/signing.h"

#include <fcntl.h>
#include <sodium/core.h>
#include <sodium/crypto_sign_ed25519.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/file.h"
#include "base/hex.h"
#include "plan/key_text.h"
#include "plan/sections.h"

namespace lathe::plan {
namespace {

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

// The header of the same plan with an empty signature section at the end.
PlanHeader with_signature_section(PlanHeader header) {
  std::erase_if(header.sections, [](const Section& s) { return s.name == kSignature; });
  header.sections.push_back(named_section(kSignature));
  header.sections.back().bytes = kSignatureSectionBytes;
  header.prefix_bytes = 0;
  place_sections(header);
  return header;
}

Result<> write_new_file(const std::string& path, std::string_view text, mode_t mode) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (descriptor < 0)
    return fail(ErrorCode::file_read, "cannot create '{}': {}", path, std::generic_category().message(errno));
  const bool written = ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int problem = errno;
  if (::close(descriptor) == 0 && written) return {};
  ::unlink(path.c_str());
  return fail(ErrorCode::file_read, "cannot write '{}': {}", path, std::generic_category().message(problem));
}

}  // namespace

SecretKey::SecretKey(const Seed& seed) {
  PublicKey unused;
  crypto_sign_ed25519_seed_keypair(raw(unused.data()), raw(bytes_.data()), raw(seed.data()));
}

SecretKey::SecretKey(SecretKey&& other) noexcept : bytes_(other.bytes_) {}

SecretKey::~SecretKey() { sodium_memzero(bytes_.data(), bytes_.size()); }

Result<SecretKey> SecretKey::make() {
  if (sodium_init() < 0) return fail(ErrorCode::internal, "libsodium cannot be initialised");
  Seed seed;
  randombytes_buf(seed.data(), seed.size());
  SecretKey key(seed);
  sodium_memzero(seed.data(), seed.size());
  return key;
}

Result<SecretKey> SecretKey::read(const std::string& path) {
  LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  std::string_view text = text_of(file->bytes());
  if (text.ends_with('\n')) text.remove_suffix(1);
  Seed seed;
  if (!text.starts_with(kSecretKeyText) || !from_hex(text.substr(kSecretKeyText.size()), seed))
    return fail(ErrorCode::invalid_argument, "'{}' is no secret key: such a file reads {} and 64 hexadecimal digits{}",
                path, kSecretKeyText, text.starts_with(kPublicKeyText) ? "; this is a public key" : "");
  SecretKey key(seed);
  sodium_memzero(seed.data(), seed.size());
  return key;
}

PublicKey SecretKey::public_key() const {
  PublicKey key;
  std::copy_n(bytes_.begin() + sizeof(Seed), key.size(), key.begin());
  return key;
}

Signature SecretKey::sign(const Digest& message) const {
  Signature signature;
  crypto_sign_ed25519_detached(raw(signature.data()), nullptr, raw(message.data()), message.size(), raw(bytes_.data()));
  return signature;
}

std::string SecretKey::to_text() const {
  return std::string(kSecretKeyText) + to_hex(std::span(bytes_).first(sizeof(Seed)));
}

Result<> write_key_files(const SecretKey& key, const std::string& secret_path, const std::string& public_path) {
  std::string secret = key.to_text() + "\n";
  Result<> written = write_new_file(secret_path, secret, 0600);
  sodium_memzero(secret.data(), secret.size());
  LATHE_TRY(std::move(written));
  written = write_new_file(public_path, plan::to_text(key.public_key()) + "\n", 0644);
  if (!written) ::unlink(secret_path.c_str());
  return written;
}

Result<std::vector<std::byte>> sign_plan(std::span<const std::byte> plan, const SecretKey& key) {
  LATHE_ASSIGN(const PlanHeader original, read_header(plan));
  plan = plan.subspan(original.prefix_bytes);
  LATHE_TRY(check_sections(plan, original, {ContentCheck::digest, ContentCheck::digest}));
  PlanHeader header = with_signature_section(original);
  Section& section = header.sections.back();

  std::array<std::byte, kSignatureSectionBytes> content;
  const PublicKey signer = key.public_key();
  const Signature signature = key.sign(signed_digest(header));
  std::ranges::copy(signer, content.begin());
  std::ranges::copy(signature, content.begin() + signer.size());
  seal(section, content);

  std::vector<std::byte> result(header.plan_bytes);
  const auto head = encode_header(header);
  const size_t kept = std::min<uint64_t>(original.plan_bytes, section.offset);  // all but an earlier signature
  std::copy(plan.begin(), plan.begin() + static_cast<std::ptrdiff_t>(kept), result.begin());
  std::copy(head.begin(), head.end(), result.begin());
  std::copy(content.begin(), content.end(), result.begin() + static_cast<std::ptrdiff_t>(section.offset));
  return result;
}

}  // namespace lathe::plan
