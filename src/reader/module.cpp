// tiewise._reader: from the bytes of a run to the tie groups of its judged documents, in one pass.
//
// A measure needs two numbers for a judged document: the documents of its list that score higher, and those that score
// the same. So no id becomes a Python object, and only the scores of lists that do not descend are sorted. A block of text is split at its blanks, 64 bytes at a
// time (text.h, rows.h). The judged documents of a query are looked up among the rows of its list, and the rows are
// counted for their scores (count.h). A block holds whole lists, so several threads count blocks independently, in any
// order. A dictionary is counted where Python keeps it (lists.h), and the usual measures follow from the counts by closed forms
// (../measures). There are no messages here: Python checks irregular lines and reports problems.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>

#include "columns.h"
#include "count.h"
#include "lists.h"
#include "regroup.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tiewise {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = Array<double>;
using Ints = Array<int64_t>;
using ConstInts = Array<const int64_t>;
template <class T>
using Result = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

Id text_of(const Bytes& bytes) { return Id(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }

// A vector as a NumPy array that owns it; integers have NumPy's own int64 type.
template <class T>
nb::object array(std::vector<T>&& values) {
  auto* held = new std::vector<T>(std::move(values));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  nb::object made = nb::cast(Result<T>(held->data(), {held->size()}, owner));
  return std::is_same_v<T, int64_t> ? nb::object(made.attr("view")("int64")) : made;
}

nb::object str(Id id) {
  PyObject* made = PyUnicode_DecodeUTF8(id.data(), static_cast<Py_ssize_t>(id.size()), nullptr);
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

nb::object strings(const std::vector<Id>& ids) {
  nb::object made = nb::steal(PyList_New(static_cast<Py_ssize_t>(ids.size())));
  if (!made) throw nb::python_error();
  Py_ssize_t at = 0;
  for (const Id id : ids) PyList_SetItem(made.ptr(), at++, str(id).release().ptr());
  return made;
}

nb::bytes bytes(Id id) { return nb::bytes(id.data(), id.size()); }

// The UTF-8 of a string, which Python caches. A lone surrogate has none: that raises UnicodeEncodeError.
Id utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (!data) throw nb::python_error();
  return Id(data, static_cast<size_t>(size));
}

// A block of a run, and the Python objects that own the memory of its ids.
struct Block {
  Rows rows;
  std::vector<Id> texts;  // none for Arrow columns
  std::vector<nb::object> owners;
};

// Document ids, not necessarily distinct, and the Python objects that own their memory.
struct Ids {
  std::vector<Id> ids;
  std::vector<nb::object> owners;

  Ids() = default;
  explicit Ids(nb::list texts) : owners{texts} {
    ids.reserve(nb::len(texts));
    for (nb::handle text : texts) ids.push_back(utf8(text.ptr()));
  }

  // Move those of a block here.
  void append(Block& block) {
    if (ids.empty()) {
      ids.swap(block.rows.docs);
    } else {
      ids.insert(ids.end(), block.rows.docs.begin(), block.rows.docs.end());
      block.rows.docs.clear();
    }
    owners.insert(owners.end(), block.owners.begin(), block.owners.end());
  }

  // The ids at some places.
  std::vector<Id> take(const Ints& places) const {
    std::vector<Id> found(places.size());
    std::transform(places.data(), places.data() + places.size(), found.begin(), [&](int64_t at) { return ids.at(at); });
    return found;
  }
};

// The judged documents: queries, and the documents of each as places among ids.
struct Judged {
  Judgments judgments;
  std::vector<nb::object> owners;

  Judged(nb::list queries, Ints offsets, nb::object documents, Ints places) : owners{queries, documents} {
    for (nb::handle query : queries) judgments.queries.push_back(utf8(query.ptr()));
    judgments.docs = nb::cast<const Ids&>(documents).take(places);
    judgments.offsets.assign(offsets.data(), offsets.data() + offsets.size());
    judgments.build_index();
  }

  // A document as Python looks it up. It is made once, so that its hash is computed once.
  PyObject* name(int64_t doc) {
    if (names_.empty()) names_.resize(judgments.docs.size());
    nb::object& made = names_[static_cast<size_t>(doc)];
    if (!made.is_valid()) made = str(judgments.docs[static_cast<size_t>(doc)]);
    return made.ptr();
  }

 private:
  std::vector<nb::object> names_;
};

// Parse a list of texts. The memory of the block is reused.
void parse(Block& block, nb::list data, int columns, const char* kind, bool tabs, bool with_rank, bool with_tag,
           nb::bytes run_tag) {
  const Id tag(run_tag.c_str(), run_tag.size());
  block.owners = {data};
  block.texts.clear();
  for (nb::handle text : data) block.texts.push_back(text_of(nb::cast<Bytes>(text)));
  nb::gil_scoped_release unlocked;
  block.rows.parse(block.texts, columns, kind[0], tabs, with_rank, with_tag, tag);
}

// An Arrow column, and the arrays that own its memory.
struct OwnedColumn : Column {
  std::vector<nb::object> owners;

  OwnedColumn(nb::object text, nb::object ends, nb::object coded) : owners{text, ends, coded} {
    bytes = text_of(nb::cast<Bytes>(text));
    narrow = data<int32_t>(ends), broad = data<int64_t>(ends), codes = data<int32_t>(coded);
    if (!narrow && !broad) throw nb::type_error("ends are int32 or int64");
    if (!codes && !coded.is_none()) throw nb::type_error("codes are int32");
    ids = std::max(nb::len(ends), size_t{1}) - 1;
    rows = codes ? nb::len(coded) : ids;
  }

 private:
  template <class T>
  static const T* data(nb::handle array) {
    Array<const T> found;
    return nb::try_cast(array, found, false) ? found.data() : nullptr;
  }
};

// Read Arrow columns. A part has the columns of queries, documents and scores, the first row, and the row after the last.
void columns(Block& block, nb::list parts) {
  using Part = std::tuple<const OwnedColumn*, const OwnedColumn*, Array<const double>, size_t, size_t>;
  std::vector<Part> read;
  for (nb::handle part : parts) read.push_back(nb::cast<Part>(part));
  block.owners = {parts};
  block.texts.clear();
  nb::gil_scoped_release unlocked;
  block.rows.clear();
  for (const auto& [queries, docs, score, first, last] : read) {
    if (last > std::min({score.size(), queries->rows, docs->rows})) throw std::out_of_range("a row without a cell");
    append(block.rows, *queries, *docs, score.data(), first, last);
  }
  block.rows.end();
}

// The arrays of tie groups, and the Python objects that own them.
struct HeldGroups : Groups {
  std::vector<nb::object> owners;

  HeldGroups(Floats score, Ints start, Ints size, Floats lowest, Ints lowest_size, std::optional<Ints> desc,
             std::optional<Ints> asc, std::optional<Ints> given, std::optional<Ints> rank) {
    const auto data = [&](std::optional<Ints>& array) {
      if (array) owners.push_back(nb::cast(*array));
      return array ? array->data() : nullptr;
    };
    static_cast<Groups&>(*this) = {score.data(), start.data(), size.data(), lowest.data(), lowest_size.data(),
                                   data(desc),   data(asc),    data(given), data(rank)};
    owners.insert(owners.end(), {nb::cast(score), nb::cast(start), nb::cast(size), nb::cast(lowest), nb::cast(lowest_size)});
  }
};

// Count a block. With `exact`, tie groups are copied from there where rounding the scores to `value` changed none.
std::array<int64_t, 6> count(const Block& block, const Judged& judged, Array<const double> value, Ints place, Ints row,
                             bool own, const HeldGroups& groups, const HeldGroups* exact) {
  const double* exact_value = exact ? block.rows.value.data() : nullptr;
  Counter counter(block.rows, judged.judgments, row.data(), own, !own, groups);
  for (size_t list = 0; list < block.rows.queries.size(); ++list) {
    counter.count_list(list, place.data()[list], value.data(), exact_value, exact);
  }
  return counter.totals();
}

// A score of a dictionary; NaN if its document is no text or it is no plain number.
double plain_score(PyObject* doc, PyObject* score) {
  if (!PyUnicode_CheckExact(doc)) return no_number;
  if (PyFloat_Check(score)) return PyFloat_AsDouble(score);
  if (!PyLong_CheckExact(score)) return no_number;
  const double value = PyLong_AsDouble(score);
  if (value == -1.0 && PyErr_Occurred()) {  // too large
    PyErr_Clear();
    return no_number;
  }
  return std::abs(value) < static_cast<double>(largest) ? value : no_number;
}

// Read lists whose documents are places among ids.
void read_rows(Block& block, nb::list queries, Ints offsets, nb::object ids, Ints places, Array<const double> value,
               std::optional<Ints> rank) {
  block.owners = {queries, ids};
  block.texts.clear();
  Rows& rows = block.rows;
  rows.clear();
  for (size_t list = 0; list < nb::len(queries); ++list) {
    rows.queries.push_back(utf8(queries[list].ptr()));
    rows.offsets.push_back(static_cast<size_t>(offsets.data()[list] - offsets.data()[0]));
  }
  rows.docs = nb::cast<const Ids&>(ids).take(places);
  rows.value.assign(value.data(), value.data() + value.size());
  if (rank) rows.rank.assign(rank->data(), rank->data() + rank->size()), rows.ranked = true;
  rows.end();
}

// Read ranked lists from pairs of a query and a dictionary of scores. False if an id is not a plain string or a score not
// a plain number: Python then reports the problem.
bool read_lists(Block& block, nb::list lists) {
  block.owners = {lists};
  block.texts.clear();
  Rows& rows = block.rows;
  rows.clear();
  PyObject *doc, *score;
  Py_ssize_t size = 0;
  for (nb::handle list : lists) {
    PyObject *query = PyTuple_GetItem(list.ptr(), 0), *docs = PyTuple_GetItem(list.ptr(), 1);
    if (!query || !docs || !PyUnicode_CheckExact(query) || !PyDict_CheckExact(docs)) {
      PyErr_Clear();
      return false;
    }
    const char* name = PyUnicode_AsUTF8AndSize(query, &size);
    if (!name) {  // a lone surrogate
      PyErr_Clear();
      return false;
    }
    rows.start_list(Id(name, static_cast<size_t>(size)), rows.docs.size());
    for (Py_ssize_t at = 0; PyDict_Next(docs, &at, &doc, &score);) {
      const double value = plain_score(doc, score);
      const char* text = std::isnan(value) ? nullptr : PyUnicode_AsUTF8AndSize(doc, &size);
      if (!text) {
        PyErr_Clear();
        return false;
      }
      block.owners.push_back(nb::borrow(doc));
      rows.docs.emplace_back(text, static_cast<size_t>(size));
      rows.value.push_back(value);
    }
  }
  rows.end();
  return true;
}

// The line of each row, from 0, found by the position of its document in the texts. Arrow columns have no lines.
std::vector<int64_t> lines_of(const Block& block) {
  if (block.texts.empty()) return std::vector<int64_t>(block.rows.docs.size());
  std::vector<int64_t> lines;
  auto text = block.texts.begin();
  const char* at = text->data();
  int64_t line = 0;
  for (const Id doc : block.rows.docs) {
    while (std::less<>()(doc.data(), text->data()) || !std::less<>()(doc.data(), text->data() + text->size())) {
      line += std::count(at, text->data() + text->size(), '\n');
      at = (++text)->data();
    }
    line += std::count(at, doc.data(), '\n'), at = doc.data();
    lines.push_back(line);
  }
  return lines;
}

std::vector<int64_t> coded(Codes& codes, const std::vector<Id>& ids) {
  std::vector<int64_t> found(ids.size());
  std::transform(ids.begin(), ids.end(), found.begin(), [&](Id id) { return codes.code(id); });
  return found;
}

// The indices of ids that are not UTF-8.
std::vector<int64_t> not_utf8(const Block& block, const std::vector<Id>& ids) {
  std::vector<int64_t> found;
  if (!block.rows.non_ascii) return found;
  for (size_t at = 0; at < ids.size(); ++at) {
    if (is_ascii(ids[at])) continue;
    if (PyObject* decoded = PyUnicode_DecodeUTF8(ids[at].data(), static_cast<Py_ssize_t>(ids[at].size()), nullptr)) {
      Py_DECREF(decoded);
    } else {
      PyErr_Clear();
      found.push_back(static_cast<int64_t>(at));
    }
  }
  return found;
}

// The tables of a measure, and the arrays that own them.
struct HeldTables : Tables {
  std::vector<nb::object> owners;

  HeldTables(int kind, Array<const double> gains, Array<const double> weights, ConstInts depths,
             Array<const double> divisors, bool of_length)
      : owners{nb::cast(gains), nb::cast(weights), nb::cast(depths), nb::cast(divisors)} {
    form = static_cast<Form>(kind), gain = gains.data(), weight = weights.data(), n_weights = weights.size();
    depth = depths.data(), divisor = divisors.data(), by_length = of_length;
  }
};

// The tables of a measure; none if a gain is negative.
std::optional<HeldTables> make_tables(int form, Array<const double> gain, Array<const double> weight, ConstInts depth,
                                      Array<const double> divisor, bool by_length) {
  if (std::any_of(gain.data(), gain.data() + gain.size(), [](double one) { return one < 0; })) return {};
  return HeldTables(form, gain, weight, depth, divisor, by_length);
}

// Ranked lists that were counted, and the Python objects that own their judgments.
struct HeldLists : Lists {
  nb::object judged, pool;
  nb::list unjudged, queries, docs;  // queries without judgments; the first few queries and documents, for messages

  HeldLists(nb::object judged_, nb::object pool_, nb::tuple dtypes, nb::tuple orders)
      : Lists(nb::cast<Judged&>(judged_).judgments, pool_.is_none() ? nullptr : &nb::cast<Judged&>(pool_).judgments,
              has(dtypes, "float64"), has(dtypes, "float32"), has(orders, "docid-desc"), has(orders, "docid-asc"),
              has(orders, "given")),
        judged(judged_), pool(pool_), judged_names_(nb::cast<Judged&>(judged)),
        pool_names_(pool.is_none() ? judged_names_ : nb::cast<Judged&>(pool)) {}

  static constexpr size_t examples = 3;

  // Count ``{query: {document: score}}``; false if an id is not a plain string or a score not a plain number: Python then
  // reports the problem.
  bool read(nb::dict table) {
    PyObject *query, *doc, *score;
    size_t many_queries = 0, many_docs = 0;
    for (Py_ssize_t outer = 0; PyDict_Next(table.ptr(), &outer, &query, &list_);) {
      if (!PyUnicode_CheckExact(query) || !PyDict_CheckExact(list_)) return false;
      const std::optional<Id> name = id(query);
      if (!name) return false;
      const auto many = static_cast<size_t>(PyDict_Size(list_));
      rows_.resize(many), values().resize(many);
      size_t row = 0;
      for (Py_ssize_t inner = 0; row < many && PyDict_Next(list_, &inner, &doc, &score); ++row) {
        const double value = plain_score(doc, score);
        if (std::isnan(value)) return false;
        if (many_docs < examples) docs.append(nb::borrow(doc)), ++many_docs;
        rows_[row] = doc, values()[row] = value;
      }
      try {
        if (!count(*name, PyDict_GetItemWithError(list_, query) != nullptr)) unjudged.append(nb::borrow(query));
      } catch (const NoText&) {
        return false;
      }
      if (many_queries < examples) queries.append(nb::borrow(query)), ++many_queries;
    }
    return true;
  }

 private:
  struct NoText {};

  static bool has(nb::tuple names, const char* name) {
    for (nb::handle one : names) {
      if (PyUnicode_CompareWithASCIIString(one.ptr(), name) == 0) return true;
    }
    return false;
  }

  // Nothing for a lone surrogate.
  static std::optional<Id> id(PyObject* text) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text, &size);
    if (data) return Id(data, static_cast<size_t>(size));
    PyErr_Clear();
    return std::nullopt;
  }

  double score_of(Judgments& judgments, int64_t doc) override {
    Judged& names = &judgments == &judged_names_.judgments ? judged_names_ : pool_names_;
    PyObject* score = PyDict_GetItemWithError(list_, names.name(doc));
    return score ? plain_score(names.name(doc), score) : no_number;
  }

  Id id_of(size_t row) override {
    const std::optional<Id> found = id(rows_[row]);
    if (!found) throw NoText();
    return *found;
  }

  Judged &judged_names_, &pool_names_;
  PyObject* list_ = nullptr;      // that is counted
  std::vector<PyObject*> rows_;  // its documents
};

