// SPDX-License-Identifier: Apache-2.0
#include "onnx/aligned_copies.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/divide.h"

namespace lathe::onnx {

struct AlignedCopy {
  Tensor memory;
  std::span<const std::byte> piece;
  std::shared_ptr<const void> file;
};

namespace {

// The pages that lie within: of a file they are fetched again when they are read, others are zeros then.
void give_back(std::span<const std::byte> bytes) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = round_up(address, page), end = (address + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void copy_again(AlignedCopy& copy) {
  std::memcpy(copy.memory.mutable_data(), copy.piece.data(), copy.piece.size());
  give_back(copy.piece);
}

}  // namespace

Result<Tensor> AlignedCopies::add(DType type, Dims dims, std::span<const std::byte> piece,
                                  std::shared_ptr<const void> file) {
  LATHE_ASSIGN(Tensor memory, Tensor::allocate(type, dims));
  const auto copy = std::make_shared<AlignedCopy>(AlignedCopy{std::move(memory), piece, std::move(file)});
  copy_again(*copy);
  std::erase_if(copies_, [](const auto& each) { return each.expired(); });
  copies_.push_back(copy);
  return Tensor::view(type, std::move(dims), copy->memory.data(), copy);
}

UnreadCopies::UnreadCopies(const std::vector<std::shared_ptr<AlignedCopies>>& models) {
  for (const auto& model : models)
    for (const auto& each : model->copies_)
      if (auto copy = each.lock()) copies_.push_back({std::move(copy), 0});
  for (Copy& each : copies_) each.handles = each.copy.use_count();
}

void UnreadCopies::forget() {
  for (Copy& each : copies_) {
    if (each.is_forgotten || each.copy.use_count() > each.handles) continue;
    give_back(each.copy->memory.raw());
    each.is_forgotten = true;
  }
}

UnreadCopies::~UnreadCopies() {
  for (const Copy& each : copies_)
    if (each.is_forgotten) copy_again(*each.copy);
}

}  // namespace lathe::onnx
