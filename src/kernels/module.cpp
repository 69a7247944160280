// tiewise._kernels: the inner loops of scoring on a CPU. tiewise/scoring/definition.py and approximate.py have NumPy
// versions of all of them, which lead to the same scores and counts.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
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

// Call work(first, last, part) for the parts of a range, each in a thread of its own. It returns false if memory ran out.
template <class Work>
void in_parts(size_t n, size_t threads, Work work) {
  threads = std::max<size_t>(1, std::min(threads, n));
  std::vector<char> done(threads, 1);
  std::vector<std::thread> others;
  others.reserve(threads);
  size_t started = 1;
  try {
    for (; started < threads; ++started) {
      const size_t part = started;
      others.emplace_back([&, part] { done[part] = work(n * part / threads, n * (part + 1) / threads, part); });
    }
  } catch (const std::system_error&) {  // no more threads: this one does the rest
  }
  done[0] = work(0, n / threads, 0);
  for (size_t part = started; part < threads; ++part) done[part] = work(n * part / threads, n * (part + 1) / threads, part);
  for (std::thread& other : others) other.join();
  if (!std::all_of(done.begin(), done.end(), [](char fine) { return fine; })) throw std::bad_alloc();
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
    try {
      auto* sum = squared ? sum_pairs<SquaredDifference, T> : sum_pairs<Product, T>;
      sum(x.data(), y.data(), x.shape(1), i.data(), j.data(), first, last, out.data());
      return true;
    } catch (...) {
      return false;
    }
  });
}

// Approximate dot products of a few vectors with rows, and the squared norms of these, in one reading of the rows.
TIEWISE_CLONES void quick_rows(const float* x, size_t few, const float* rows, size_t dims, size_t first, size_t last,
                               size_t all, float* dots, double* squares) {
  for (size_t p = first; p < last; ++p) {
    const float* row = rows + p * dims;
    if (!few) squares[p] = quick_sums(row, row, dims).square;
    for (size_t q = 0; q < few; ++q) {
      const Quick sums = quick_sums(x + q * dims, row, dims);
      dots[q * all + p] = sums.dot;
      squares[p] = sums.square;
    }
  }
}

void quick(Matrix<const float> x, Matrix<const float> rows, Matrix<float> dots, Vector<double> squares, size_t threads) {
  const size_t all = rows.shape(0), few = x.shape(0), dims = rows.shape(1);
  if (x.shape(1) != dims || dots.shape(0) != few || dots.shape(1) != all || squares.size() != all) {
    throw std::length_error("shapes");
  }
  nb::gil_scoped_release unlocked;
  in_parts(all, threads, [&](size_t first, size_t last, size_t) {
    quick_rows(x.data(), few, rows.data(), dims, first, last, all, dots.data(), squares.data());
    return true;
  });
}

template <class T>
Scores<T> scores_of(const Rows<T>& values, std::optional<Vector<const T>>& scale, std::optional<Vector<const T>>& offset,
                    Matrix<const double>& row, Matrix<const double>& doc) {
  const size_t rows = values.shape(0), documents = values.shape(1);
  const auto fits = [&](const auto& part) { return !part || part->size() == documents; };
  if (row.shape(0) != 2 || row.shape(1) != rows || doc.shape(0) < 1 || doc.shape(1) != documents || !fits(scale) ||
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
                  doc.shape(0) > 1 ? doc.data() + documents : nullptr,
                  {},
                  {}};
  found.find_maxima();
  return found;
}

// What is asked of the rows of a block. No exception may leave a function that is compiled for several machines, because
// the loader's dispatch does not pass it on; these return false if memory runs out.
struct Counting {
  const double* thresholds;
  size_t wide;
  const int64_t* sizes;
  size_t most;
  int64_t *above, *equal;
  bool* many;
};

template <class T>
TIEWISE_INLINE bool count_all(const Scores<T>& scores, size_t first, size_t last, const Counting& of, Near& near) {
  try {
    const size_t all = scores.rows * of.wide;
    for (size_t row = first; row < last; ++row) {
      const double* mine = of.thresholds + row * of.wide;
      const Thresholds t{mine, mine + all, mine + 2 * all, mine + 3 * all, static_cast<size_t>(of.sizes[row])};
      of.many[row] = !count_row(scores, row, t, of.most, of.above + row * of.wide, of.equal + row * of.wide, near);
    }
    return true;
  } catch (...) {
    return false;
  }
}
TIEWISE_CLONES bool count_rows(const Scores<float>& scores, size_t first, size_t last, const Counting& of, Near& near) {
  return count_all(scores, first, last, of, near);
}
TIEWISE_CLONES bool count_rows(const Scores<double>& scores, size_t first, size_t last, const Counting& of, Near& near) {
  return count_all(scores, first, last, of, near);
}

struct Selecting {
  const double* limit;
  bool below;
  size_t most;
  bool* many;
};

struct Selected {
  Near found;
  std::vector<double> value;
};

