// Sums over the dimensions of pairs of vectors, as the definition of a score prescribes.
//
// S(x, y) = Σ_k double(x_k)·double(y_k), added in the order k = 0, 1, 2, …, starting from +0. Each product is rounded to
// double (it is exact for float operands) and so is each sum, so the result depends on the two vectors alone: not on
// the CPU, on neighbouring pairs or on the number of threads. This file must be compiled without contraction
// (-ffp-contract=off), because a fused multiply-add would skip the rounding of a product of doubles.
//
// One sum is a chain of dependent additions, and each of them takes several cycles. Therefore LANES pairs are summed side
// by side. This does not change the order of additions within a pair.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine.h"

namespace tiewise {

constexpr size_t LANES = 8;

struct Product {
  static double term(double x, double y) { return x * y; }
};

struct SquaredDifference {
  static double term(double x, double y) {
    const double difference = x - y;
    return difference * difference;
  }
};

// The sums of LANES pairs; x[u] and y[u] point to the vectors of pair u.
template <class Term, class T>
inline void sum_lanes(const T* const* x, const T* const* y, size_t dims, double* sum) {
  for (size_t k = 0; k < dims; ++k) {
    for (size_t u = 0; u < LANES; ++u) {
      sum[u] += Term::term(static_cast<double>(x[u][k]), static_cast<double>(y[u][k]));
    }
  }
}

// The same for pairs that share the vector x, which is already in double.
template <class Term, class T>
inline void sum_lanes_shared(const double* x, const T* const* y, size_t dims, double* sum) {
  for (size_t k = 0; k < dims; ++k) {
    for (size_t u = 0; u < LANES; ++u) sum[u] += Term::term(x[k], static_cast<double>(y[u][k]));
  }
}

// Σ x_k·y_k and Σ y_k·y_k in float, added in any order: only for approximate scores and bounds.
struct FastSums {
  float dot, square;
};
TIEWISE_INLINE FastSums fast_sums(const float* x, const float* y, size_t dims) {
  float dot = 0, square = 0;
#pragma omp simd reduction(+ : dot, square)
  for (size_t k = 0; k < dims; ++k) {
    dot += x[k] * y[k];
    square += y[k] * y[k];
  }
  return {dot, square};
}

// out[p] is the sum of the terms of row i[p] of x and row j[p] of y, for pairs first ≤ p < last.
template <class Term, class T>
void sum_pairs(const T* x, const T* y, size_t dims, const int64_t* i, const int64_t* j, size_t first, size_t last,
               double* out) {
  const T *left[LANES], *right[LANES];
  std::vector<double> shared(dims);
  const T* shared_row = nullptr;  // the row that `shared` is a copy of
  for (size_t p = first; p < last; p += LANES) {
    double sum[LANES] = {};
    bool same = true;
    for (size_t u = 0; u < LANES; ++u) {
      const size_t at = p + u < last ? p + u : last - 1;  // an incomplete last group repeats its last pair
      left[u] = x + static_cast<size_t>(i[at]) * dims;
      right[u] = y + static_cast<size_t>(j[at]) * dims;
      same = same && left[u] == left[0];
    }
    if (same) {
      if (shared_row != left[0]) std::copy(left[0], left[0] + dims, shared.begin());
      shared_row = left[0];
      sum_lanes_shared<Term>(shared.data(), right, dims, sum);
    } else {
      sum_lanes<Term>(left, right, dims, sum);
    }
    for (size_t u = 0; u < LANES && p + u < last; ++u) out[p + u] = sum[u];
  }
}

}  // namespace tiewise
