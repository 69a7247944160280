// tiewise._kernels: the inner loops of scoring on a CPU. tiewise/scoring has NumPy versions of all of them, which give
// the same scores and counts.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#ifdef SIGBUS
#include <unistd.h>
#endif

#include "half.h"
#include "intervals.h"
#include "pairs.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace nanobind::detail {
template <>
struct dtype_traits<tiewise::Float16> {
  static constexpr dlpack::dtype value{static_cast<uint8_t>(dlpack::dtype_code::Float), 16, 1};
  static constexpr auto name = const_name("float16");
};
// NumPy has no bfloat16: its bits come as integers.
template <>
struct dtype_traits<tiewise::Bfloat16> : dtype_traits<uint16_t> {};
}  // namespace nanobind::detail

namespace tiewise {
namespace {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // rows may be parts of longer ones

// Call work(first, last, part) for the parts of a range, each in its own thread. It returns false if memory ran out.
template <class Work>
void run_in_threads(size_t n, size_t threads, Work work) {
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
  } catch (const std::system_error&) {  // no more threads can be started: this one does the rest
  }
  done[0] = work(0, n / threads, 0);
  for (size_t part = started; part < threads; ++part) {
    done[part] = work(n * part / threads, n * (part + 1) / threads, part);
  }
  for (std::thread& other : others) other.join();
  if (!std::all_of(done.begin(), done.end(), [](char ok) { return ok; })) throw std::bad_alloc();
}

void check_rows(Vector<const int64_t> rows, size_t n) {
  for (size_t p = 0; p < rows.size(); ++p) {
    if (rows.data()[p] < 0 || static_cast<size_t>(rows.data()[p]) >= n) throw std::out_of_range("row");
  }
}

template <class T>
void sum_pairs_into(Matrix<const T> x, Matrix<const T> y, Vector<const int64_t> i, Vector<const int64_t> j,
                    Vector<double> out, bool squared, size_t threads) {
  if (x.shape(1) != y.shape(1) || i.size() != j.size() || out.size() != i.size()) throw std::length_error("shapes");
  check_rows(i, x.shape(0));
  check_rows(j, y.shape(0));
  nb::gil_scoped_release no_gil;
  run_in_threads(i.size(), threads, [&](size_t first, size_t last, size_t) {
    try {
      const auto sum = [&](auto term) {
        sum_pairs<decltype(term)>(x.data(), y.data(), x.shape(1), i.data(), j.data(), first, last, out.data());
      };
      squared ? sum(SquaredDifference()) : sum(Product());
      return true;
    } catch (...) {
      return false;
    }
  });
}

// Approximate dot products of a few vectors with rows, and the squared norms of the rows, in one pass over the rows.
TIEWISE_CLONES void fast_products_of_rows(const float* x, size_t few, const float* rows, size_t dims, size_t first,
                                          size_t last, size_t all, float* dots, double* squares) {
  for (size_t p = first; p < last; ++p) {
    const float* row = rows + p * dims;
    if (!few) squares[p] = fast_sums(row, row, dims).square;
    for (size_t q = 0; q < few; ++q) {
      const FastSums sums = fast_sums(x + q * dims, row, dims);
      dots[q * all + p] = sums.dot;
      squares[p] = sums.square;
    }
  }
}

// The products of one row at a time, which is converted to float while it is in the cache.
template <class T>
void fast_products_of_rows(const float* x, size_t few, const T* rows, size_t dims, size_t first, size_t last,
                           size_t all, float* dots, double* squares) {
  std::vector<float> row(dims);
  for (size_t p = first; p < last; ++p) {
    widen_row(rows + p * dims, dims, row.data());
    fast_products_of_rows(x, few, row.data(), dims, 0, 1, all, dots + p, squares + p);
  }
}

template <class T>
void fast_products(Matrix<const float> x, Matrix<const T> rows, Matrix<float> dots, Vector<double> squares,
                   size_t threads) {
  const size_t all = rows.shape(0), few = x.shape(0), dims = rows.shape(1);
  if (x.shape(1) != dims || dots.shape(0) != few || dots.shape(1) != all || squares.size() != all) {
    throw std::length_error("shapes");
  }
  nb::gil_scoped_release no_gil;
  run_in_threads(all, threads, [&](size_t first, size_t last, size_t) {
    try {
      fast_products_of_rows(x.data(), few, rows.data(), dims, first, last, all, dots.data(), squares.data());
      return true;
    } catch (...) {
      return false;
    }
  });
}

template <class T>
void widen(Matrix<const T> rows, Matrix<float> out, size_t threads) {
  const size_t n = rows.shape(0), dims = rows.shape(1);
  if (out.shape(0) != n || out.shape(1) != dims) throw std::length_error("shapes");
  nb::gil_scoped_release no_gil;
  run_in_threads(n, threads, [&](size_t first, size_t last, size_t) {
    widen_row(rows.data() + first * dims, (last - first) * dims, out.data() + first * dims);
    return true;
  });
}

// Products of vectors of −1 and 1 that are given as bits: dims − 2 · (different bits).
template <class T>
TIEWISE_INLINE void bit_products_of_rows(const uint64_t* x, size_t n_x, const uint64_t* rows, size_t words, double dims,
                                         size_t first, size_t last, size_t all, T* out) {
  constexpr size_t BLOCK = 256;  // rows that stay in the cache for all x
  for (size_t start = first; start < last; start += BLOCK) {
    const size_t stop = std::min(start + BLOCK, last);
    for (size_t q = 0; q < n_x; ++q) {
      const uint64_t* own = x + q * words;
      for (size_t p = start; p < stop; ++p) {
        const uint64_t* row = rows + p * words;
        uint64_t different = 0;
        for (size_t w = 0; w < words; ++w) different += std::bitset<64>(own[w] ^ row[w]).count();
        out[q * all + p] = static_cast<T>(dims - 2 * static_cast<double>(different));
      }
    }
  }
}
TIEWISE_CLONES void bit_products_of(const uint64_t* x, size_t n_x, const uint64_t* rows, size_t words, double dims,
                                    size_t first, size_t last, size_t all, float* out) {
  bit_products_of_rows(x, n_x, rows, words, dims, first, last, all, out);
}
TIEWISE_CLONES void bit_products_of(const uint64_t* x, size_t n_x, const uint64_t* rows, size_t words, double dims,
                                    size_t first, size_t last, size_t all, double* out) {
  bit_products_of_rows(x, n_x, rows, words, dims, first, last, all, out);
}

template <class T>
void bit_products(Matrix<const uint64_t> x, Matrix<const uint64_t> rows, size_t dims, Matrix<T> out, size_t threads) {
  const size_t all = rows.shape(0), n_x = x.shape(0), words = rows.shape(1);
  if (x.shape(1) != words || out.shape(0) != n_x || out.shape(1) != all) throw std::length_error("shapes");
  nb::gil_scoped_release no_gil;
  run_in_threads(all, threads, [&](size_t first, size_t last, size_t) {
    bit_products_of(x.data(), n_x, rows.data(), words, static_cast<double>(dims), first, last, all, out.data());
    return true;
  });
}

template <class T>
ApproximateScores<T> make_scores(const Rows<T>& values, std::optional<Vector<const T>>& scale,
                                 std::optional<Vector<const T>>& offset, Matrix<const double>& row,
                                 Matrix<const double>& doc) {
  const size_t rows = values.shape(0), documents = values.shape(1);
  const auto fits = [&](const auto& part) { return !part || part->size() == documents; };
  if (row.shape(0) != 2 || row.shape(1) != rows || doc.shape(0) < 1 || doc.shape(1) != documents || !fits(scale) ||
      !fits(offset) || (documents > 1 && values.stride(1) != 1)) {
    throw std::length_error("shapes");
  }
  const auto data = [](const auto& part) { return part ? part->data() : nullptr; };
  const double* doc_b = doc.shape(0) > 1 ? doc.data() + documents : nullptr;
  ApproximateScores<T> scores{
      values.data(), rows,       documents,         static_cast<size_t>(values.stride(0)), data(scale),
      data(offset),  row.data(), row.data() + rows, doc.data(),                            doc_b,
      {},            {}};
  scores.find_maxima();
  return scores;
}

// Arguments and results for the rows of a block. An exception must not leave a function that is compiled for several
// machines, because the loader's dispatch does not pass it on; these functions return false if memory runs out.
struct CountArgs {
  const double* thresholds;
  size_t width;
  const int64_t* sizes;
  size_t max_near;
  int64_t *above, *equal;
  double* lowest;
  bool* skipped;
};

template <class T>
TIEWISE_INLINE bool count_all(const ApproximateScores<T>& scores, size_t first, size_t last, const CountArgs& args,
                              NearDocuments& near) {
  try {
    const size_t all = scores.rows * args.width;
    for (size_t row = first; row < last; ++row) {
      const size_t cell = row * args.width;
      const double* bounds = args.thresholds + cell;
      const Thresholds t{bounds, bounds + all, bounds + 2 * all, bounds + 3 * all, static_cast<size_t>(args.sizes[row])};
      args.skipped[row] =
          !count_row(scores, row, t, args.max_near, args.above + cell, args.equal + cell, args.lowest[row], near);
    }
    return true;
  } catch (...) {
    return false;
  }
}
TIEWISE_CLONES bool count_rows(const ApproximateScores<float>& scores, size_t first, size_t last, const CountArgs& args,
                               NearDocuments& near) {
  return count_all(scores, first, last, args, near);
}
TIEWISE_CLONES bool count_rows(const ApproximateScores<double>& scores, size_t first, size_t last,
                               const CountArgs& args, NearDocuments& near) {
  return count_all(scores, first, last, args, near);
}

struct SelectArgs {
  const double* limit;
  bool below;
  size_t max_selected;
  bool* skipped;
};

template <class T>
TIEWISE_INLINE bool select_all(const ApproximateScores<T>& scores, size_t first, size_t last, const SelectArgs& args,
                               SelectedDocuments& out) {
  try {
    for (size_t row = first; row < last; ++row) {
      args.skipped[row] = !select_row(scores, row, args.limit[row], args.below, args.max_selected, out);
    }
    return true;
  } catch (...) {
    return false;
  }
}
TIEWISE_CLONES bool select_rows(const ApproximateScores<float>& scores, size_t first, size_t last,
                                const SelectArgs& args, SelectedDocuments& out) {
  return select_all(scores, first, last, args, out);
}
TIEWISE_CLONES bool select_rows(const ApproximateScores<double>& scores, size_t first, size_t last,
                                const SelectArgs& args, SelectedDocuments& out) {
  return select_all(scores, first, last, args, out);
}

template <class T>
nb::object to_numpy(std::vector<T>&& values) {
  auto* moved = new std::vector<T>(std::move(values));
  nb::capsule owner(moved, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(moved->data(), {moved->size()}, owner));
}

// One of the vectors of all threads, concatenated.
template <class Part, class T>
nb::object concatenate(const std::vector<Part>& parts, std::vector<T> Part::* member) {
  std::vector<T> all;
  for (const Part& part : parts) all.insert(all.end(), (part.*member).begin(), (part.*member).end());
  return to_numpy(std::move(all));
}

template <class T>
nb::object count(Rows<T> values, std::optional<Vector<const T>> scale, std::optional<Vector<const T>> offset,
                 Matrix<const double> row, Matrix<const double> doc, nb::ndarray<const double, nb::ndim<3>,
                 nb::c_contig, nb::device::cpu> thresholds, Vector<const int64_t> sizes, Matrix<int64_t> above,
                 Matrix<int64_t> equal, Vector<double> lowest, size_t max_near, Vector<bool> skipped, size_t threads) {
  const ApproximateScores<T> scores = make_scores<T>(values, scale, offset, row, doc);
  const size_t width = thresholds.shape(2);
  for (const auto& out : {above, equal}) {
    if (out.shape(0) != scores.rows || out.shape(1) != width) throw std::length_error("shapes");
  }
  if (thresholds.shape(0) != 4 || thresholds.shape(1) != scores.rows || sizes.size() != scores.rows ||
      lowest.size() != scores.rows || skipped.size() != scores.rows) {
    throw std::length_error("shapes");
  }
  for (size_t at = 0; at < scores.rows; ++at) {
    if (sizes.data()[at] < 0 || static_cast<size_t>(sizes.data()[at]) > width) throw std::out_of_range("sizes");
  }
  std::vector<NearDocuments> parts(std::max<size_t>(1, threads));
  const CountArgs args{thresholds.data(), width,       sizes.data(),  max_near,
                       above.data(),      equal.data(), lowest.data(), skipped.data()};
  {
    nb::gil_scoped_release no_gil;
    run_in_threads(scores.rows, threads, [&](size_t first, size_t last, size_t part) {
      return count_rows(scores, first, last, args, parts[part]);
    });
  }
  return nb::make_tuple(concatenate(parts, &NearDocuments::row), concatenate(parts, &NearDocuments::column),
                        concatenate(parts, &NearDocuments::doc));
}

template <class T>
nb::object select(Rows<T> values, std::optional<Vector<const T>> scale, std::optional<Vector<const T>> offset,
                  Matrix<const double> row, Matrix<const double> doc, Vector<const double> limit, bool below,
                  size_t max_selected, Vector<bool> skipped, size_t threads) {
  const ApproximateScores<T> scores = make_scores<T>(values, scale, offset, row, doc);
  if (limit.size() != scores.rows || skipped.size() != scores.rows) throw std::length_error("shapes");
  std::vector<SelectedDocuments> parts(std::max<size_t>(1, threads));
  const SelectArgs args{limit.data(), below, max_selected, skipped.data()};
  {
    nb::gil_scoped_release no_gil;
    run_in_threads(scores.rows, threads, [&](size_t first, size_t last, size_t part) {
      return select_rows(scores, first, last, args, parts[part]);
    });
  }
  return nb::make_tuple(concatenate(parts, &SelectedDocuments::row), concatenate(parts, &SelectedDocuments::doc),
                        concatenate(parts, &SelectedDocuments::score));
}

template <class T>
void define_products(nb::module_& m) {
  m.def("fast_products", &fast_products<T>, "x"_a.noconvert(), "rows"_a.noconvert(), "dots"_a.noconvert(),
        "squares"_a.noconvert(), "threads"_a);
}

template <class T>
void define_half(nb::module_& m) {
  define_products<T>(m);
  m.def("widen", &widen<T>, "rows"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

template <class T>
void define(nb::module_& m) {
  m.def("sum_pairs", &sum_pairs_into<T>, "x"_a.noconvert(), "y"_a.noconvert(), "i"_a.noconvert(), "j"_a.noconvert(),
        "out"_a.noconvert(), "squared"_a, "threads"_a);
  m.def("count", &count<T>, "values"_a.noconvert(), "scale"_a.none(), "offset"_a.none(), "row"_a, "doc"_a,
        "thresholds"_a, "sizes"_a, "above"_a.noconvert(), "equal"_a.noconvert(), "lowest"_a.noconvert(), "max_near"_a,
        "skipped"_a.noconvert(), "threads"_a);
  m.def("select", &select<T>, "values"_a.noconvert(), "scale"_a.none(), "offset"_a.none(), "row"_a, "doc"_a, "limit"_a,
        "below"_a, "max_selected"_a, "skipped"_a.noconvert(), "threads"_a);
  m.def("bit_products", &bit_products<T>, "x"_a.noconvert(), "rows"_a.noconvert(), "dims"_a, "out"_a.noconvert(),
        "threads"_a);
}

#ifdef SIGBUS
char bus_error_message[4096];
size_t bus_error_size = 0;
std::atomic_flag bus_error_seen = ATOMIC_FLAG_INIT;

// Only functions that a signal handler may call.
extern "C" void on_bus_error(int) {
  while (bus_error_seen.test_and_set()) pause();  // another thread was first
  const auto written = write(STDERR_FILENO, bus_error_message, bus_error_size);
  (void)written;  // there is nowhere else to say it
  _exit(2);
}
#endif

// A mapped file that another process makes shorter raises SIGBUS, which Python cannot catch: print this message and
// exit with status 2. For the command line only: the handler belongs to the whole process.
void exit_on_bus_error(const char* message) {
#ifdef SIGBUS
  bus_error_size = std::min(std::strlen(message), sizeof bus_error_message);
  std::copy(message, message + bus_error_size, bus_error_message);
  std::signal(SIGBUS, on_bus_error);
#else
  (void)message;
#endif
}

}  // namespace
}  // namespace tiewise

NB_MODULE(_kernels, m) {
  nb::set_leak_warnings(false);  // of objects that somebody keeps until the process ends
  m.doc() = "Inner loops of scoring on a CPU.";
  tiewise::define<float>(m);
  tiewise::define<double>(m);
  tiewise::define_products<float>(m);
  tiewise::define_half<tiewise::Bfloat16>(m);
  tiewise::define_half<tiewise::Float16>(m);
  m.def("exit_on_bus_error", &tiewise::exit_on_bus_error, "message"_a);
}