template <class T>
TIEWISE_INLINE bool select_all(const Scores<T>& scores, size_t first, size_t last, const Selecting& of, Selected& out) {
  try {
    for (size_t row = first; row < last; ++row) {
      of.many[row] = !select_row(scores, row, of.limit[row], of.below, of.most, out.found, out.value);
    }
    return true;
  } catch (...) {
    return false;
  }
}
TIEWISE_CLONES bool select_rows(const Scores<float>& scores, size_t first, size_t last, const Selecting& of,
                                Selected& out) {
  return select_all(scores, first, last, of, out);
}
TIEWISE_CLONES bool select_rows(const Scores<double>& scores, size_t first, size_t last, const Selecting& of,
                                Selected& out) {
  return select_all(scores, first, last, of, out);
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
                 Vector<const int64_t> sizes, Matrix<int64_t> above, Matrix<int64_t> equal, size_t most, Vector<bool> many,
                 size_t threads) {
  const Scores<T> scores = scores_of<T>(values, scale, offset, row, doc);
  const size_t wide = thresholds.shape(2);
  for (const auto& out : {above, equal}) {
    if (out.shape(0) != scores.rows || out.shape(1) != wide) throw std::length_error("shapes");
  }
  if (thresholds.shape(0) != 4 || thresholds.shape(1) != scores.rows || sizes.size() != scores.rows ||
      many.size() != scores.rows) {
    throw std::length_error("shapes");
  }
  for (size_t at = 0; at < scores.rows; ++at) {
    if (sizes.data()[at] < 0 || static_cast<size_t>(sizes.data()[at]) > wide) throw std::out_of_range("sizes");
  }
  std::vector<Near> parts(std::max<size_t>(1, threads));
  const Counting counting{thresholds.data(), wide, sizes.data(), most, above.data(), equal.data(), many.data()};
  {
    nb::gil_scoped_release unlocked;
    in_parts(scores.rows, threads, [&](size_t first, size_t last, size_t part) {
      return count_rows(scores, first, last, counting, parts[part]);
    });
  }
  return nb::make_tuple(joined<int64_t>(parts, [](Near& near) -> auto& { return near.row; }),
                        joined<int64_t>(parts, [](Near& near) -> auto& { return near.column; }),
                        joined<int64_t>(parts, [](Near& near) -> auto& { return near.doc; }));
}

template <class T>
nb::object select(Rows<T> values, std::optional<Vector<const T>> scale, std::optional<Vector<const T>> offset,
                  Matrix<const double> row, Matrix<const double> doc, Vector<const double> limit, bool below, size_t most,
                  Vector<bool> many, size_t threads) {
  const Scores<T> scores = scores_of<T>(values, scale, offset, row, doc);
  if (limit.size() != scores.rows || many.size() != scores.rows) throw std::length_error("shapes");
  std::vector<Selected> parts(std::max<size_t>(1, threads));
  const Selecting selecting{limit.data(), below, most, many.data()};
  {
    nb::gil_scoped_release unlocked;
    in_parts(scores.rows, threads, [&](size_t first, size_t last, size_t part) {
      return select_rows(scores, first, last, selecting, parts[part]);
    });
  }
  return nb::make_tuple(joined<int64_t>(parts, [](Selected& part) -> auto& { return part.found.row; }),
                        joined<int64_t>(parts, [](Selected& part) -> auto& { return part.found.doc; }),
                        joined<double>(parts, [](Selected& part) -> auto& { return part.value; }));
}

template <class T>
void lowest(Rows<T> values, std::optional<Vector<const T>> scale, std::optional<Vector<const T>> offset,
            Matrix<const double> row, Matrix<const double> doc, Vector<double> out, size_t threads) {
  const Scores<T> scores = scores_of<T>(values, scale, offset, row, doc);
  if (out.size() != scores.rows) throw std::length_error("shapes");
  nb::gil_scoped_release unlocked;
  in_parts(scores.rows, threads,
           [&](size_t first, size_t last, size_t) { return lowest_of_rows(scores, first, last, out.data()), true; });
}

template <class T>
void define(nb::module_& m) {
  m.def("sums", &sums<T>, "x"_a.noconvert(), "y"_a.noconvert(), "i"_a.noconvert(), "j"_a.noconvert(),
        "out"_a.noconvert(), "squared"_a, "threads"_a);
  m.def("count", &count<T>, "values"_a.noconvert(), "scale"_a.none(), "offset"_a.none(), "row"_a, "doc"_a,
        "thresholds"_a, "sizes"_a, "above"_a.noconvert(), "equal"_a.noconvert(), "most"_a, "many"_a.noconvert(), "threads"_a);
  m.def("select", &select<T>, "values"_a.noconvert(), "scale"_a.none(), "offset"_a.none(), "row"_a, "doc"_a, "limit"_a,
        "below"_a, "most"_a, "many"_a.noconvert(), "threads"_a);
  m.def("lowest", &lowest<T>, "values"_a.noconvert(), "scale"_a.none(), "offset"_a.none(), "row"_a, "doc"_a,
        "out"_a.noconvert(), "threads"_a);
}

}  // namespace
}  // namespace tiewise

NB_MODULE(_kernels, m) {
  m.doc() = "Inner loops of scoring on a CPU.";
  tiewise::define<float>(m);
  tiewise::define<double>(m);
  m.def("quick", &tiewise::quick, "x"_a.noconvert(), "rows"_a.noconvert(), "dots"_a.noconvert(),
        "squares"_a.noconvert(), "threads"_a);
}
