// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/prep/tables.h"

#include <algorithm>

#include "lockstep/base/progress.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/sources/pack/duplicates.h"

namespace lockstep::verbs::prep {
namespace {

using base::fixed;
using base::format_bytes;
using base::format_count;
using base::Json;
using base::text;

constexpr const char* kSentenceMember = ".txt";  // of a dataset of sentences: nobody misses images
constexpr size_t kClassRows = 12, kListed = 5, kDuplicatesListed = 10, kNamesListed = 4;

std::string range_text(const Json& part, const char* name) {
  if (!part.contains(text(name, "_min"))) return "-";
  return text(part.at(text(name, "_min")).as_int(), " - ", part.at(text(name, "_max")).as_int(), " (",
              fixed(part.at(text(name, "_mean")).as_double(), 0), ")");
}

std::string parts_table(const Json& parts) {
  base::Table table({{"part"},
                     {"samples", base::Align::right},
                     {"shards", base::Align::right},
                     {"bytes in", base::Align::right},
                     {"bytes out", base::Align::right},
                     {"width (mean)"},
                     {"height (mean)"}});
  for (const auto& [name, part, position] : parts.members()) {
    table.add({name, format_count(part.at("samples").as_int()), format_count(part.at("shards").as_int()),
               format_bytes(part.at("bytes_in").as_double()), format_bytes(part.at("tar_bytes").as_double()),
               range_text(part, "width"), range_text(part, "height")});
  }
  return table.to_text();
}

// The classes by their number in the first part, the largest first, the smallest last. `counts`: the key of a part that
// says how many samples, or objects in samples, each class has.
std::string balance_table(const Json& dataset, const char* counts, const char* title) {
  const auto& classes = dataset.at("classes").items();
  const auto& parts = dataset.at("parts").members();
  std::vector<base::Column> columns{{title}};
  for (const auto& part : parts) columns.push_back({part.key, base::Align::right});
  base::Table table(columns);
  const auto count = [&](size_t part, size_t label) {
    const Json* all = parts[part].value.find(counts);
    return all ? all->items().at(label).as_int() : 0;
  };
  std::vector<size_t> order(classes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return count(0, a) > count(0, b); });
  const size_t half = kClassRows / 2;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order.size() > kClassRows && i == half) {
      std::vector<std::string> gap(columns.size(), "");
      gap[0] = text("... ", order.size() - kClassRows, " more");
      table.add(gap);
      i = order.size() - half;
    }
    std::vector<std::string> row{classes[order[i]].as_string()};
    for (size_t part = 0; part < parts.size(); ++part) row.push_back(format_count(count(part, order[i])));
    table.add(row);
  }
  return table.to_text();
}

bool has_any(const Json& dataset, const char* counts) {
  for (const auto& part : dataset.at("parts").members()) {
    const Json* all = part.value.find(counts);
    for (size_t i = 0; all && i < all->size(); ++i) {
      if (all->items()[i].as_int() > 0) return true;
    }
  }
  return false;
}

// What cannot be learnt: classes of which validation or test has something, training nothing. The split leaves none;
// a source's own parts may, and so may samples that could not be read.
std::string untrained_text(const Json& dataset, const char* counts, const char* what) {
  const Json& parts = dataset.at("parts");
  const Json* train = parts.find("train");
  if (!train) return "";
  const auto count = [&](const Json& part, size_t label) {
    const Json* all = part.find(counts);
    return all ? all->items().at(label).as_int() : 0;
  };
  const auto& classes = dataset.at("classes").items();
  std::vector<std::string> names;
  int64_t all = 0;
  for (size_t label = 0; label < classes.size(); ++label) {
    if (count(*train, label) > 0) continue;
    int64_t elsewhere = 0;
    for (const auto& part : parts.members()) elsewhere += count(part.value, label);
    if (elsewhere > 0 && static_cast<size_t>(++all) <= kListed) names.push_back(classes[label].as_string());
  }
  if (all == 0) return "";
  return text("\n  ", format_count(all), all == 1 ? " class has no training " : " classes have no training ", what,
              ", only others: ", base::join(names, ", "), names.size() < static_cast<size_t>(all) ? ", ...\n" : "\n");
}

