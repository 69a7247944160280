// Codes for ids, and grouping by query for files in which the rows of a query are not contiguous.
#pragma once

#include <deque>
#include <string>

#include "rows.h"

namespace tiewise {

// Ids as codes, in the order of their first appearance.
class Codes {
 public:
  uint32_t code(Id id) {
    if (ids_.size() == capacity_) grow();
    const uint64_t hash = hashed(id);
    const uint32_t fresh = static_cast<uint32_t>(ids_.size());
    const auto equal = [&](uint32_t other) { return hash_[other] == hash && same(ids_[other], id); };
    const uint32_t place = index_.put(hash, fresh, equal);
    if (place == fresh) keep(id, hash);
    return place;
  }

  const std::vector<Id>& ids() const { return ids_; }

 private:
  // Double the space: it follows the number of distinct ids, not the number of rows.
  void grow() {
    index_.reset(capacity_ *= 2);
    for (uint32_t place = 0; place < ids_.size(); ++place) {
      index_.put(hash_[place], place, [](uint32_t) { return false; });
    }
  }

  // Copy an id, since its block is reused, to memory that never moves.
  void keep(Id id, uint64_t hash) {
    if (memory_.empty() || memory_.back().capacity() - memory_.back().size() < id.size()) {
      memory_.emplace_back().reserve(std::max(id.size(), size_t{1} << 16));
    }
    const char* at = memory_.back().data() + memory_.back().size();
    memory_.back() += id;
    ids_.emplace_back(at, id.size());
    hash_.push_back(hash);
  }

  size_t capacity_ = 4;
  Index index_;
  std::vector<Id> ids_;
  std::vector<uint64_t> hash_;
  std::deque<std::string> memory_;
};

// Call `take(line, query)` for each row of a text.
template <class Take>
void for_each_row(Id text, const Blanks& blank, Take take) {
  while (!text.empty()) {
    const Id line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    const char* const end = line.data() + line.size();  // not line.end(), which is no pointer in every library
    const char *from = std::find_if_not(line.data(), end, blank), *stop = std::find_if(from, end, blank);
    if (from < stop && *from != '#') take(line, Id(from, stop - from));
  }
}

// Append a line. The last line of a file may have no line break.
inline void append_line(std::string& lines, Id line) {
  lines += line;
  if (line.back() != '\n') lines += '\n';
}

// Distribute the rows of a text to shares; all rows of a query are in the same share, whatever the process.
inline std::vector<std::string> split(Id text, size_t shares, bool tabs) {
  std::vector<std::string> found(shares);
  for_each_row(text, Blanks(tabs), [&](Id line, Id query) { append_line(found[(hashed(query, fixed) >> 7) % shares], line); });
  return found;
}

// Lines grouped by query, queries in the order of their first appearance.
class Regrouped {
 public:
  explicit Regrouped(bool tabs) : blank_(tabs) {}

  void add(Id text) {
    for_each_row(text, blank_, [&](Id line, Id query) {
      const uint32_t place = queries_.code(query);
      if (place == lists_.size()) lists_.emplace_back();
      append_line(lists_[place], line);
    });
  }

  // The next lists, at least this many bytes if there are as many; empty at the end.
  std::string next(size_t bytes) {
    std::string lists;
    for (; !lists_.empty() && lists.size() < bytes; lists_.pop_front()) lists += lists_.front();
    return lists;
  }

 private:
  const Blanks blank_;
  Codes queries_;
  std::deque<std::string> lists_;
};

}  // namespace tiewise
