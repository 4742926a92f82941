# SPDX-License-Identifier: Apache-2.0
# spack repo add packaging/spack && spack dev-build lockstep@0.1.0      in the source tree
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Lockstep(CMakePackage):
    """Says what training a network will need on which machine, then trains it there and keeps its word."""

    license("Apache-2.0")

    version("0.1.0")

    variant("cuda", default=True, description="GPUs: the torch that is linked has CUDA")
    variant("mpi", default=True, description="several ranks, by the site's MPI")
    variant("hdf5", default=False, description="prep reads HDF5 arrays")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-torch@2.11 +cuda", when="+cuda", type=("build", "link", "run"))
    depends_on("py-torch@2.11 ~cuda", when="~cuda", type=("build", "link", "run"))
    depends_on("jpeg")
    depends_on("libpng")
    depends_on("libwebp")
    depends_on("libtiff@4.5:")
    depends_on("zlib-api")
    depends_on("bzip2")
    depends_on("liburing")
    depends_on("boost@1.81:")
    depends_on("openssl@3:")
    depends_on("mpi", when="+mpi")
    depends_on("hdf5", when="+hdf5")

    generator("ninja")
    conflicts("%gcc@:11", msg="C++20 as the code uses it needs GCC 12")

    def cmake_args(self):
        torch = self.spec["py-torch"].prefix
        python = self.spec["python"].version.up_to(2)
        return [
            self.define("LOCKSTEP_TORCH", join_path(torch, "lib", f"python{python}", "site-packages")),
            self.define("LOCKSTEP_TESTS", False),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", "~mpi" in self.spec),
        ]

    @run_after("build")
    def write_manual(self):
        with working_dir(self.build_directory):
            ninja("manual")