// Every class needs its only sample for training.
std::string unvalidated_text(const Json& dataset) {
  const auto& parts = dataset.at("parts").members();
  const Json* counts = parts.front().value.find("per_class");
  const Json* share = dataset.find("validate_share");
  if (parts.size() > 1 || parts.front().key != "train" || !counts) return "";
  if (share && !share->is_null() && share->as_double() == 0) return "";
  for (const auto& count : counts->items()) {
    if (count.as_int() > 1) return "";
  }
  return "\n  no validation part: each class has one sample, which is trained on\n";
}

std::string refused_text(const Json& dataset, const char* key, const char* what) {
  const int64_t count = dataset.at(text("num_", key)).as_int();
  if (count == 0) return "";
  std::string out = text("  ", format_count(count), " ", what, ":\n");
  const auto& items = dataset.at(key).items();
  for (size_t i = 0; i < items.size() && i < kListed; ++i) {
    const std::string &name = items[i].at("name").as_string(), &reason = items[i].at("reason").as_string();
    const bool repeats = reason.starts_with(name + ": ");
    out += text("    ", base::quote_json(name), ": ", repeats ? reason.substr(name.size() + 2) : reason, "\n");
  }
  if (static_cast<size_t>(count) > kListed) out += "    ... the others stand in dataset.json\n";
  return out;
}

std::string duplicates_text(const Json& all, const base::Path& folder) {
  const int64_t num_groups = all.at("groups").as_int();
  if (num_groups == 0) return "  no image comes twice\n";
  std::string out =
      text("  ", format_count(all.at("samples_beyond_the_first").as_int()), " images are copies of others; in ",
           format_count(all.at("groups_across_parts").as_int()), " cases a copy lies in another part (leakage), in ",
           format_count(all.at("groups_across_labels").as_int()), " with another label:\n");
  const auto& groups = all.at("first").items();
  for (size_t i = 0; i < groups.size() && i < kDuplicatesListed; ++i) {
    const Json* known = groups[i].find("names");  // earlier versions kept the keys alone
    const auto& all_names = (known ? *known : groups[i].at("samples")).items();
    std::vector<std::string> names;
    for (size_t k = 0; k < all_names.size() && k < kNamesListed; ++k) {
      names.push_back(base::quote_json(all_names[k].as_string()));
    }
    const size_t more = all_names.size() - names.size();
    out += text("    ", base::join(names, "  "), more > 0 ? text("  and ", more, " more") : "", "\n");
  }
  const int64_t more = num_groups - std::min<int64_t>(num_groups, kDuplicatesListed);
  return out + text("    ", more > 0 ? text("... and ", format_count(more), " more; ") : "",
                    "all of them: ", (folder / sources::kDuplicates).string(), "\n");
}

// Right for sequences; not what somebody expects who trains on images next.
std::string without_image_text(const Json& parts) {
  int64_t count = 0;
  std::string first;
  for (const auto& part : parts.members()) {
    count += part.value.int_or("without_image", 0);
    if (first.empty()) first = part.value.string_or("first_without_image", "");
  }
  if (count == 0 || first == kSentenceMember) return "";
  return text("\n  ", format_count(count), count == 1 ? " sample holds" : " samples hold",
              " no image (the first: ", first,
              "), kept as it is: images are .jpg, .png, and arrays of bytes, HxW, HxWx1 or HxWx3\n");
}

std::string notes_text(const Json& dataset) {
  std::string out;
  const Json* notes = dataset.find("notes");
  for (size_t i = 0; notes && i < notes->size() && i < kListed; ++i) {
    out += text("  note: ", notes->items()[i].as_string(), "\n");
  }
  return out;
}

std::string bad_outlines_text(const Json& parts) {
  int64_t count = 0;
  std::string first;
  for (const auto& part : parts.members()) {
    count += part.value.int_or("bad_outlines", 0);
    if (first.empty()) first = part.value.string_or("first_bad_outline", "");
  }
  if (count == 0) return "";
  return text("\n  ", format_count(count), count == 1 ? " outline is" : " outlines are",
              " none and left out, the boxes stay: ", first, "\n");
}

std::string triple(const Json& values) {
  std::vector<std::string> words;
  for (const auto& value : values.items()) words.push_back(fixed(value.as_double(), 4));
  return base::join(words, ", ");
}

}  // namespace

