// SPDX-License-Identifier: Apache-2.0
#include "plan/block_symbols.h"

namespace lathe::plan {
namespace {

class Finder {
 public:
  explicit Finder(const Plan& plan) : plan_(plan), found_(plan.steps.size()), known_(plan.symbols.size()) {}

  std::vector<BlockSymbols> run() {
    walk(0, plan_.steps.size());
    return std::move(found_);
  }

 private:
  // Steps [first, end) and those of their own.
  void walk(size_t first, size_t end) {
    for (size_t i = first; i < end;) {
      const Step& step = plan_.steps[i];
      if (const auto* block = std::get_if<Block>(&step.work)) {
        i = walk_block(i, *block);
        continue;
      }
      for (const StepCount& count : step.counts) find(count.symbol);
      for (const TensorId id : step.outputs) find_dims(id);
      ++i;
    }
  }

  // A body may not have run, so another one may find the same symbols anew. Returns where the block ends.
  size_t walk_block(size_t i, const Block& block) {
    size_t next = i + 1;
    for (const Body& body : block.bodies) {
      const size_t before = order_.size();
      for (const TensorId id : body.params) find_dims(id);
      walk(next, next + body.steps);
      next += body.steps;
      found_[i].inside.insert(found_[i].inside.end(), order_.begin() + static_cast<std::ptrdiff_t>(before),
                              order_.end());
      for (; order_.size() > before; order_.pop_back()) known_[order_.back()] = false;
    }
    const size_t before = order_.size();
    const std::vector<TensorId>& outputs = plan_.steps[i].outputs;
    const size_t moved = block.kind == BlockKind::loop ? block.carried : outputs.size();
    for (size_t k = 0; k < moved; ++k) find_dims(outputs[k]);
    found_[i].outputs.assign(order_.begin() + static_cast<std::ptrdiff_t>(before), order_.end());
    for (size_t k = moved; k < outputs.size(); ++k) find_dims(outputs[k]);
    // To blocks around it, what it finds inside is found inside, too.
    for (const SymbolId symbol : found_[i].inside) find(symbol);
    return next;
  }

  void find(SymbolId symbol) {
    if (known_[symbol] || plan_.symbols[symbol].source != SymbolSource::computed) return;
    known_[symbol] = true;
    order_.push_back(symbol);
  }
  void find_dims(TensorId id) {
    if (id == kNoTensor) return;
    for (const Expr& dim : plan_.tensors[id].dims)
      if (const std::optional<SymbolId> symbol = dim.as_symbol()) find(*symbol);
  }

  const Plan& plan_;
  std::vector<BlockSymbols> found_;
  std::vector<bool> known_;      // by symbol
  std::vector<SymbolId> order_;  // of those that are known and can be forgotten
};

}  // namespace

std::vector<BlockSymbols> find_block_symbols(const Plan& plan) { return Finder(plan).run(); }

}  // namespace lathe::plan
