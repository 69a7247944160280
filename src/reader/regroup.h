// Texts whose rows must be brought together: lines of one query that lie apart, and ids that become codes.
#pragma once

#include <deque>
#include <string>

#include "rows.h"

namespace tiewise {

// Ids as codes, in the order of their first appearance.
class Codes {
 public:
  uint32_t code(Id id) {
    if (ids_.size() >= room_) widen();
    const uint64_t hash = hashed(id);
    const uint32_t fresh = static_cast<uint32_t>(ids_.size());
    const auto equal = [&](uint32_t other) { return hash_[other] == hash && same(ids_[other], id); };
    const uint32_t place = index_.put(hash, fresh, equal);
    if (place == fresh) keep(id, hash);
    return place;
  }

  const std::vector<Id>& ids() const { return ids_; }

 private:
  // Ids are copied, since the block they stand in goes: into stretches of memory that never move.
  void keep(Id id, uint64_t hash) {
    if (kept_.empty() || kept_.back().capacity() - kept_.back().size() < id.size()) {
      kept_.emplace_back().reserve(std::max(id.size(), size_t{1} << 16));
    }
    const char* at = kept_.back().data() + kept_.back().size();
    kept_.back() += id;
    ids_.emplace_back(at, id.size());
    hash_.push_back(hash);
  }

  void widen() {
    room_ *= 2;
    index_.reset(room_);
    for (uint32_t place = 0; place < ids_.size(); ++place) {
      index_.put(hash_[place], place, [](uint32_t) { return false; });
    }
  }

  size_t room_ = 4;
  Index index_;
  std::vector<Id> ids_;
  std::vector<uint64_t> hash_;
  std::deque<std::string> kept_;
};

// The lines of a text that are rows, each with its query.
template <class Take>
void each_row(Id text, const Blanks& blank, Take take) {
  while (!text.empty()) {
    const Id line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    const char *from = std::find_if_not(line.begin(), line.end(), blank), *stop = std::find_if(from, line.end(), blank);
    if (from < stop && *from != '#') take(line, Id(from, stop - from));
  }
}

// Put a line behind others; the last one of a file may go without a line break.
inline void put_line(std::string& lines, Id line) {
  lines += line;
  if (line.back() != '\n') lines += '\n';
}

// The rows of a text in so many shares, all those of a query in the same one.
inline std::vector<std::string> split(Id text, size_t shares, bool tabs) {
  std::vector<std::string> found(shares);
  each_row(text, Blanks(tabs), [&](Id line, Id query) { put_line(found[(hashed(query) >> 7) % shares], line); });
  return found;
}

// Rows brought together by query.
class Regrouped {
 public:
  explicit Regrouped(bool tabs) : blank_(tabs) {}

  void add(Id text) {
    each_row(text, blank_, [&](Id line, Id query) {
      const uint32_t place = queries_.code(query);
      if (place == lists_.size()) lists_.emplace_back();
      put_line(lists_[place], line);
    });
  }

  // The lists that are next, so many bytes of them or a little more; nothing once all have been handed out.
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
