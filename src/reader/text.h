// Bytes: where the blanks are, what a number says, and how an id is hashed and ordered.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define TIEWISE_SSE2 1
#endif

namespace tiewise {

using Id = std::string_view;

// What ends a column: any blank, or only tabs and line ends, so that ids may hold spaces.
struct Blanks {
  bool tabs;

  bool operator()(unsigned char byte) const {
    return tabs ? byte == '\t' || byte == '\n' || byte == '\r' : byte == ' ' || (byte >= 9 && byte <= 13);
  }
};

// A bit for each of 64 bytes: set in `blank` if the byte ends a column, in `newline` if it ends a line. `wide`: one of
// them is not ASCII.
struct Bits {
  uint64_t blank = 0, newline = 0;
  bool wide = false;

  Bits(const char* bytes, Blanks blanks) {
#ifdef TIEWISE_SSE2
    __m128i all = _mm_setzero_si128();
    for (int quarter = 0; quarter < 4; ++quarter) {
      const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * quarter));
      const auto equal = [&](char byte) { return _mm_cmpeq_epi8(sixteen, _mm_set1_epi8(byte)); };
      const auto bits = [&](__m128i found) {
        return static_cast<uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(found))) << (16 * quarter);
      };
      all = _mm_or_si128(all, sixteen);
      const __m128i ends = equal('\n');
      newline |= bits(ends);
      if (blanks.tabs) {
        blank |= bits(_mm_or_si128(_mm_or_si128(equal('\t'), equal('\r')), ends));
      } else {  // 9 to 13 are those that are at most 4 after taking 9, without sign
        const __m128i less = _mm_sub_epi8(sixteen, _mm_set1_epi8(9));
        blank |= bits(_mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(less, _mm_set1_epi8(4)), less), equal(' ')));
      }
    }
    wide = _mm_movemask_epi8(all) != 0;
#else
    for (int place = 0; place < 64; ++place) {
      blank |= static_cast<uint64_t>(blanks(bytes[place])) << place;
      newline |= static_cast<uint64_t>(bytes[place] == '\n') << place;
      wide |= (bytes[place] & 0x80) != 0;
    }
#endif
  }
};

inline int lowest_bit(uint64_t mask) {
#if defined(__GNUC__)
  return __builtin_ctzll(mask);
#else
  int place = 0;
  while (!(mask >> place & 1)) ++place;
  return place;
#endif
}

