// What a matrix of approximate scores decides, and which documents it leaves open.
//
// An approximate score v of a document has a bound e on its error: the exact score is in [v − e, v + e]. A threshold is
// an exact, rounded score t; the scores that round to t form an interval. A document whose own interval is above, inside
// or below that interval is decided. The others are *near*: they are returned, and Python scores them by the definition.
//
// v = a·scale + offset for an entry a of the matrix, and e = row_a·doc_a + row_b + doc_b. A bound that is not a number
// (infinity times zero) is taken as infinite. A row with too many near documents is skipped: Python scores all of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "machine.h"

namespace tiewise {

constexpr size_t CHUNK = 256;           // documents that share an error bound while they are counted
constexpr size_t MAX_COMPARISONS = 48;  // with more thresholds, each document is searched among them

// A matrix of approximate scores with its error bounds; scale, offset and doc_b may be null.
template <class T>
struct ApproximateScores {
  const T* data;
  size_t rows, documents, stride;
  const T *scale, *offset;             // (documents,)
  const double *row_a, *row_b;         // (rows,)
  const double *doc_a, *doc_b;         // (documents,)
  std::vector<double> max_a, max_b;    // (chunks,): the largest doc_a and doc_b of each chunk

  size_t chunks() const { return (documents + CHUNK - 1) / CHUNK; }
  size_t begin(size_t chunk) const { return chunk * CHUNK; }
  size_t size(size_t chunk) const { return std::min(CHUNK, documents - begin(chunk)); }

  void find_maxima() {
    for (size_t chunk = 0; chunk < chunks(); ++chunk) {
      const size_t first = begin(chunk), last = first + size(chunk);
      max_a.push_back(*std::max_element(doc_a + first, doc_a + last));
      max_b.push_back(doc_b ? *std::max_element(doc_b + first, doc_b + last) : 0);
    }
  }
  double error(size_t row, size_t doc) const {
    return bound(row_a[row] * doc_a[doc] + row_b[row] + (doc_b ? doc_b[doc] : 0));
  }
  double max_error(size_t row, size_t chunk) const {
    return bound(row_a[row] * max_a[chunk] + row_b[row] + max_b[chunk]);
  }
  static double bound(double error) { return std::isnan(error) ? std::numeric_limits<double>::infinity() : error; }
};

// Floating-point numbers as integers in the same order, NaN at both ends: compilers use vector instructions for the
// minimum of integers, but not for that of floating-point numbers.
template <class T>
struct OrderedBits {
  using type = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

  static type of(T x) {
    type bits;
    std::memcpy(&bits, &x, sizeof(T));
    return flip(bits);
  }
  static T number(type ordered) {
    const type bits = flip(ordered);
    T x;
    std::memcpy(&x, &bits, sizeof(T));
    return x;
  }

