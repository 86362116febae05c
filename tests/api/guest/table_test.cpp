// SPDX-License-Identifier: Apache-2.0
// Tables of objects that another library has made: here, of a class with fewer functions than this one knows.
#include "api/guest/table.h"

#include <gtest/gtest.h>

#include "api/guest/function_order.h"
#include "api/guest/guest.h"
#include "api/guest/installed.h"

namespace lathe::api::guest {
namespace {

struct Sizes {
  int64_t values[9];
};

// As a version sees the class, and as the next one does.
struct OldThing {
  virtual ~OldThing() noexcept = default;
  virtual int first(int x) noexcept { return x + 1; }
  virtual double second() const noexcept { return 2.5; }
};
struct NewThing {
  virtual ~NewThing() noexcept = default;
  virtual int first(int x) noexcept = 0;
  virtual double second() const noexcept = 0;
  virtual Sizes third(const char* name) const noexcept = 0;  // which came later
  virtual bool fourth(int) noexcept = 0;
};

TEST(GuestTable, KnowsPlacesAndLengths) {
  EXPECT_EQ(slot_of(&NewThing::first), 2u);
  EXPECT_EQ(slot_of(&NewThing::fourth), 5u);
  EXPECT_EQ(slots_of<OldThing>(), 4u);
  EXPECT_EQ(slots_of<NewThing>(), 6u);
}

// slots_10_16.cpp asks the same of generation 10.
TEST(GuestTable, FunctionsAreListedInTheirOrder) { EXPECT_EQ(misplaced_functions(), std::vector<std::string>()); }

struct Lines : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) errors.emplace_back(message);
  }
  std::vector<std::string> errors;
};

// So a runtime of each library is started once, however often plans are loaded by it.
TEST(GuestLibrary, OfOneFileIsTheSame) {
  const Result<std::string> path = installed_lean();
  ASSERT_TRUE(path) << path.error().message;
  const auto first = Library::open(*path), second = Library::open(*path);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE((*first)->is_same(**second));
}

// S7, S22: what the old library does not have is never called, and the report names it; what both have is called as
// ever.
TEST(GuestTable, StandsInForFunctionsThatAreMissing) {
  const Result<std::string> path = installed_lean();
  ASSERT_TRUE(path) << path.error().message;
  Result<std::shared_ptr<const Library>> library = Library::open(*path);
  ASSERT_TRUE(library) << library.error().message;
  Lines lines;
  const auto reporter = std::make_shared<const Reporter>(&lines);
  const Result<nv::IRuntime*> started = Guest::start(*std::move(library), reporter, nullptr);
  ASSERT_TRUE(started);
  const std::unique_ptr<nv::IRuntime> runtime(*started);

  OldThing old;
  const Patch patches[] = {refusal<&NewThing::third, "IThing::third">(),
                           refusal<&NewThing::fourth, "IThing::fourth">()};
  const Table::Words original = Table::words_of(&old);
  const Table table(Table::of(runtime.get()).guest(), original, slots_of<NewThing>(), patches);
  table.give_to(&old);
  EXPECT_EQ(&Table::of(&old), &table);
  EXPECT_EQ(table.original<void*>(2), original[2]);
  // The program calls it by what it knows of the class, which the compiler must not see through.
  void* volatile hidden = &old;
  auto* const seen = static_cast<NewThing*>(hidden);
  EXPECT_EQ(seen->first(4), 5);
  EXPECT_EQ(seen->second(), 2.5);
  EXPECT_TRUE(lines.errors.empty());
  const Sizes sizes = seen->third("x");
  for (const int64_t value : sizes.values) EXPECT_EQ(value, 0);
  EXPECT_FALSE(seen->fourth(1));
  ASSERT_EQ(lines.errors.size(), 2u);
  for (const std::string& word :
       {std::string("LATHE-4102"), std::string("IThing::third"), library_version().to_string()})
    EXPECT_NE(lines.errors[0].find(word), std::string::npos) << lines.errors[0];
  EXPECT_EQ(code_for(ErrorCode::call_missing), nv::ErrorCode::kUNSUPPORTED_STATE);
}

}  // namespace
}  // namespace lathe::api::guest