inline uint64_t word(const char* at, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

// Whether two ids are equal, without a call for the short ones that most are.
inline bool same(Id left, Id right) {
  const size_t size = left.size();
  if (size != right.size()) return false;
  const char *a = left.data(), *b = right.data();
  const auto ends_differ = [&](size_t bytes) {  // the first and the last so many, which may overlap
    return (word(a, bytes) ^ word(b, bytes)) | (word(a + size - bytes, bytes) ^ word(b + size - bytes, bytes));
  };
  if (size > 16) return std::memcmp(a, b, size) == 0;
  if (size >= 8) return !ends_differ(8);
  if (size >= 4) return !ends_differ(4);
  return size == 0 || !((a[0] ^ b[0]) | (a[size / 2] ^ b[size / 2]) | (a[size - 1] ^ b[size - 1]));
}

inline bool little_endian() {
  const uint16_t one = 1;
  return *reinterpret_cast<const unsigned char*>(&one) == 1;
}

// The number that one to eight digits say, of which the first is the lowest byte; false if one is no digit.
inline bool eight_digits(uint64_t digits, size_t many, uint64_t& value) {
  digits = (digits << (64 - 8 * many)) | (many < 8 ? 0x3030303030303030u >> (8 * many) : 0);  // zeros go first
  const uint64_t high = 0xF0F0F0F0F0F0F0F0u;
  if (((digits & high) | (((digits + 0x0606060606060606u) & high) >> 4)) != 0x3333333333333333u) return false;
  digits = (digits & 0x0F0F0F0F0F0F0F0Fu) * 2561 >> 8;  // pairs, then fours, then all eight
  digits = (digits & 0x00FF00FF00FF00FFu) * 6553601 >> 16;
  value = (digits & 0x0000FFFF0000FFFFu) * 42949672960001u >> 32;
  return true;
}

// The number that a text says, correctly rounded; false if it says none, or one that needs a closer look (NaN, a
// number too large or too small for float64, digits that are not ASCII). Bytes up to `limit` may be looked at.
inline bool number(Id text, const char* limit, double& value) {
  static constexpr double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
  const char *at = text.data(), *end = at + text.size();
  const bool negative = at < end && *at == '-';
  at += at < end && (*at == '-' || *at == '+');
  // Up to 15 digits are exact as a float64, as a power of ten is: their quotient is rounded once, hence correctly.
  const char* first = at;
  uint64_t digits = 0, more = 0;
  for (; at < end && static_cast<unsigned char>(*at - '0') < 10; ++at) digits = digits * 10 + (*at - '0');
  const int64_t whole = at - first, places = end - at - 1;  // digits before the point, and behind it
  if (whole > 0 && whole < 16 && (places < 0 || (places == 0 && *at == '.'))) {
    value = static_cast<double>(digits);
  } else if (whole > 0 && whole < 8 && *at == '.' && places <= 8 && limit - at > 8 &&
             little_endian() && eight_digits(word(at + 1, 8), places, more)) {
    value = (static_cast<double>(digits) * powers[places] + static_cast<double>(more)) / powers[places];
  } else {
#ifdef __cpp_lib_to_chars
    if (first == end || *first == '-' || *first == '+') return false;
    const auto done = std::from_chars(first, end, value);
    const bool rounded = at == end && value >= 9007199254740992.0;  // an integer from 2^53 on
    if (done.ec != std::errc() || done.ptr != end || std::isnan(value) || rounded) return false;
#else
    return false;  // a library without it: Python has a closer look
#endif
  }
  value = negative ? -value : value;
  return true;
}

inline bool integer(Id text, int64_t& value) {
  const char *at = text.data(), *end = at + text.size();
  if (at < end && *at == '+' && end - at > 1 && at[1] != '-') ++at;
  const auto done = std::from_chars(at, end, value);
  return done.ec == std::errc() && done.ptr == end;
}

inline uint64_t mixed(uint64_t left, uint64_t right) {
#if defined(__SIZEOF_INT128__)
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(left) * right;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
  uint64_t value = (left ^ (left >> 29)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ right) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
#endif
}

inline uint64_t hashed(Id id) {
  const char* at = id.data();
  size_t left = id.size();
  uint64_t value = 0x9E3779B97F4A7C15u ^ left;
  for (; left > 16; at += 8, left -= 8) value = mixed(value ^ word(at, 8), 0xD6E8FEB86659FD93u);
  // What is left is read as two words, which overlap unless there are sixteen bytes.
  const size_t size = left >= 8 ? 8 : left >= 4 ? 4 : 0;
  const uint64_t low = size == 8 ? word(at, 8) : size == 4 ? word(at, 4) : word(at, left);
  const uint64_t high = size == 8 ? word(at + left - 8, 8) : size == 4 ? word(at + left - 4, 4) : 0;
  return mixed(value ^ low, 0xA0761D6478BD642Fu ^ high);
}

inline bool is_ascii(Id text) {
  uint64_t any = 0;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) any |= word(text.data() + at, 8);
  return !((any | word(text.data() + at, text.size() - at)) & 0x8080808080808080u);
}

// Finds ids among many: a table of places with open addressing.
class Index {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  // Make room for so many ids and forget those of before.
  void reset(size_t many) {
    int bits = 4;
    while ((size_t{1} << bits) < 2 * many) ++bits;
    shift_ = 64 - bits;
    slots_.assign(size_t{1} << bits, none);
  }

  // The place of an id that `same(place)` knows to be equal; if there is none, `place` is put there.
  template <class Same>
  uint32_t put(uint64_t hash, uint32_t place, Same same) {
    uint32_t& slot = slots_[find(hash, same)];
    if (slot == none) slot = place;
    return slot;
  }

  template <class Same>
  uint32_t at(uint64_t hash, Same same) const {
    return slots_[find(hash, same)];
  }

 private:
  template <class Same>
  size_t find(uint64_t hash, Same same) const {
    size_t at = hash >> shift_;
    while (slots_[at] != none && !same(slots_[at])) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  int shift_ = 60;
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(16, none);
};

}  // namespace tiewise