template <class T>
nb::object view_of(HeldLists& lists, std::vector<T>& values) {
  using Kind = std::conditional_t<std::is_same_v<T, uint8_t>, bool, T>;
  nb::object made = nb::cast(Result<const Kind>(reinterpret_cast<Kind*>(values.data()), {values.size()}, nb::find(lists)));
  return std::is_same_v<T, int64_t> ? nb::object(made.attr("view")("int64")) : made;
}

// The arrays of the tie groups of one score type.
nb::tuple groups_of(HeldLists& lists, bool rounded) {
  View& view = lists.view(rounded);
  const auto of = [&](auto& values) { return view_of(lists, values); };
  return nb::make_tuple(of(view.score), of(view.start), of(view.size), of(view.lowest), of(view.lowest_size), of(view.desc),
                        of(view.asc), of(view.given));
}

// The statistics of some measures, (7, n_measures, n_queries), and whether each looks at ranks after which a list may be
// truncated, (n_measures, n_queries); `compute` fills them.
template <class Compute>
nb::tuple statistics(nb::list measures, size_t queries, Compute compute) {
  std::vector<const Tables*> tables;
  for (nb::handle one : measures) tables.push_back(nb::cast<const HeldTables*>(one));
  struct Found {
    std::vector<double> statistics;
    std::vector<uint8_t> reached;
  };
  auto* found = new Found{std::vector<double>(7 * tables.size() * queries), std::vector<uint8_t>(tables.size() * queries)};
  nb::capsule owner(found, [](void* p) noexcept { delete static_cast<Found*>(p); });
  compute(tables, found->statistics.data(), found->reached.data());
  using Values = nb::ndarray<nb::numpy, const double, nb::ndim<3>>;
  using Flags = nb::ndarray<nb::numpy, const bool, nb::ndim<2>>;
  return nb::make_tuple(Values(found->statistics.data(), {7, tables.size(), queries}, owner),
                        Flags(reinterpret_cast<const bool*>(found->reached.data()), {tables.size(), queries}, owner));
}