std::string packed_text(const sources::Packed& packed, const base::Path& folder) {
  const Json& dataset = packed.dataset;
  std::string out;
  if (packed.was_complete) {
    out = text(folder.string(), " is complete already: nothing to do\n");
  } else {
    out = text(folder.string(), ": prepared in ", base::duration_text(packed.seconds),
               packed.shards_kept > 0 ? text(" (", packed.shards_kept, " shards were there already)") : "", " from ",
               dataset.at("source").as_string(), " (", dataset.at("source_format").as_string(), ")\n");
  }
  out += notes_text(dataset);
  out += parts_table(dataset.at("parts"));
  if (has_any(dataset, "per_class")) out += "\n" + balance_table(dataset, "per_class", "class");
  if (has_any(dataset, "objects_per_class")) out += "\n" + balance_table(dataset, "objects_per_class", "objects of");
  out += untrained_text(dataset, "per_class", "sample");
  out += untrained_text(dataset, "objects_per_class", "object");
  if (has_any(dataset, "per_class")) out += unvalidated_text(dataset);
  const Json& first = dataset.at("parts").members().front().value;
  if (first.contains("mean")) {
    out += text("\n  mean ", triple(first.at("mean")), "; std ", triple(first.at("std")), "\n");
  }
  out += without_image_text(dataset.at("parts"));
  out += bad_outlines_text(dataset.at("parts"));
  int64_t turned = 0, shrunk = 0;
  for (const auto& part : dataset.at("parts").members()) {
    turned += part.value.at("turned_upright").as_int();
    shrunk += part.value.at("shrunk").as_int();
  }
  if (turned > 0) out += text("  ", format_count(turned), " images turned upright (EXIF)\n");
  if (shrunk > 0) out += text("  ", format_count(shrunk), " images shrunk\n");
  // Of sentences no copy was let in: a note says so.
  if (dataset.at("source_format").as_string() != "sentences") out += duplicates_text(dataset.at("duplicates"), folder);
  out += refused_text(dataset, "unreadable", "samples could not be read and are left out");
  out += refused_text(dataset, "left_out", "files or entries of lists are left out");
  if (!base::is_there(folder / "contact.jpg")) return out;  // nothing to be seen
  return out + text("  ", (folder / "contact.jpg").string(), ": a look at it\n");
}

std::string forecast_text(const sources::PackForecast& forecast, const base::Path& folder) {
  if (forecast.is_complete) return text(folder.string(), " is complete already: nothing to do\n");
  std::string out = text("a forecast (nothing was written): ", format_count(forecast.num_samples), " samples in ",
                         format_count(forecast.num_classes), " classes, layout '", forecast.source_format, "'\n");
  base::Table table({{"what"}, {"forecast", base::Align::right}, {"there is", base::Align::right}});
  const std::string ranks = forecast.ranks > 1 ? text(format_count(forecast.ranks), " ranks of ") : "";
  table.add({text("time on ", ranks, forecast.threads, " threads"), base::duration_text(forecast.seconds), ""});
  table.add({"bytes read", format_bytes(static_cast<double>(forecast.bytes_in)), ""});
  table.add({"bytes written", format_bytes(static_cast<double>(forecast.bytes_out)),
             text(format_bytes(static_cast<double>(forecast.free_bytes)), " free")});
  table.add({"files and folders", format_count(forecast.num_inodes),
             forecast.free_inodes < 0 ? "not counted" : text(format_count(forecast.free_inodes), " free")});
  if (forecast.quota.free_bytes) {
    table.add({"your quota, bytes", format_bytes(static_cast<double>(forecast.bytes_out)),
               text(format_bytes(static_cast<double>(*forecast.quota.free_bytes)), " left")});
  }
  if (forecast.quota.free_files) {
    table.add({"your quota, files", format_count(forecast.num_inodes),
               text(format_count(*forecast.quota.free_files), " left")});
  }
  out += table.to_text();
  out += text("  from ", forecast.num_probed, " samples spread over the source\n");
  if (forecast.shards_kept > 0) {
    out += text("  what is left: ", format_count(forecast.shards_kept), " of ", format_count(forecast.num_shards),
                " shards are there already\n");
  }
  if (!forecast.quota.unanswered.empty()) {
    out +=
        text("  ", forecast.quota.unanswered, " took too long to answer: whether a quota is in the way is not known\n");
  }
  for (const auto& note : forecast.notes) out += text("  note: ", note, "\n");
  for (size_t i = 0; i < forecast.refused.size() && i < kListed; ++i) {
    out += text("  refused: ", base::quote_json(forecast.refused[i].name), ": ", forecast.refused[i].reason, "\n");
  }
  if (!forecast.fits()) out += "  it does NOT fit: free some space or give another folder\n";
  return out;
}

