// What a matrix of approximate scores decides, and which documents it leaves open.
//
// An approximate score v of a document comes with a bound on its error: the exact score lies in [v − e, v + e]. A
// threshold is an exact, rounded score t; scores that round to t lie in an interval. A document whose own interval lies
// above, inside or below that interval is decided. The others are *near*: they are returned, and Python scores them by
// the definition.
//
// v = a·scale + offset for an entry a of the matrix, and e = row.a·doc.a + row.b + doc.b. A bound that is not a number
// (infinity times zero) is taken as infinite. A row with too many near documents is given up: Python scores all of them.
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

constexpr size_t CHUNK = 256;    // documents that share an error bound while they are counted
constexpr size_t MANY = 48;      // from so many thresholds a row on, each document looks up its place among them

// A matrix of approximate scores and how they become scores; scale, offset and doc_b may be null.
template <class T>
struct Scores {
  const T* data;
  size_t rows, documents, stride;
  const T *scale, *offset;             // (documents,)
  const double *row_a, *row_b;         // (rows,)
  const double *doc_a, *doc_b;         // (documents,)
  std::vector<double> most_a, most_b;  // (chunks,): the largest of each chunk

  size_t chunks() const { return (documents + CHUNK - 1) / CHUNK; }
  size_t begin(size_t chunk) const { return chunk * CHUNK; }
  size_t size(size_t chunk) const { return std::min(CHUNK, documents - begin(chunk)); }

  void find_maxima() {
    for (size_t chunk = 0; chunk < chunks(); ++chunk) {
      const size_t first = begin(chunk), last = first + size(chunk);
      most_a.push_back(*std::max_element(doc_a + first, doc_a + last));
      most_b.push_back(doc_b ? *std::max_element(doc_b + first, doc_b + last) : 0);
    }
  }
  double error(size_t row, size_t doc) const { return bound(row_a[row] * doc_a[doc] + row_b[row] + (doc_b ? doc_b[doc] : 0)); }
  double most_error(size_t row, size_t chunk) const {
    return bound(row_a[row] * most_a[chunk] + row_b[row] + most_b[chunk]);
  }
  static double bound(double error) { return std::isnan(error) ? std::numeric_limits<double>::infinity() : error; }
};

// Floating-point numbers as integers in the same order, NaN at both ends: a compiler turns the minimum of integers, but
// not that of floating-point numbers, into vector instructions.
template <class T>
struct Codes {
  using type = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

  static type of(T x) {
    type bits;
    std::memcpy(&bits, &x, sizeof(T));
    return flipped(bits);
  }
  static T number(type code) {
    const type bits = flipped(code);
    T x;
    std::memcpy(&x, &bits, sizeof(T));
    return x;
  }

 private:
  static type flipped(type bits) { return bits ^ ((bits >> (8 * sizeof(T) - 1)) & std::numeric_limits<type>::max()); }
};

// The scores of one chunk of one row. `least` and `most` are meant for chunks whose scores are all finite.
template <class T>
struct Chunk {
  T held[CHUNK];
  const T* v;
  size_t size;
  bool finite;
  T least, most;
};

template <class T>
TIEWISE_INLINE void read_chunk(const Scores<T>& scores, size_t row, size_t chunk, Chunk<T>& out) {
  const size_t first = scores.begin(chunk), size = scores.size(chunk);
  const T* a = scores.data + row * scores.stride + first;
  out.size = size;
  out.v = a;
  if (scores.scale || scores.offset) {
    for (size_t i = 0; i < size; ++i) out.held[i] = scores.scale ? a[i] * scores.scale[first + i] : a[i];
    if (scores.offset) {
      for (size_t i = 0; i < size; ++i) out.held[i] += scores.offset[first + i];
    }
    out.v = out.held;
  }
  using Code = typename Codes<T>::type;
  Code least = std::numeric_limits<Code>::max(), most = std::numeric_limits<Code>::min();
  for (size_t i = 0; i < size; ++i) {
    const Code code = Codes<T>::of(out.v[i]);
    least = std::min(least, code);
    most = std::max(most, code);
  }
  const T largest = std::numeric_limits<T>::max();
  out.finite = least >= Codes<T>::of(-largest) && most <= Codes<T>::of(largest);
  out.least = Codes<T>::number(least);
  out.most = Codes<T>::number(most);
}

// A double as the nearest T that is not below it, or not above it.
template <class T>
TIEWISE_INLINE T upward(double x) {
  const T near = static_cast<T>(x);
  return static_cast<double>(near) < x ? std::nextafter(near, std::numeric_limits<T>::infinity()) : near;
}
template <class T>
TIEWISE_INLINE T downward(double x) {
  const T near = static_cast<T>(x);
  return static_cast<double>(near) > x ? std::nextafter(near, -std::numeric_limits<T>::infinity()) : near;
}

// Thresholds of one row, ascending. Scores in [low_in, high_in] surely round to a threshold, those outside
// [low_out, high_out] surely do not.
struct Thresholds {
  const double *low_out, *low_in, *high_in, *high_out;
  size_t size;
};

struct Near {
  std::vector<int64_t> row, column, doc;

  void resize(size_t size) {
    row.resize(size);
    column.resize(std::min(column.size(), size));
    doc.resize(size);
  }
};

enum class Side { above, equal, below, near };

TIEWISE_INLINE Side side_of(double v, double error, const Thresholds& t, size_t j) {
  if (!std::isfinite(v)) return Side::near;
  if (v - error > t.high_out[j]) return Side::above;
  if (v + error < t.low_out[j]) return Side::below;
  return v - error >= t.low_in[j] && v + error <= t.high_in[j] ? Side::equal : Side::near;
}