 private:
  static type flip(type bits) { return bits ^ ((bits >> (8 * sizeof(T) - 1)) & std::numeric_limits<type>::max()); }
};

// The scores of one chunk of one row. `minimum` and `maximum` are valid if all scores are finite.
template <class T>
struct Chunk {
  T buffer[CHUNK];
  const T* v;
  size_t size;
  bool finite;
  T minimum, maximum;
};

template <class T>
TIEWISE_INLINE void read_chunk(const ApproximateScores<T>& scores, size_t row, size_t chunk, Chunk<T>& out) {
  const size_t first = scores.begin(chunk), size = scores.size(chunk);
  const T* a = scores.data + row * scores.stride + first;
  out.size = size;
  out.v = a;
  if (scores.scale || scores.offset) {
    for (size_t i = 0; i < size; ++i) out.buffer[i] = scores.scale ? a[i] * scores.scale[first + i] : a[i];
    if (scores.offset) {
      for (size_t i = 0; i < size; ++i) out.buffer[i] += scores.offset[first + i];
    }
    out.v = out.buffer;
  }
  using Bits = typename OrderedBits<T>::type;
  Bits minimum = std::numeric_limits<Bits>::max(), maximum = std::numeric_limits<Bits>::min();
  for (size_t i = 0; i < size; ++i) {
    const Bits bits = OrderedBits<T>::of(out.v[i]);
    minimum = std::min(minimum, bits);
    maximum = std::max(maximum, bits);
  }
  const T largest = std::numeric_limits<T>::max();
  out.finite = minimum >= OrderedBits<T>::of(-largest) && maximum <= OrderedBits<T>::of(largest);
  out.minimum = OrderedBits<T>::number(minimum);
  out.maximum = OrderedBits<T>::number(maximum);
}

// The nearest T that is not below a double, or not above it. The next number is the next integer of its ordered bits:
// quicker than a call of nextafter, and without a branch.
template <class T>
TIEWISE_INLINE T upward(double x) {
  const T near = static_cast<T>(x);
  return OrderedBits<T>::number(OrderedBits<T>::of(near) + (static_cast<double>(near) < x));
}
template <class T>
TIEWISE_INLINE T downward(double x) {
  const T near = static_cast<T>(x);
  return OrderedBits<T>::number(OrderedBits<T>::of(near) - (static_cast<double>(near) > x));
}

// Thresholds of one row, ascending. Scores in [low_in, high_in] certainly round to a threshold, those outside
// [low_out, high_out] certainly do not.
struct Thresholds {
  const double *low_out, *low_in, *high_in, *high_out;
  size_t size;
};

struct NearDocuments {
  std::vector<int64_t> row, column, doc;

  void add(size_t r, size_t c, size_t d) {
    row.push_back(static_cast<int64_t>(r));
    column.push_back(static_cast<int64_t>(c));
    doc.push_back(static_cast<int64_t>(d));
  }
  void resize(size_t size) {
    row.resize(size);
    column.resize(size);
    doc.resize(size);
  }
};

struct SelectedDocuments {
  std::vector<int64_t> row, doc;
  std::vector<double> score;  // approximate

