// SPDX-License-Identifier: Apache-2.0
// Objects of guests of the other generation of the interface. Their tables are laid out differently, and their library
// calls them by these, so that they cannot be handed out as they are (table.h): a facade stands for each, whose
// functions call the guest's.
#pragma once

#include "api/guest/guest.h"

namespace lathe::api::guest {

// Owns the object from then on. Throws where memory is short.
template <class I>
I* make_facade(Guest& guest, I& object);

}  // namespace lathe::api::guest
