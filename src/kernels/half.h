// Rows in bfloat16 and float16, converted to float. Both types fit into float, so nothing is rounded.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "machine.h"

#ifdef TIEWISE_F16C
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tiewise {

// The upper half of a float.
struct Bfloat16 {
  uint16_t bits;
};

// 5 bits of exponent, 10 of fraction.
struct Float16 {
  uint16_t bits;
};

TIEWISE_INLINE float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

TIEWISE_INLINE float to_float(Bfloat16 x) { return from_bits(static_cast<uint32_t>(x.bits) << 16); }

// Without branches, for vector instructions. A subnormal number gets an exponent, and the 1 before its fraction that
// comes with it is subtracted.
TIEWISE_INLINE float to_float(Float16 x) {
  constexpr int32_t INFINITE = 0x7c00 << 13, NORMAL = 0x0400 << 13, BIAS = 112 << 23;  // 127 − 15
  const int32_t size = (x.bits & 0x7fff) << 13;
  const int32_t exponent = BIAS + (size < NORMAL ? NORMAL : size >= INFINITE ? BIAS : 0);
  const float surplus = from_bits(size < NORMAL ? BIAS + NORMAL : 0);
  const float magnitude = from_bits(static_cast<uint32_t>(size + exponent)) - surplus;
  return std::copysign(magnitude, from_bits((x.bits & 0x8000u) << 16));
}

TIEWISE_CLONES inline void widen_row(const Bfloat16* row, size_t n, float* out) {
  for (size_t k = 0; k < n; ++k) out[k] = to_float(row[k]);
}

#ifdef TIEWISE_F16C
inline bool has_f16c() {
  unsigned a, b, c, d;
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

// Convert eight numbers at a time; returns how many were converted.
__attribute__((target("avx,f16c"))) inline size_t widen_f16c(const Float16* row, size_t n, float* out) {
  size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + k));
    _mm256_storeu_ps(out + k, _mm256_cvtph_ps(eight));
  }
  return k;
}
#endif

inline void widen_row(const Float16* row, size_t n, float* out) {
  size_t k = 0;
#ifdef TIEWISE_F16C
  static const bool fast = has_f16c();
  if (fast) k = widen_f16c(row, n, out);
#endif
  for (; k < n; ++k) out[k] = to_float(row[k]);
}

}  // namespace tiewise