std::string repaired_text(const sources::Repaired& repaired, const base::Path& folder) {
  if (repaired.damaged.empty()) {
    return text(folder.string(), ": ", format_count(repaired.num_shards),
                " shards, all as they were written: nothing to repair\n");
  }
  return text(folder.string(), ": ", format_count(std::ssize(repaired.damaged)), " of ",
              format_count(repaired.num_shards), " shards made again in ", base::duration_text(repaired.seconds),
              ", as they were: ", base::join(repaired.damaged, ", "), "\n");
}

std::string verify_text(const sources::VerifyResult& result) {
  std::string out = text(format_count(result.num_samples), " samples in ", format_count(result.num_shards), " shards, ",
                         format_bytes(static_cast<double>(result.num_bytes)), ", checked in ",
                         base::duration_text(result.seconds), ": ");
  if (result.faults.empty()) return out + "all is as it was written\n";
  out += text(format_count(static_cast<int64_t>(result.faults.size())),
              result.faults.size() == 1 ? " fault\n" : " faults\n");
  for (const auto& fault : result.faults) out += text("  ", fault, "\n");
  return out +
         "  fix: copy what is damaged again, or make damaged shards again: the command of this set with --repair\n";
}

std::string shapes_text(const sources::Dataset& dataset) {
  const std::string folder = dataset.folder.string();
  const auto line = [](const std::string& what, const std::string& words) {
    return text("  ", what, std::string(std::max<size_t>(what.size() < 24 ? 24 - what.size() : 0, 1), ' '), words,
                "\n");
  };
  std::string out = dataset.was_complete ? text(folder, " is complete already: nothing to do\n")
                                         : text("drawn in ", base::duration_text(dataset.seconds), "\n");
  out += line(folder + "/train", text(dataset.num_train, " images"));
  out += line(folder + "/validate", text(dataset.num_validate, " images"));
  out += line(text(dataset.classes.size(), " classes"), base::join(dataset.classes, ", "));
  return out + line(folder + "/contact.jpg", "a look at each class");
}

std::string scenes_text(const sources::Dataset& dataset, const std::string& kind) {
  const std::string folder = dataset.folder.string();
  std::string out = dataset.was_complete ? text(folder, " is complete already: nothing to do\n")
                                         : text("drawn in ", base::duration_text(dataset.seconds), "\n");
  out += text("  ", format_count(dataset.num_train + dataset.num_validate), " scenes of ",
              base::join(dataset.classes, ", "), "\n");
  return out + text("  next: lockstep prep ", base::shell_path(folder + (kind == "captions" ? "/captions.json" : "")),
                    " --to DIR\n");
}

std::string sentences_text(const sources::Dataset& dataset) {
  const std::string folder = dataset.folder.string();
  return text(dataset.was_complete ? text(folder, " is complete already: nothing to do\n")
                                   : text("written in ", base::duration_text(dataset.seconds), "\n"),
              "  ", format_count(dataset.num_train + dataset.num_validate),
              " sentences, captions of drawn scenes among them\n", "  next: lockstep prep ",
              base::shell_path(folder + "/sentences.csv"), " --to DIR\n");
}

std::string radar_text(const sources::Dataset& dataset) {
  const std::string folder = dataset.folder.string();
  return text(dataset.was_complete ? text(folder, " is complete already: nothing to do\n")
                                   : text("drawn in ", base::duration_text(dataset.seconds), "\n"),
              "  ", format_count(dataset.num_train), " volumes of a made-up radar, 5 minutes apart\n",
              "  next: lockstep prep ", base::shell_path(folder), " --to DIR --grid 64 --stride 4\n");
}

std::string progress_text(const sources::PackProgress& state) {
  const double seconds = std::max(state.seconds, 1e-3);
  const double rate = static_cast<double>(state.samples_done) / seconds;
  return text(format_count(state.samples_done), " of ", format_count(state.samples_done + state.samples_left), "  ",
              fixed(rate, rate < 10 ? 1 : 0), "/s  ", base::format_rate(static_cast<double>(state.bytes_in) / seconds),
              "  ", base::duration_text(static_cast<double>(state.samples_left) / std::max(rate, 1e-9)), " left");
}

}  // namespace lockstep::verbs::prep