nb::tuple statistics_of_lists(HeldLists& lists, nb::list measures, int order, bool rounded, int64_t depth, bool complete,
                              bool moments) {
  View& view = lists.view(rounded);
  const int64_t* before[] = {nullptr, view.desc.data(), view.asc.data(), view.given.data()};
  return statistics(measures, lists.length.size(), [&](const auto& tables, double* found, uint8_t* reached) {
    lists.compute(tables, view, before[order], depth, complete, moments, found, reached);
  });
}

nb::tuple statistics_of_groups(nb::list measures, ConstInts offsets, ConstInts start, ConstInts size,
                               std::optional<ConstInts> before, ConstInts length, ConstInts last_start,
                               ConstInts last_size, Array<const bool> truncated, bool moments) {
  return statistics(measures, length.size(), [&](const auto& tables, double* found, uint8_t* reached) {
    nb::gil_scoped_release unlocked;
    compute_all(tables,
                {length.size(), offsets.data(), start.data(), size.data(), before ? before->data() : nullptr,
                 length.data(), last_start.data(), last_size.data(), truncated.data()},
                moments, found, reached);
  });
}

// ``{query: {name: number}}`` of judged lists, from the numbers of each name for all queries. Queries that are None are
// left out.
nb::object number_rows(const HeldLists& lists, nb::list queries, nb::list names,
                       nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> numbers) {
  nb::dict empty, rows;
  for (nb::handle name : names) empty[name] = nb::none();
  for (const int64_t place : lists.places) {
    PyObject* const query = PyList_GetItem(queries.ptr(), static_cast<Py_ssize_t>(place));
    if (query == Py_None) continue;
    nb::object row = nb::steal(PyDict_Copy(empty.ptr()));
    for (size_t column = 0; column < numbers.shape(0); ++column) {
      nb::object number = nb::steal(PyFloat_FromDouble(numbers(column, place)));
      if (PyDict_SetItem(row.ptr(), PyList_GetItem(names.ptr(), static_cast<Py_ssize_t>(column)), number.ptr())) {
        throw nb::python_error();
      }
    }
    if (PyDict_SetItem(rows.ptr(), query, row.ptr())) throw nb::python_error();
  }
  return rows;
}

