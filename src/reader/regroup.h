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

// The lines of some of the queries of a file, brought together: as many passes as there are shares read it all, so
// that memory is bounded by one share.
class Regrouped {
 public:
  Regrouped(uint32_t share, uint32_t shares, bool tabs) : share_(share), shares_(shares), blank_(tabs) {}

  void add(Id text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
      line(text.substr(0, end));
      text.remove_prefix(end);
    }
  }

  // The lists that are next, so many bytes of them or a little more; nothing once all have been handed out.
  std::string next(size_t bytes) {
    std::string lists;
    for (; !lists_.empty() && lists.size() < bytes; lists_.pop_front()) lists += lists_.front();
    return lists;
  }

 private:
  void line(Id text) {
    size_t at = 0;
    while (at < text.size() && blank_(text[at])) ++at;
    size_t stop = at;
    while (stop < text.size() && !blank_(text[stop])) ++stop;
    const Id query = text.substr(at, stop - at);
    if (query.empty() || query[0] == '#' || (hashed(query) >> 7) % shares_ != share_) return;
    const uint32_t place = queries_.code(query);
    if (place == lists_.size()) lists_.emplace_back();
    lists_[place] += text;
    if (text.back() != '\n') lists_[place] += '\n';
  }

  const uint32_t share_, shares_;
  const Blanks blank_;
  Codes queries_;
  std::deque<std::string> lists_;
};

}  // namespace tiewise
