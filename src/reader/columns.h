// Arrow columns: ids are read where Arrow keeps them, without a copy.
#pragma once

#include <stdexcept>

#include "rows.h"

namespace tiewise {

// The bytes of all ids, their offsets (32 or 64 bits), and the code of each row if the column is dictionary-encoded.
struct Column {
  Id bytes;
  const int32_t* narrow = nullptr;
  const int64_t* broad = nullptr;
  const int32_t* codes = nullptr;
  size_t ids = 0, rows = 0;

  TIEWISE_INLINE Id id(size_t row) const {
    const size_t at = codes ? static_cast<uint32_t>(codes[row]) : row;
    if (at >= ids) throw std::out_of_range("a code without an id");
    const size_t from = narrow ? narrow[at] : broad[at], to = narrow ? narrow[at + 1] : broad[at + 1];
    if (from > to || to > bytes.size()) throw std::out_of_range("an id beyond its column");
    return Id(bytes.data() + from, to - from);
  }

  // Whether an id of these rows may contain other characters than ASCII.
  bool non_ascii(size_t first, size_t last) const {
    if (first == last) return false;
    if (codes) {
      while (first < last && is_ascii(id(first))) ++first;
      return first < last;
    }
    const char* begin = id(first).data();
    const Id end = id(last - 1);
    if (end.data() < begin) throw std::out_of_range("ids that do not follow each other");
    return !is_ascii(Id(begin, end.data() + end.size() - begin));
  }

  // Where the last list of these rows begins.
  size_t last_list(size_t first, size_t last) const {
    while (last > first + 1 && same(id(last - 2), id(last - 1))) --last;
    return last > first ? last - 1 : first;
  }
};

// Append rows of columns. A row whose score is NaN is irregular.
inline void append(Rows& rows, const Column& queries, const Column& docs, const double* score, size_t first, size_t last) {
  size_t at = rows.docs.size();
  rows.non_ascii |= queries.non_ascii(first, last) || docs.non_ascii(first, last);
  rows.docs.resize(at + last - first);
  rows.value.insert(rows.value.end(), score + first, score + last);
  for (size_t row = first; row < last; ++row, ++at) {
    if (std::isnan(score[row])) rows.irregular.push_back(static_cast<uint32_t>(at));
    rows.start_list(queries.id(row), at);
    rows.docs[at] = docs.id(row);
  }
}

}  // namespace tiewise
