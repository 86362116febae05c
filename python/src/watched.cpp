// SPDX-License-Identifier: Apache-2.0
// Which objects a function is called with, looked at in each call. A model has hundreds of weights, and to make lists
// of them takes longer than to launch it.
#include "bind.h"

namespace lathe::python {
namespace {

// Holds no reference: whoever keeps it has to know which of the objects have gone, for others may lie where they lay.
class Watched {
 public:
  Watched(const nb::tuple& arguments, const std::vector<size_t>& places) {
    for (const size_t place : places) {
      if (place >= arguments.size()) throw nb::index_error("no such argument");
      objects_.push_back({place, arguments[place].ptr()});
    }
  }
  bool are_in(const nb::tuple& arguments) const {
    const size_t count = arguments.size();
    for (const Object& object : objects_)
      if (object.place >= count || NB_TUPLE_GET_ITEM(arguments.ptr(), object.place) != object.known) return false;
    return true;
  }

 private:
  struct Object {
    size_t place;
    const PyObject* known;
  };
  std::vector<Object> objects_;
};

}  // namespace

void bind_watched(nb::module_& m) {
  nb::class_<Watched>(m, "_Watched")
      .def(nb::init<const nb::tuple&, const std::vector<size_t>&>(), nb::arg("arguments"), nb::arg("places"),
           nb::sig("def __init__(self, arguments: tuple[Any, ...], places: Sequence[int]) -> None"))
      .def("are_in", &Watched::are_in, nb::arg("arguments"),
           nb::sig("def are_in(self, arguments: tuple[Any, ...]) -> bool"), "Whether each object is in its place.");
}

}  // namespace lathe::python
