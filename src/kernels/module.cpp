// tiewise._kernels: the inner loops of scoring on a CPU. NumPy versions of all of them are in
// tiewise/scoring/kernels_python.py; they give the same scores and the same counts.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <thread>

#include "intervals.h"
#include "pairs.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tiewise {
namespace {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // rows may be part of longer ones

// Call work(first, last, part) for the parts of a range, each in a thread of its own.
template <class Work>
void in_parts(size_t n, size_t threads, Work work) {
  threads = std::max<size_t>(1, std::min(threads, n));
  std::vector<std::thread> others;
  for (size_t part = 1; part < threads; ++part) {
    others.emplace_back([=] { work(n * part / threads, n * (part + 1) / threads, part); });
  }
  work(0, n / threads, 0);
  for (std::thread& other : others) other.join();
}

void check_rows(Vector<const int64_t> rows, size_t n) {
  for (size_t p = 0; p < rows.size(); ++p) {
    if (rows.data()[p] < 0 || static_cast<size_t>(rows.data()[p]) >= n) throw std::out_of_range("no such row");
  }
}

template <class T>
void sums(Matrix<const T> x, Matrix<const T> y, Vector<const int64_t> i, Vector<const int64_t> j, Vector<double> out,
          bool squared, size_t threads) {
  if (x.shape(1) != y.shape(1) || i.size() != j.size() || out.size() != i.size()) throw std::length_error("shapes");
  check_rows(i, x.shape(0));
  check_rows(j, y.shape(0));
  nb::gil_scoped_release unlocked;
  in_parts(i.size(), threads, [&](size_t first, size_t last, size_t) {
    auto* sum = squared ? sum_pairs<SquaredDifference, T> : sum_pairs<Product, T>;
    sum(x.data(), y.data(), x.shape(1), i.data(), j.data(), first, last, out.data());
  });
}

template <class T>
Scores<T> scores_of(const Rows<T>& values, std::optional<Vector<const T>>& scale, std::optional<Vector<const T>>& offset,
                    Matrix<const double>& row, Matrix<const double>& doc) {
  const size_t rows = values.shape(0), documents = values.shape(1);
  const auto fits = [&](const auto& part) { return !part || part->size() == documents; };
  if (row.shape(0) != 2 || row.shape(1) != rows || doc.shape(0) != 2 || doc.shape(1) != documents || !fits(scale) ||
      !fits(offset) || (documents > 1 && values.stride(1) != 1)) {
    throw std::length_error("shapes");
  }
  Scores<T> found{values.data(),
                  rows,
                  documents,
                  static_cast<size_t>(values.stride(0)),
                  scale ? scale->data() : nullptr,
                  offset ? offset->data() : nullptr,
                  row.data(),
                  row.data() + rows,
                  doc.data(),
                  doc.data() + documents,
                  {},
                  {}};
  found.find_maxima();
  return found;
}

TIEWISE_CLONES void count_rows(const Scores<float>& scores, size_t first, size_t last, const double* t, size_t wide,
                               const int64_t* sizes, int64_t* above, int64_t* equal, Near& near) {
  const size_t all = scores.rows * wide;
  for (size_t row = first; row < last; ++row) {
    const double* mine = t + row * wide;
    const Thresholds thresholds{mine, mine + all, mine + 2 * all, mine + 3 * all, static_cast<size_t>(sizes[row])};
    count_row(scores, row, thresholds, above + row * wide, equal + row * wide, near);
  }
}
TIEWISE_CLONES void count_rows(const Scores<double>& scores, size_t first, size_t last, const double* t, size_t wide,
                               const int64_t* sizes, int64_t* above, int64_t* equal, Near& near) {
  const size_t all = scores.rows * wide;
  for (size_t row = first; row < last; ++row) {
    const double* mine = t + row * wide;
    const Thresholds thresholds{mine, mine + all, mine + 2 * all, mine + 3 * all, static_cast<size_t>(sizes[row])};
    count_row(scores, row, thresholds, above + row * wide, equal + row * wide, near);
  }
}
TIEWISE_CLONES void select_rows(const Scores<float>& scores, size_t first, size_t last, const double* limit, bool below,
                                Near& found, std::vector<double>& value) {
  for (size_t row = first; row < last; ++row) select_row(scores, row, limit[row], below, found, value);
}
TIEWISE_CLONES void select_rows(const Scores<double>& scores, size_t first, size_t last, const double* limit, bool below,
                                Near& found, std::vector<double>& value) {
  for (size_t row = first; row < last; ++row) select_row(scores, row, limit[row], below, found, value);
}
TIEWISE_CLONES void lowest_of_rows(const Scores<float>& scores, size_t first, size_t last, double* out) {
  for (size_t row = first; row < last; ++row) out[row] = lowest_of_row(scores, row);
}
TIEWISE_CLONES void lowest_of_rows(const Scores<double>& scores, size_t first, size_t last, double* out) {
  for (size_t row = first; row < last; ++row) out[row] = lowest_of_row(scores, row);
}

template <class T>
nb::object array(std::vector<T>&& values) {
  auto* held = new std::vector<T>(std::move(values));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

// The lists that threads have made, one after another.
template <class T, class Parts, class Member>
nb::object joined(Parts& parts, Member member) {
  std::vector<T> all;
  for (auto& part : parts) {
    const auto& one = member(part);
    all.insert(all.end(), one.begin(), one.end());
  }
  return array(std::move(all));
}

template <class T>
nb::object count(Rows<T> values, std::optional<Vector<const T>> scale, std::optional<Vector<const T>> offset,
                 Matrix<const double> row, Matrix<const double> doc,
                 nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> thresholds,
                 Vector<const int64_t> sizes, Matrix<int64_t> above, Matrix<int64_t> equal, size_t threads) {
  const Scores<T> scores = scores_of<T>(values, scale, offset, row, doc);
  const size_t wide = thresholds.shape(2);
  for (const auto& out : {above, equal}) {
    if (out.shape(0) != scores.rows || out.shape(1) != wide) throw std::length_error("shapes");
  }
  if (thresholds.shape(0) != 4 || thresholds.shape(1) != scores.rows || sizes.size() != scores.rows) {
    throw std::length_error("shapes");
  }
  for (size_t at = 0; at < scores.rows; ++at) {
    if (sizes.data()[at] < 0 || static_cast<size_t>(sizes.data()[at]) > wide) throw std::out_of_range("sizes");
  }
  std::vector<Near> parts(std::max<size_t>(1, threads));
  {
    nb::gil_scoped_release unlocked;
    in_parts(scores.rows, threads, [&](size_t first, size_t last, size_t part) {
      count_rows(scores, first, last, thresholds.data(), wide, sizes.data(), above.data(), equal.data(), parts[part]);
    });
  }
  return nb::make_tuple(joined<int64_t>(parts, [](Near& near) -> auto& { return near.row; }),
                        joined<int64_t>(parts, [](Near& near) -> auto& { return near.column; }),
                        joined<int64_t>(parts, [](Near& near) -> auto& { return near.doc; }));
}

template <class T>
nb::object select(Rows<T> values, std::optional<Vector<const T>> scale, std::optional<Vector<const T>> offset,
                  Matrix<const double> row, Matrix<const double> doc, Vector<const double> limit, bool below,
                  size_t threads) {
  const Scores<T> scores = scores_of<T>(values, scale, offset, row, doc);
  if (limit.size() != scores.rows) throw std::length_error("shapes");
  struct Part {
    Near found;
    std::vector<double> value;
  };
  std::vector<Part> parts(std::max<size_t>(1, threads));
  {
    nb::gil_scoped_release unlocked;
    in_parts(scores.rows, threads, [&](size_t first, size_t last, size_t part) {
      select_rows(scores, first, last, limit.data(), below, parts[part].found, parts[part].value);
    });
  }
  return nb::make_tuple(joined<int64_t>(parts, [](Part& part) -> auto& { return part.found.row; }),
                        joined<int64_t>(parts, [](Part& part) -> auto& { return part.found.doc; }),
                        joined<double>(parts, [](Part& part) -> auto& { return part.value; }));
}

template <class T>
void lowest(Rows<T> values, std::optional<Vector<const T>> scale, std::optional<Vector<const T>> offset,
            Matrix<const double> row, Matrix<const double> doc, Vector<double> out, size_t threads) {
  const Scores<T> scores = scores_of<T>(values, scale, offset, row, doc);
  if (out.size() != scores.rows) throw std::length_error("shapes");
  nb::gil_scoped_release unlocked;
  in_parts(scores.rows, threads,
           [&](size_t first, size_t last, size_t) { lowest_of_rows(scores, first, last, out.data()); });
}

template <class T>
void define(nb::module_& m) {
  m.def("sums", &sums<T>, "x"_a.noconvert(), "y"_a.noconvert(), "i"_a.noconvert(), "j"_a.noconvert(),
        "out"_a.noconvert(), "squared"_a, "threads"_a);
  m.def("count", &count<T>, "values"_a.noconvert(), "scale"_a.none(), "offset"_a.none(), "row"_a, "doc"_a,
        "thresholds"_a, "sizes"_a, "above"_a.noconvert(), "equal"_a.noconvert(), "threads"_a);
  m.def("select", &select<T>, "values"_a.noconvert(), "scale"_a.none(), "offset"_a.none(), "row"_a, "doc"_a, "limit"_a,
        "below"_a, "threads"_a);
  m.def("lowest", &lowest<T>, "values"_a.noconvert(), "scale"_a.none(), "offset"_a.none(), "row"_a, "doc"_a,
        "out"_a.noconvert(), "threads"_a);
}

}  // namespace
}  // namespace tiewise

NB_MODULE(_kernels, m) {
  m.doc() = "Inner loops of scoring on a CPU.";
  tiewise::define<float>(m);
  tiewise::define<double>(m);
}