// ``{query: {document: number}}`` from tuples of one type, whose fields stand at some places. None if an id is not a plain
// string or a number not a plain one, or if a document is twice in a list: Python then reports the problem.
nb::object lists_of_rows(nb::list rows, Py_ssize_t query_at, Py_ssize_t doc_at, Py_ssize_t number_at) {
  nb::dict table;
  PyObject *last = nullptr, *list = nullptr;  // of the row before
  Py_ssize_t many = 0;
  const Py_ssize_t fields = std::max({query_at, doc_at, number_at}) + 1;
  for (nb::handle row : rows) {
    if (row.type().ptr() != nb::handle(rows[0]).type().ptr() || !PyTuple_Check(row.ptr())) return nb::none();
    if (PyTuple_Size(row.ptr()) < fields) return nb::none();
    PyObject *query = PyTuple_GetItem(row.ptr(), query_at), *doc = PyTuple_GetItem(row.ptr(), doc_at);
    PyObject* number = PyTuple_GetItem(row.ptr(), number_at);
    if (!PyUnicode_CheckExact(query) || std::isnan(plain_score(doc, number))) return nb::none();
    if (query != last) {
      list = PyDict_GetItemWithError(table.ptr(), query), last = query;
      if (!list) {
        nb::dict made;
        if (PyDict_SetItem(table.ptr(), query, made.ptr())) throw nb::python_error();
        list = made.ptr();  // the table owns it
      }
      many = PyDict_Size(list);
    }
    if (PyDict_SetItem(list, doc, number)) throw nb::python_error();
    if (PyDict_Size(list) != ++many) return nb::none();
  }
  return table;
}

}  // namespace
}  // namespace tiewise