  void resize(size_t size) {
    row.resize(size);
    doc.resize(size);
    score.resize(size);
  }
};

enum class Side { above, equal, below, near };

TIEWISE_INLINE Side side_of(double v, double error, const Thresholds& t, size_t j) {
  if (!std::isfinite(v)) return Side::near;
  if (v - error > t.high_out[j]) return Side::above;
  if (v + error < t.low_out[j]) return Side::below;
  return v - error >= t.low_in[j] && v + error <= t.high_in[j] ? Side::equal : Side::near;
}

// Count the documents of one chunk above and at each threshold: compare all of them with each.
template <class T>
TIEWISE_INLINE void count_by_comparison(const ApproximateScores<T>& scores, size_t row, size_t chunk,
                                        const Chunk<T>& in, const Thresholds& t, int64_t* above, int64_t* equal,
                                        NearDocuments& near) {
  const double max_error = scores.max_error(row, chunk);
  const size_t first = scores.begin(chunk);
  for (size_t j = 0; j < t.size; ++j) {
    const T high = upward<T>(t.high_out[j] + max_error), low = downward<T>(t.low_out[j] - max_error);
    int32_t above_all = 0, not_below = 0;
    for (size_t i = 0; i < in.size; ++i) {
      above_all += in.v[i] > high;
      not_below += !(in.v[i] < low);
    }
    if (in.finite) {
      above[j] += above_all;
      if (above_all == not_below) continue;
    }
    for (size_t i = 0; i < in.size; ++i) {
      const bool is_decided = (in.v[i] < low) | (in.v[i] > high);  // no branch between: it would be unpredictable
      if (in.finite & is_decided) continue;
      switch (side_of(in.v[i], scores.error(row, first + i), t, j)) {
        case Side::above: ++above[j]; break;
        case Side::equal: ++equal[j]; break;
        case Side::below: break;
        case Side::near: near.add(row, j, first + i); break;
      }
    }
  }
}

// The same by searching each document among the thresholds; the caller sums the positions.
template <class T>
TIEWISE_INLINE void count_by_search(const ApproximateScores<T>& scores, size_t row, size_t chunk, const Chunk<T>& in,
                                    const Thresholds& t, int64_t* positions, int64_t* equal, NearDocuments& near) {
  const size_t first = scores.begin(chunk);
  for (size_t i = 0; i < in.size; ++i) {
    const double v = in.v[i], error = scores.error(row, first + i);
    const bool finite = std::isfinite(v);
    const auto* position = std::lower_bound(t.high_out, t.high_out + t.size, v - error);
    const size_t below = finite ? static_cast<size_t>(position - t.high_out) : 0;
    ++positions[below];  // it scores above this number of thresholds
    for (size_t j = below; j < t.size && (!finite || t.low_out[j] <= v + error); ++j) {
      const Side side = side_of(v, error, t, j);
      if (side == Side::equal) ++equal[j];
      if (side == Side::near) near.add(row, j, first + i);
    }
  }
}

// Count in one row, and find an upper bound of its lowest exact score. False if more than `max_near` documents are near:
// then the row has no counts and no near documents.
template <class T>
TIEWISE_INLINE bool count_row(const ApproximateScores<T>& scores, size_t row, const Thresholds& t, size_t max_near,
                              int64_t* above, int64_t* equal, double& lowest, NearDocuments& near) {
  Chunk<T> chunk;
  const size_t before = near.row.size();
  std::vector<int64_t> positions(t.size > MAX_COMPARISONS ? t.size + 1 : 0);
  for (size_t c = 0; c < scores.chunks(); ++c) {
    read_chunk(scores, row, c, chunk);
    const double max_error = scores.max_error(row, c);
    if (chunk.finite) lowest = std::min(lowest, chunk.minimum + max_error);
    if (!t.size || (chunk.finite && chunk.maximum + max_error < t.low_out[0])) continue;  // all below all thresholds
    if (t.size > MAX_COMPARISONS) {
      count_by_search(scores, row, c, chunk, t, positions.data(), equal, near);
    } else {
      count_by_comparison(scores, row, c, chunk, t, above, equal, near);
    }
    if (near.row.size() - before > max_near) {
      near.resize(before);
      std::fill(above, above + t.size, 0);
      std::fill(equal, equal + t.size, 0);
      return false;
    }
  }
  int64_t sum = 0;
  for (size_t j = positions.size(); j-- > 1;) above[j - 1] += sum += positions[j];
  return true;
}

// Documents whose exact score may be at least the limit (or, with `below`, at most), with their approximate scores;
// false, and no document, if there are more than `max_selected`.
template <class T>
TIEWISE_INLINE bool select_row(const ApproximateScores<T>& scores, size_t row, double limit, bool below,
                               size_t max_selected, SelectedDocuments& found) {
  Chunk<T> chunk;
  const size_t before = found.row.size();
  for (size_t c = 0; c < scores.chunks(); ++c) {
    read_chunk(scores, row, c, chunk);
    const double max_error = scores.max_error(row, c);
    if (chunk.finite && (below ? chunk.minimum - max_error > limit : chunk.maximum + max_error < limit)) continue;
    const T excluded = below ? upward<T>(limit + max_error) : downward<T>(limit - max_error);
    for (size_t i = 0; i < chunk.size; ++i) {
      if (below ? chunk.v[i] > excluded : chunk.v[i] < excluded) {
        if (chunk.finite) continue;
      }
      const size_t doc = scores.begin(c) + i;
      const double v = chunk.v[i], error = scores.error(row, doc);
      if (std::isfinite(v) && (below ? v - error > limit : v + error < limit)) continue;
      found.row.push_back(static_cast<int64_t>(row));
      found.doc.push_back(static_cast<int64_t>(doc));
      found.score.push_back(v);
    }
    if (found.row.size() - before > max_selected) {
      found.resize(before);
      return false;
    }
  }
  return true;
}

}  // namespace tiewise
