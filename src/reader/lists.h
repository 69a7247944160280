// `Lists`: ranked lists that come one by one, counted at once for all orders of ties, for the scores as they are and for
// scores rounded to float32. The arrays are those of `TieGroups`, along the judgments.
//
// A dictionary has no document twice, and finds one faster than we could. So judged documents are looked up there, and
// only the ids of documents that are tied with one of them are read.
#pragma once

#include <memory>

#include "../measures/statistics.h"
#include "count.h"

namespace tiewise {

// The tie groups of one score type.
struct View {
  std::vector<double> score, lowest;
  std::vector<int64_t> start, size, desc, asc, given, lowest_size;

  View(size_t judged, size_t queries)
      : score(judged, std::nan("")), lowest(queries, std::nan("")), start(judged), size(judged), desc(judged),
        asc(judged), given(judged), lowest_size(queries) {}

  Groups groups(bool of_desc, bool of_asc, bool of_given) {
    const auto data = [](bool needed, std::vector<int64_t>& order) { return needed ? order.data() : nullptr; };
    return {score.data(),        start.data(),      size.data(), lowest.data(), lowest_size.data(), data(of_desc, desc),
            data(of_asc, asc), data(of_given, given), nullptr};
  }
};

class Lists {
 public:
  // `pool`: all judged documents, if `judged` has only those of some labels. Scores are counted as they are, or as
  // `float32`, or both, and for some orders.
  Lists(Judgments& judged, Judgments* pool, bool exact, bool float32, bool desc, bool asc, bool given)
      : first(judged.docs.size(), judged.queries.size()), second(exact && float32 ? first : View(0, 0)),
        length(judged.queries.size()), present(judged.queries.size()), found(judged.queries.size()),
        has_self(judged.queries.size()), rounds_(!exact), finds_rows_(given), counts_both_(exact && float32), judged_(judged), pool_(pool),
        row_(judged.docs.size(), -1), counter_(*this, first.groups(desc, asc, given)),
        second_counter_(*this, second.groups(desc, asc, given)) {}
  virtual ~Lists() = default;

  // The tie groups of one score type.
  View& view(bool float32) { return float32 && counts_both_ ? second : first; }

  // The scores of a list. Then it is counted.
  std::vector<double>& values() { return rows_.value; }

  // Count the list of a query, which is its only one. Returns whether the query is judged.
  bool count(Id query, bool self) {
    place_ = judged_.place(query);
    rows_.docs.resize(rows_.value.size());
    rows_.offsets.assign({0, rows_.value.size()});
    if (rounds_) {
      for (double& one : rows_.value) one = static_cast<float>(one);
    }
    if (place_ >= 0) {
      for (int64_t doc = judged_.offsets[place_]; doc < judged_.offsets[place_ + 1]; ++doc) {
        const double score = score_of(judged_, doc);
        first.score[doc] = rounds_ ? static_cast<float>(score) : score;
        if (!std::isnan(score)) found[place_] = true;
      }
      for (int64_t doc = pool_ ? pool_->offsets[place_] : 0; pool_ && !found[place_] && doc < pool_->offsets[place_ + 1]; ++doc) {
        found[place_] = !std::isnan(score_of(*pool_, doc));
      }
      length[place_] = static_cast<int64_t>(rows_.value.size());
      present[place_] = true, has_self[place_] = self;
      places.push_back(place_);
    }
    counter_.count_list(0, place_, rows_.value.data());
    if (place_ >= 0 && counts_both_) second_counter_.round_list(counter_, place_, float32_);
    ++n_lists, n_rows += static_cast<int64_t>(rows_.value.size());
    return place_ >= 0;
  }

  std::array<int64_t, 6> totals() const { return counter_.totals(); }

  // The statistics of some measures: see `compute_all`.
  void compute(const std::vector<const Tables*>& measures, View& view, const int64_t* before, int64_t depth, bool complete,
               bool moments, double* out, uint8_t* reached) const {
    const size_t queries = length.size();
    std::vector<int64_t> ranks(length), last_start(length);
    for (size_t query = 0; query < queries; ++query) {
      last_start[query] -= view.lowest_size[query];
      if (depth) ranks[query] = std::min(ranks[query], depth);
    }
    const auto truncated = std::make_unique<bool[]>(queries);
    if (!complete) find_truncated(view, truncated.get());
    compute_all(measures,
                {queries, judged_.offsets.data(), view.start.data(), view.size.data(), before, ranks.data(),
                 last_start.data(), view.lowest_size.data(), truncated.get()},
                moments, out, reached);
  }

  View first, second;                   // of the scores as they are, if these are counted; rounded, if both are
  std::vector<int64_t> length, places;  // by query; the places of judged queries in the order of the lists
  std::vector<uint8_t> present, found, has_self;
  int64_t n_lists = 0, n_rows = 0;

 protected:
  // Of the list that is counted: the score of a judged document, NaN if there is none, and the id of a row.
  virtual double score_of(Judgments& judged, int64_t doc) = 0;
  virtual Id id_of(size_t row) = 0;

 private:
  class ListCounter : public Counter {
   public:
    ListCounter(Lists& lists, Groups groups) : Counter(lists.rows_, lists.judged_, lists.row_.data(), true, true, groups), lists_(lists) {}

   protected:
    void find_rows(const std::vector<int64_t>& rows) override { lists_.find_rows(rows); }

   private:
    Lists& lists_;
  };

  void find_rows(const std::vector<int64_t>& rows) {
    for (const int64_t row : rows) {
      rows_.docs[row] = id_of(static_cast<size_t>(row));
      const int64_t doc = finds_rows_ ? judged_.find(place_, rows_.docs[row]) : -1;
      if (doc >= 0) row_[doc] = row;
    }
  }

  // Whether each list may have been cut among documents tied with its last one: see `TieGroups.may_be_truncated`.
  void find_truncated(const View& view, bool* truncated) const {
    const size_t queries = length.size();
    int64_t longest = 1, many = 0, lists = 0;
    for (const int64_t one : length) longest = std::max(longest, one);
    for (size_t query = 0; query < queries; ++query) many += length[query] == longest, lists += present[query];
    const bool looks_truncated = many >= 3 && 10 * many >= 9 * lists;
    for (size_t query = 0; query < queries; ++query) {
      const bool goes_on = looks_truncated && length[query] == longest && !holds_all_judged(view, query);
      truncated[query] = view.lowest_size[query] > 1 || goes_on;
    }
  }

  // Whether a list has the judged documents and no others, like reranked candidates.
  bool holds_all_judged(const View& view, size_t query) const {
    const std::vector<int64_t>& all = pool_ ? pool_->offsets : judged_.offsets;
    if (all[query + 1] - all[query] != length[query]) return false;
    const auto first = view.size.begin() + judged_.offsets[query], last = view.size.begin() + judged_.offsets[query + 1];
    return std::all_of(first, last, [](int64_t size) { return size > 0; });
  }

  const bool rounds_, finds_rows_, counts_both_;
  Judgments& judged_;
  Judgments* pool_;
  Rows rows_;
  int64_t place_ = -1;
  std::vector<int64_t> row_;  // of tied judged documents, if an order needs it
  std::vector<double> float32_;
  ListCounter counter_, second_counter_;
};

}  // namespace tiewise