NB_MODULE(_reader, m) {
  using namespace tiewise;
  nb::set_leak_warnings(false);  // of objects that somebody keeps until the process ends
  m.doc() = "Text, columns and dictionaries to tie groups, by counting.";
#ifdef TIEWISE_AVX2
  m.attr("avx2") = has_avx2();
#else
  m.attr("avx2") = false;
#endif

  nb::class_<Ids>(m, "Ids")
      .def(nb::init<>())
      .def(nb::init<nb::list>())
      .def("append", &Ids::append)
      .def("__len__", [](const Ids& ids) { return ids.ids.size(); })
      .def("__getitem__", [](const Ids& ids, size_t place) { return str(ids.ids.at(place)); })
      .def("take", [](const Ids& ids, Ints places) { return strings(ids.take(places)); })
      // Codes of distinct ids, and these ids.
      .def("encode", [](const Ids& ids, Ints places) {
        Codes codes;
        nb::object found = array(coded(codes, ids.take(places)));
        return nb::make_tuple(found, strings(codes.ids()));
      })
      // Whether a list has an id twice; without places, its rows are those of the ids.
      .def("has_duplicates", [](const Ids& ids, Ints offsets, std::optional<Ints> places) {
        const auto check = [&](const std::vector<Id>& docs) {
          return has_duplicates(docs, offsets.data(), offsets.size() - 1);
        };
        return places ? check(ids.take(*places)) : check(ids.ids);
      }, "offsets"_a, "places"_a.none());

  nb::class_<HeldTables>(m, "Tables");
  m.def("make_tables", &make_tables, "form"_a, "gain"_a, "weight"_a, "depth"_a, "divisor"_a, "by_length"_a);
  m.def("statistics", &statistics_of_groups, "measures"_a, "offsets"_a, "start"_a, "size"_a, "before"_a.none(), "length"_a,
        "last_start"_a, "last_size"_a, "truncated"_a, "moments"_a);
  m.def("lists_of_rows", &lists_of_rows, "rows"_a, "query"_a, "document"_a, "number"_a);

  nb::class_<Judged>(m, "Judged").def(nb::init<nb::list, Ints, nb::object, Ints>());

  nb::class_<HeldLists>(m, "Lists")
      .def(nb::init<nb::object, nb::object, nb::tuple, nb::tuple>(), "judged"_a, "pool"_a.none(), "dtypes"_a, "orders"_a)
      .def("read", &HeldLists::read)
      .def("groups", &groups_of, "rounded"_a)
      .def("statistics", &statistics_of_lists, "measures"_a, "order"_a, "rounded"_a, "depth"_a, "complete"_a,
           "moments"_a)
      .def("number_rows", &number_rows, "queries"_a, "names"_a, "numbers"_a)
      .def("totals", [](const HeldLists& lists) { return lists.totals(); })
      .def_prop_ro("longest", [](const HeldLists& lists) {
        return lists.length.empty() ? 0 : *std::max_element(lists.length.begin(), lists.length.end());
      })
      .def_prop_ro("n_present", [](const HeldLists& lists) {
        return std::count(lists.present.begin(), lists.present.end(), 1);
      })
      .def_ro("n_lists", &HeldLists::n_lists)
      .def_ro("n_rows", &HeldLists::n_rows)
      .def_ro("unjudged", &HeldLists::unjudged)
      .def_ro("queries", &HeldLists::queries)
      .def_ro("docs", &HeldLists::docs)
      .def_prop_ro("places", [](HeldLists& lists) { return view_of(lists, lists.places); })
      .def_prop_ro("length", [](HeldLists& lists) { return view_of(lists, lists.length); })
      .def_prop_ro("present", [](HeldLists& lists) { return view_of(lists, lists.present); })
      .def_prop_ro("found", [](HeldLists& lists) { return view_of(lists, lists.found); })
      .def_prop_ro("has_self", [](HeldLists& lists) { return view_of(lists, lists.has_self); });

  // Output arrays are those of the caller, never copies of another type.
  nb::class_<HeldGroups>(m, "Groups")
      .def(nb::init<Floats, Ints, Ints, Floats, Ints, std::optional<Ints>, std::optional<Ints>, std::optional<Ints>,
                    std::optional<Ints>>(),
           "score"_a.noconvert(), "start"_a.noconvert(), "size"_a.noconvert(), "lowest"_a.noconvert(),
           "lowest_size"_a.noconvert(), "desc"_a.noconvert().none(), "asc"_a.noconvert().none(),
           "given"_a.noconvert().none(), "rank"_a.noconvert().none());

  nb::class_<OwnedColumn>(m, "Column")
      .def(nb::init<nb::object, nb::object, nb::object>(), "bytes"_a, "ends"_a, "codes"_a.none())
      .def("last_list", [](const OwnedColumn& column, size_t first, size_t last) { return column.last_list(first, last); });

  nb::class_<Block>(m, "Block")
      .def(nb::init<>())
      .def("parse", &parse, "data"_a, "columns"_a, "kind"_a, "tabs"_a, "with_rank"_a, "with_tag"_a,
           "run_tag"_a)
      .def("columns", &columns, "parts"_a)
      .def("read_lists", &read_lists, "lists"_a)
      .def("read_rows", &read_rows, "queries"_a, "offsets"_a, "ids"_a, "places"_a, "value"_a, "rank"_a.none())
      // The lists, of some, that have one of the documents that are given for each of them.
      .def("lists_with_any", [](const Block& block, Ints lists, Ints offsets, const Ids& ids, Ints places) {
        std::vector<int64_t> found;
        {
          nb::gil_scoped_release unlocked;
          const std::vector<Id> docs = ids.take(places);
          for (size_t at = 0; at < lists.size(); ++at) {
            const int64_t list = lists.data()[at], first = offsets.data()[at], many = offsets.data()[at + 1] - first;
            if (has_any(block.rows, list, docs.data() + first, many)) found.push_back(list);
          }
        }
        return array(std::move(found));
      })
      .def_prop_ro("lists", [](const Block& block) { return block.rows.queries.size(); })
      .def_prop_ro("offsets",
                   [](const Block& block) {
                     return array(std::vector<int64_t>(block.rows.offsets.begin(), block.rows.offsets.end()));
                   })
      .def_prop_ro(
          "value",
          [](Block& block) {
            const std::vector<double>& value = block.rows.value;
            return Result<const double>(value.data(), {value.size()}, nb::find(block));
          },
          nb::rv_policy::automatic)
      .def_prop_ro("rank",
                   [](const Block& block) -> nb::object {
                     if (!block.rows.ranked) return nb::none();
                     return array(std::vector<int64_t>(block.rows.rank));
                   })
      .def_prop_ro("line", [](const Block& block) { return array(lines_of(block)); })
      .def_prop_ro("irregular", [](const Block& block) { return array(std::vector<uint32_t>(block.rows.irregular)); })
      .def_prop_ro("lines", [](const Block& block) { return block.rows.lines; })
      .def_prop_ro("tag",
                   [](const Block& block) -> nb::object {
                     if (!block.rows.one_tag || !block.rows.tag.data()) return nb::none();
                     return bytes(block.rows.tag);
                   })
      .def("take_value", [](Block& block) { return array(std::move(block.rows.value)); })  // the block loses them
      .def("__len__", [](const Block& block) { return block.rows.docs.size(); })
      .def("doc", [](const Block& block, size_t row) { return bytes(block.rows.docs.at(row)); })
      .def("query", [](const Block& block, size_t list) { return bytes(block.rows.queries.at(list)); })
      .def("not_utf8_queries", [](const Block& block) { return array(not_utf8(block, block.rows.queries)); })
      .def("not_utf8_docs", [](const Block& block) { return array(not_utf8(block, block.rows.docs)); })
      .def("look_up_queries", [](const Block& block, const Judged& judged, Ints place) {
        nb::gil_scoped_release unlocked;
        look_up_queries(block.rows, judged.judgments, place.data());
      }, "judged"_a, "place"_a.noconvert())
      .def("look_up", [](const Block& block, const Judged& judged, Ints place, Ints length, Ints row, Array<bool> found,
                         Array<bool> has_self) {
        nb::gil_scoped_release unlocked;
        return look_up(block.rows, judged.judgments, place.data(), length.data(), row.data(), found.data(),
                       has_self.data());
      }, "judged"_a, "place"_a.noconvert(), "length"_a.noconvert(), "row"_a.noconvert(), "found"_a.noconvert(),
         "has_self"_a.noconvert())
      .def("fingerprints", [](const Block& block, uint64_t limit) {
        std::vector<uint64_t> found;
        {
          nb::gil_scoped_release unlocked;
          found = fingerprints(block.rows, limit);
        }
        return array(std::move(found));
      })
      .def("count", &count, Unlocked(), "judged"_a, "value"_a, "place"_a, "row"_a.noconvert(), "own"_a, "groups"_a,
           "exact"_a.none());

  nb::class_<Codes>(m, "Codes")
      .def(nb::init<>())
      .def("docs", [](Codes& codes, const Block& block) { return array(coded(codes, block.rows.docs)); })
      .def("queries", [](Codes& codes, const Block& block) { return array(coded(codes, block.rows.queries)); })
      // Mark the judged queries of a block as present, and add the others; false if a query appeared before.
      .def("claim", [](Codes& codes, const Block& block, Ints place, Array<bool> present) {
        for (size_t list = 0; list < block.rows.queries.size(); ++list) {
          const int64_t query = place.data()[list];
          const size_t before = codes.ids().size();
          if (query < 0 ? codes.code(block.rows.queries[list]) < before : present.data()[query]) return false;
          if (query >= 0) present.data()[query] = true;
        }
        return true;
      }, "block"_a, "place"_a.noconvert(), "present"_a.noconvert())
      .def("ids", [](const Codes& codes) { return strings(codes.ids()); });

  nb::class_<Regrouped>(m, "Regrouped")
      .def(nb::init<bool>())
      .def("add", [](Regrouped& regrouped, Bytes data) { regrouped.add(text_of(data)); })
      .def("next", [](Regrouped& regrouped, size_t many) { return bytes(regrouped.next(many)); });

  m.def("split", [](Bytes data, size_t shares, bool tabs) {
    nb::list found;
    for (const std::string& share : split(text_of(data), shares, tabs)) found.append(bytes(share));
    return found;
  });
  m.def("last_list", [](Bytes data) {
    Id query;
    const size_t start = last_list(text_of(data), &query);
    return nb::make_tuple(start, bytes(query));
  });
  m.def("hashed", [](nb::bytes id) { return hashed(Id(id.c_str(), id.size())); });  // for tests
}
