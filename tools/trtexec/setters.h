// SPDX-License-Identifier: Apache-2.0
// What flags do to Options, for the rows of flags.def.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "trtexec/flags.h"
#include "trtexec/values.h"

namespace lathe::trtexec::setters {

inline FlagSetter nothing() {
  return [](Options&, std::string_view, std::string_view) {};
}
inline FlagSetter on(bool Options::*member) {
  return [member](Options& options, std::string_view, std::string_view) { options.*member = true; };
}
inline FlagSetter off(bool Options::*member) {
  return [member](Options& options, std::string_view, std::string_view) { options.*member = false; };
}
inline FlagSetter yes(std::optional<bool> Options::*member) {
  return [member](Options& options, std::string_view, std::string_view) { options.*member = true; };
}
inline FlagSetter no(std::optional<bool> Options::*member) {
  return [member](Options& options, std::string_view, std::string_view) { options.*member = false; };
}
// `otherwise` stands for a value that is left out.
inline FlagSetter text(std::string Options::*member, const char* otherwise = "") {
  return [member, otherwise](Options& options, std::string_view, std::string_view value) {
    options.*member = value.empty() ? otherwise : std::string(value);
  };
}
// For int and std::optional<int>.
template <class Member>
FlagSetter number(Member Options::*member, int64_t least, int64_t most) {
  return [=](Options& options, std::string_view flag, std::string_view value) {
    options.*member = static_cast<int>(whole_number(flag, value, least, most));
  };
}
// For double and std::optional<double>.
template <class Member>
FlagSetter real(Member Options::*member) {
  return [=](Options& options, std::string_view flag, std::string_view value) {
    options.*member = real_number(flag, value);
  };
}

FlagSetter choice(std::string Options::*member, std::initializer_list<const char*> known);
FlagSetter ratio(double Options::*member);
FlagSetter bytes(std::optional<int64_t> Options::*member);
FlagSetter list(std::vector<std::string> Options::*member);
FlagSetter add(std::vector<std::string> Options::*member);
FlagSetter named_files(std::map<std::string, std::string> Options::*member);
FlagSetter formats(std::vector<IoFormat> Options::*member);
FlagSetter profile_shapes(cli::ShapeMap cli::ShapeRanges::*member);
FlagSetter pair_files(std::map<std::string, std::string> ReferencePair::*member);
FlagSetter begin_profile();
FlagSetter begin_pair();
FlagSetter shapes();
FlagSetter pools();
FlagSetter workspace();
FlagSetter verbosity();
FlagSetter best();
FlagSetter runtime();
FlagSetter duration();
FlagSetter percentiles();
FlagSetter generation();

}  // namespace lathe::trtexec::setters