// Count the documents of one chunk above and at each threshold by comparing all of them with each.
template <class T>
TIEWISE_INLINE void count_each(const Scores<T>& scores, size_t row, size_t chunk, const Chunk<T>& in, const Thresholds& t,
                               int64_t* above, int64_t* equal, Near& near) {
  const double most_error = scores.most_error(row, chunk);
  const size_t first = scores.begin(chunk);
  for (size_t j = 0; j < t.size; ++j) {
    const T over = upward<T>(t.high_out[j] + most_error), under = downward<T>(t.low_out[j] - most_error);
    int32_t surely = 0, maybe = 0;
    for (size_t i = 0; i < in.size; ++i) {
      surely += in.v[i] > over;
      maybe += !(in.v[i] < under);
    }
    if (in.finite && surely == maybe) {
      above[j] += surely;
      continue;
    }
    for (size_t i = 0; i < in.size; ++i) {
      if (in.finite && in.v[i] < under) continue;
      switch (side_of(in.v[i], scores.error(row, first + i), t, j)) {
        case Side::above: ++above[j]; break;
        case Side::equal: ++equal[j]; break;
        case Side::below: break;
        case Side::near:
          near.row.push_back(static_cast<int64_t>(row));
          near.column.push_back(static_cast<int64_t>(j));
          near.doc.push_back(static_cast<int64_t>(first + i));
      }
    }
  }
}

// The same by looking up the place of each document among the thresholds; places are added up by the caller.
template <class T>
TIEWISE_INLINE void count_places(const Scores<T>& scores, size_t row, size_t chunk, const Chunk<T>& in,
                                 const Thresholds& t, int64_t* places, int64_t* equal, Near& near) {
  const size_t first = scores.begin(chunk);
  for (size_t i = 0; i < in.size; ++i) {
    const double v = in.v[i], error = scores.error(row, first + i);
    const bool finite = std::isfinite(v);
    const size_t below = finite ? static_cast<size_t>(std::lower_bound(t.high_out, t.high_out + t.size, v - error) - t.high_out) : 0;
    ++places[below];  // it scores above so many thresholds
    for (size_t j = below; j < t.size && (!finite || t.low_out[j] <= v + error); ++j) {
      const Side side = side_of(v, error, t, j);
      if (side == Side::equal) ++equal[j];
      if (side != Side::near) continue;
      near.row.push_back(static_cast<int64_t>(row));
      near.column.push_back(static_cast<int64_t>(j));
      near.doc.push_back(static_cast<int64_t>(first + i));
    }
  }
}

// False if more than `most` documents are near: then the row has no counts and no near documents.
template <class T>
TIEWISE_INLINE bool count_row(const Scores<T>& scores, size_t row, const Thresholds& t, size_t most, int64_t* above,
                              int64_t* equal, Near& near) {
  Chunk<T> chunk;
  const size_t before = near.row.size();
  std::vector<int64_t> places(t.size > MANY ? t.size + 1 : 0);
  for (size_t c = 0; c < scores.chunks() && t.size; ++c) {
    read_chunk(scores, row, c, chunk);
    if (chunk.finite && chunk.most + scores.most_error(row, c) < t.low_out[0]) continue;  // all below all thresholds
    if (t.size > MANY) {
      count_places(scores, row, c, chunk, t, places.data(), equal, near);
    } else {
      count_each(scores, row, c, chunk, t, above, equal, near);
    }
    if (near.row.size() - before > most) {
      near.resize(before);
      std::fill(above, above + t.size, 0);
      std::fill(equal, equal + t.size, 0);
      return false;
    }
  }
  int64_t sum = 0;
  for (size_t j = places.size(); j-- > 1;) above[j - 1] += sum += places[j];
  return true;
}

// Documents whose exact score may be at least the limit (or, with `below`, at most), with their approximate scores;
// false, and no document, if they are more than `most`.
template <class T>
TIEWISE_INLINE bool select_row(const Scores<T>& scores, size_t row, double limit, bool below, size_t most, Near& found,
                               std::vector<double>& value) {
  Chunk<T> chunk;
  const size_t before = found.row.size();
  for (size_t c = 0; c < scores.chunks(); ++c) {
    read_chunk(scores, row, c, chunk);
    const double most_error = scores.most_error(row, c);
    if (chunk.finite && (below ? chunk.least - most_error > limit : chunk.most + most_error < limit)) continue;
    const T surely = below ? upward<T>(limit + most_error) : downward<T>(limit - most_error);
    for (size_t i = 0; i < chunk.size; ++i) {
      if (below ? chunk.v[i] > surely : chunk.v[i] < surely) {
        if (chunk.finite) continue;
      }
      const size_t doc = scores.begin(c) + i;
      const double v = chunk.v[i], error = scores.error(row, doc);
      if (std::isfinite(v) && (below ? v - error > limit : v + error < limit)) continue;
      found.row.push_back(static_cast<int64_t>(row));
      found.doc.push_back(static_cast<int64_t>(doc));
      value.push_back(v);
    }
    if (found.row.size() - before > most) {
      found.resize(before);
      value.resize(before);
      return false;
    }
  }
  return true;
}

// What the lowest exact score of a row does not exceed.
template <class T>
TIEWISE_INLINE double lowest_of_row(const Scores<T>& scores, size_t row) {
  Chunk<T> chunk;
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < scores.chunks(); ++c) {
    read_chunk(scores, row, c, chunk);
    if (chunk.finite) lowest = std::min(lowest, chunk.least + scores.most_error(row, c));
  }
  return lowest;
}

}  // namespace tiewise
