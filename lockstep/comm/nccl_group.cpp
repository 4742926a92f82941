// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/nccl_group.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/backed_group.h"
#include "lockstep/comm/call_record.h"
#include "lockstep/comm/relayed_backend.h"
#include "lockstep/site/interface.h"
#include "lockstep/site/launch.h"
#include "plugins/cuda/nccl_plugin.h"

namespace lockstep::comm {
namespace {

using base::Blame;
using base::Error;
using base::text;

const lockstep_nccl& open_nccl_plugin() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&nccl_group), &here);
  const auto file = base::Path(here.dli_fname ? here.dli_fname : "").parent_path() / "liblockstep_nccl.so";
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    throw Error(Blame::machine, text("several ranks on GPUs need the NCCL plug-in: ", dlerror()),
                "build beside the full wheel torch==2.11.0 with its CUDA packages, or use one rank");
  }
  using Entry = const lockstep_nccl* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, LOCKSTEP_NCCL_ENTRY));
  if (!entry || entry()->version != LOCKSTEP_NCCL_VERSION) {
    throw Error(Blame::machine, text(file.string(), " is no NCCL plug-in of version ", LOCKSTEP_NCCL_VERSION),
                "build plugins/cuda of this version again");
  }
  return *entry();
}

c10::intrusive_ptr<c10d::Backend> nccl_backend(const Rendezvous& meeting) {
  make_private_folder(meeting.folder);
  const site::Launch launch = site::read_launch();
  const std::string interface = site::rank_interface(launch.local_size == launch.size);
  if (!interface.empty()) ::setenv("NCCL_SOCKET_IFNAME", interface.c_str(), 0);  // where NCCL listens
  const lockstep_nccl& nccl = open_nccl_plugin();
  const auto store =
      c10::make_intrusive<c10d::FileStore>((meeting.folder / "store").string(), static_cast<int>(meeting.size));
  c10d::Backend* made = nccl.make(store.get(), static_cast<int32_t>(meeting.rank), static_cast<int32_t>(meeting.size),
                                  meeting.timeout_seconds);
  if (!made) {
    throw Error(Blame::machine, text(nccl.library(), ": ", nccl.failure()), "`lockstep doctor` says what is there");
  }
  return c10::intrusive_ptr<c10d::Backend>::reclaim(made);
}

class NcclGroup : public BackedGroup, public TellsCalls {
 public:
  NcclGroup(const c10::intrusive_ptr<c10d::Backend>& gpu, at::Device device,
            const std::shared_ptr<CallRecord>& calls = std::make_shared<CallRecord>())
      : BackedGroup(c10::make_intrusive<RelayedBackend>(gpu, device, calls)), gpu_(gpu), calls_(calls) {
    group()->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, gpu);
  }
  ~NcclGroup() override {
    release();
    gpu_->shutdown();
  }

  // Those for which the host waits: what is queued on the GPU goes on without it, and nobody hears of its end.
  CallState calls() const override {
    CallState state = calls_->state();
    state.whole = false;
    return state;
  }

  // What ends the others, and outlives the GPUs' group: the launcher's MPI, where there is one. Rank 0 removes the
  // folder in which the ranks met.
  void keep(std::unique_ptr<Group> launcher, base::Path folder) {
    launcher_ = std::move(launcher);
    folder_ = std::make_unique<Folder>(std::move(folder), rank() == 0);
  }
  [[noreturn]] void abort(int exit_code) override {
    if (launcher_) launcher_->abort(exit_code);
    std::_Exit(exit_code);  // NCCL's watchdog ends those who wait
  }

 private:
  struct Folder {  // gone with the group
    Folder(base::Path path, bool mine) : path(std::move(path)), mine(mine) {}
    ~Folder() {
      std::error_code ignored;
      if (mine) std::filesystem::remove_all(path, ignored);
    }
    base::Path path;
    bool mine;
  };

  std::unique_ptr<Group> launcher_;
  std::unique_ptr<Folder> folder_;
  c10::intrusive_ptr<c10d::Backend> gpu_;
  std::shared_ptr<CallRecord> calls_;
};

base::Path random_folder(const base::Path& parent) {
  std::filesystem::create_directories(parent);
  std::string name = (parent / "rendezvous-XXXXXX").string();
  if (!mkdtemp(name.data())) base::throw_errno(text("cannot make a folder in ", parent.string()));
  return name;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

void make_private_folder(const base::Path& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) base::throw_errno(text("cannot make ", folder.string()));
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0) base::throw_errno(text("cannot see ", folder.string()));
  if (S_ISDIR(found.st_mode) && found.st_uid == geteuid() && (found.st_mode & 077) == 0) return;
  throw Error(Blame::machine,
              text(folder.string(), " is not a folder that you alone can enter: ranks must not meet there"),
              text("chmod 700 ", base::shell_path(folder.string()), ", or remove it"));
}

std::unique_ptr<Group> nccl_group(at::Device device, const Rendezvous& meeting) {
  return std::make_unique<NcclGroup>(nccl_backend(meeting), device);
}

std::unique_ptr<Group> join_cuda_group(at::Device device, const base::Path& run) {
  const site::Launch launch = site::read_launch();
  if (const std::string folder = variable("LOCKSTEP_RENDEZVOUS"); !folder.empty()) {
    return nccl_group(device, {folder, launch.rank, launch.size});
  }
  if (!launch.has_company) return single_group();
  if (launch.launcher == "srun" && !std::getenv("PMIX_RANK") && !std::getenv("PMI_RANK")) {
    std::filesystem::create_directories(run);
    const auto folder = run / text("rendezvous-", variable("SLURM_JOB_ID"), ".", variable("SLURM_STEP_ID"), ".",
                                   variable("SLURM_RESTART_COUNT"));
    auto group = std::make_unique<NcclGroup>(nccl_backend({folder, launch.rank, launch.size}), device);
    group->keep(nullptr, folder);
    return group;
  }
  auto launcher = join_group();
  const base::Path folder = broadcast_text(*launcher, launcher->rank() == 0 ? random_folder(run).string() : "");
  auto group = std::make_unique<NcclGroup>(nccl_backend({folder, launcher->rank(), launcher->size()}), device);
  group->keep(std::move(launcher), folder);
  return group;
}

}  // namespace lockstep::comm
