// SPDX-License-Identifier: Apache-2.0
#include "plan/public_keys.h"

#include <algorithm>

#include "base/file.h"
#include "base/hex.h"
#include "plan/key_text.h"

namespace lathe::plan {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

Result<PublicKey> parse_key(std::string_view text) {
  PublicKey key;
  if (text.starts_with(kPublicKeyText) && from_hex(text.substr(kPublicKeyText.size()), key)) return key;
  return fail(
      ErrorCode::invalid_argument, "a public key reads {} and 64 hexadecimal digits{}", kPublicKeyText,
      text.starts_with(kSecretKeyText) ? "; this is a secret key, which signs: keep it from programs that load" : "");
}

Result<PublicKey> find_key(std::string_view entry) {
  if (entry.starts_with(kPublicKeyText)) return parse_key(entry);
  const std::string path(entry);
  LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Result<PublicKey> key = parse_key(trimmed(text_of(file->bytes())));
  if (!key) return fail(with_context(std::move(key).error(), fmt::format("key file '{}'", path)));
  return key;
}

}  // namespace

std::string to_text(const PublicKey& key) { return std::string(kPublicKeyText) + to_hex(key); }

Result<std::vector<PublicKey>> parse_keys(std::string_view list) {
  std::vector<PublicKey> keys;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view entry = trimmed(list.substr(begin, end - begin));
    begin = end + 1;
    if (entry.empty()) continue;
    LATHE_ASSIGN(const PublicKey key, find_key(entry));
    keys.push_back(key);
  }
  if (keys.empty())
    return fail(ErrorCode::invalid_argument, "the list of trusted keys names none, so that no plan can be loaded");
  return keys;
}

}  // namespace lathe::plan
