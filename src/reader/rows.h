// Rows: a block of a run as one list a query, each row a document id and a number. Text is cut where it lies: ids are
// views into the block, and nothing is copied but the numbers.
#pragma once

#include "text.h"

namespace tiewise {

// Which column of a line holds what (−1: none), and what its number is: a score, a label, or a rank counted from 1.
struct Layout {
  int columns, query, doc, number, rank, tag;
  char kind;  // 's', 'l' or 'r'
  bool tabs;
};

struct Rows {
  std::vector<Id> queries;     // (n_lists,): a query whose rows lie apart has several
  std::vector<size_t> offsets{0};  // (n_lists + 1,)
  std::vector<Id> docs;        // (n_rows,)
  std::vector<double> value;   // (n_rows,)
  std::vector<int64_t> rank;   // (n_rows,) if all are whole numbers, else empty
  std::vector<uint32_t> line;  // (n_rows,): the line of each row, counted from 0
  std::vector<uint32_t> odd;   // lines that are not plain: wrong, or in need of a closer look
  size_t lines = 0;
  Id tag;
  bool one_tag = true;
  bool ranked = false;

  void parse(Id text, const Layout& layout, bool with_rank);

  void clear() {
    queries.clear(), docs.clear(), value.clear(), rank.clear(), line.clear(), odd.clear();
    offsets.assign(1, 0);
    lines = 0, tag = Id(), one_tag = true, ranked = false;
  }

  void add(Id query, Id doc, double number) {
    if (queries.empty() || !same(queries.back(), query)) {
      queries.push_back(query);
      offsets.push_back(docs.size());
    }
    docs.push_back(doc);
    value.push_back(number);
    offsets.back() = docs.size();
  }

 private:
  template <int columns>
  void parse(Id text, const Layout&);
  template <int columns>
  bool read_plain(const char* start, const char** ends, const Layout&, const char* limit);
  void read_line(const char* start, const char** ends, const char** last, const Layout&, const char* limit, bool nul);
  bool read_row(const Id* cells, const Layout&, const char* limit);
};

// The text is looked at in windows that stay in the nearest cache: where its columns end is noted for a window, 64 bytes
// at a time, and then its lines are read.
template <int columns>
void Rows::parse(Id text, const Layout& layout) {
  static constexpr size_t window = 1 << 12;
  const Blanks blank{layout.tabs};
  const char *at = text.data(), *end = at + text.size(), *start = at;  // of the line
  const bool nul = std::memchr(at, 0, text.size()) != nullptr;
  std::vector<const char*> ends;  // of columns, in lines that were not read yet
  size_t many = 0, looked = 0;    // of them; and how many of them end no line
  while (at < end) {
    if (ends.size() < many + window + 64) ends.resize(2 * many + window + 64);
    const char* stop = static_cast<size_t>(end - at) > window ? at + window : end;
    for (; stop - at >= 64; at += 64) many += bits_of(blanks_of(at, blank), at, &ends[many]);
    for (; stop == end && at < end; ++at) {
      if (blank(*at)) ends[many++] = at;
    }
    size_t first = 0;
    while (looked < many) {
      if (looked == first && first + columns <= many && !nul && read_plain<columns>(start, &ends[first], layout, end)) {
        first += columns;
      } else {
        while (looked < many && *ends[looked] != '\n') ++looked;
        if (looked == many) break;
        read_line(start, &ends[first], &ends[looked] + 1, layout, end, nul);
        first = looked + 1;
      }
      start = ends[first - 1] + 1;
      looked = first;
    }
    std::copy(ends.begin() + first, ends.begin() + many, ends.begin());
    many -= first, looked -= first;
  }
  if (start < end) {
    ends[many++] = end;
    read_line(start, ends.data(), ends.data() + many, layout, end, nul);
  }
  if (!ranked) rank.clear();
}

inline void Rows::parse(Id text, const Layout& layout, bool with_rank) {
  clear();
  ranked = with_rank && layout.rank >= 0;
  switch (layout.columns) {
    case 3: return parse<3>(text, layout);
    case 4: return parse<4>(text, layout);
    default: return parse<6>(text, layout);
  }
}

// Read the row whose columns end at `ends`, with one blank between them as in almost every line; false if it is not so,
// or if the row is not plain.
template <int columns>
bool Rows::read_plain(const char* start, const char** ends, const Layout& layout, const char* limit) {
  bool plain = ends[0] > start && *ends[columns - 1] == '\n' && *start != '#';
  for (int at = 1; at < columns; ++at) plain &= (ends[at] > ends[at - 1] + 1) & (*ends[at - 1] != '\n');
  if (!plain) return false;
  Id cells[columns] = {Id(start, ends[0] - start)};
  for (int at = 1; at < columns; ++at) cells[at] = Id(ends[at - 1] + 1, ends[at] - ends[at - 1] - 1);
  if (!read_row(cells, layout, limit)) return false;
  line.push_back(static_cast<uint32_t>(lines++));
  return true;
}

// Read any line.
inline void Rows::read_line(const char* start, const char** ends, const char** last, const Layout& layout,
                            const char* limit, bool nul) {
  std::vector<Id> cells;
  const char* cell = start;
  for (; ends < last; cell = *ends++ + 1) {
    if (*ends > cell) cells.emplace_back(cell, *ends - cell);
  }
  const uint32_t here = static_cast<uint32_t>(lines++);
  if (nul && std::memchr(start, 0, last[-1] - start)) {
    odd.push_back(here);
  } else if (!cells.empty() && cells[0][0] != '#') {
    const bool fits = static_cast<int>(cells.size()) == layout.columns && read_row(cells.data(), layout, limit);
    (fits ? line : odd).push_back(here);
  }
}

inline bool Rows::read_row(const Id* cells, const Layout& layout, const char* limit) {
  double number = 0;
  if (!tiewise::number(cells[layout.number], limit, number)) return false;
  if (layout.kind == 'l' && !std::isfinite(number)) return false;
  if (layout.kind == 'r') {  // counted from 1; rank 1 scores highest
    if (!(number >= 1 && number < 9007199254740992.0 && number == std::floor(number))) return false;
    number = -number;
  }
  add(cells[layout.query], cells[layout.doc], number);
  if (ranked) {
    rank.emplace_back();
    ranked = integer(cells[layout.rank], rank.back());
  }
  if (layout.tag >= 0 && one_tag) {
    if (tag.data() == nullptr) tag = cells[layout.tag];
    one_tag = same(tag, cells[layout.tag]);
  }
  return true;
}

// Where the last list of a text begins: the first of the lines at its end that share their query; 0 if all do. The
// text begins anywhere in a line; what follows its last line break counts as part of the last list.
inline size_t last_list(Id text) {
  const Blanks blank{false};
  size_t found = 0;
  Id query;
  for (size_t end = text.rfind('\n'); end != Id::npos && end > 0;) {
    const size_t before = text.rfind('\n', end - 1);
    if (before == Id::npos) return 0;  // the first line may not be whole
    size_t at = before + 1;
    while (at < end && blank(text[at])) ++at;
    size_t stop = at;
    while (stop < end && !blank(text[stop])) ++stop;
    const Id here = text.substr(at, stop - at);
    if (!here.empty() && here[0] != '#') {
      if (query.data() != nullptr && here != query) return found;
      query = here;
      found = before + 1;
    }
    end = before;
  }
  return 0;
}

}  // namespace tiewise
