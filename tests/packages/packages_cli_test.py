#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is installed works by itself: components, programs that find it by CMake and by pkg-config, TensorRT's names, and Debian
packages, unpacked into a root folder in which there is nothing else."""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENT = (ROOT / "tests/packages/client.cpp", ROOT / "tests/packages/wrapper_client.cpp", ROOT / "tests/api/run_plan.h")
CACHE = (BUILD / "CMakeCache.txt").read_text()
VERSION = re.search("CMAKE_PROJECT_VERSION:STATIC=(.*)", CACHE)[1]
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(client CXX)
find_package(lathe {version} REQUIRED COMPONENTS {components})
foreach(component {components})
  add_executable(client_${{component}} client.cpp)
  target_link_libraries(client_${{component}} PRIVATE lathe::${{component}})
endforeach()
"""
COMPONENTS = {"full": "lathe", "lean": "lathe-lean", "dispatch": "lathe-dispatch",
              "full_10": "lathe-10", "lean_10": "lathe-lean-10", "dispatch_10": "lathe-dispatch-10"}
PACKAGES = {"liblathe0": ["usr/lib/liblathe.so.0", "usr/lib/compat/11/libnvinfer.so.11", "usr/libexec/lathe/lathe-compiler"],
            "liblathe-lean0": ["usr/lib/liblathe_lean.so.0", "usr/lib/compat/10/libnvinfer_lean.so.10"],
            "liblathe-dispatch0": ["usr/lib/liblathe_dispatch.so.0", "usr/lib/compat/11/libnvinfer_dispatch.so.11"],
            "liblathe-wrapper0": ["usr/lib/liblathe_wrapper.so.0", "usr/lib/liblathe_wrapper_10.so.0"],
            "lathe": ["usr/bin/lathe", "usr/bin/trtexec"],
            "liblathe-dev": ["usr/include/NvInfer.h", "usr/include/lathe.h", "usr/include/lathe_wrapper.h",
                              "usr/lib/liblathe_lean.so", "usr/lib/liblathe_wrapper.so",
                             "usr/lib/cmake/lathe/lathe-config.cmake", "usr/lib/pkgconfig/lathe-lean.pc",
                             "usr/lib/compat/11/libnvinfer.so"]}


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


def checked(*command, **options):
    result = run(*command, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def configured(sources, prefix):
    """What CMake says of a project that finds Lathe there. What its programs have in common is compiled once."""
    launcher = shutil.which("ccache")
    return run("cmake", "-S", sources, "-B", sources / "built", f"-DCMAKE_PREFIX_PATH={prefix}",
               *([f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []))


@functools.cache
def compiled(source, *flags):
    """Once with equal flags."""
    made = source.with_suffix(f".{len(list(source.parent.iterdir()))}.o")
    checked("g++", "-std=c++17", *flags, "-c", source, "-o", made)
    return made


def install(prefix, *components):
    for component in components:
        checked("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)


def in_root(root, *command):
    """Runs the command where `root` is all there is."""
    enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot"]
    return run(*enter, root, *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LATHE_TARGET": "cpu"})


def copy_needed(program, root):
    """The system's libraries that a program needs, and its loader, to the same places below `root`."""
    for path in re.findall(r"(/\S+) \(0x", checked("ldd", program)):
        if not (root / path[1:]).exists():
            (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path[1:])


@unittest.skipIf("LATHE_SANITIZE:STRING=\n" not in CACHE, "programs would have to be linked with the sanitizers, too")
class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.prefix = cls.folder / "installed"
        install(cls.prefix, "full", "lean", "dispatch", "wrapper", "tools", "dev")
        cls.given = cls.folder / "given"
        cls.given.mkdir()
        np.random.default_rng(3).standard_normal((4, 1, 8, 8), np.float32).tofile(cls.given / "image")
        cls.plan = cls.folder / "plan"
        checked(cls.prefix / "bin/lathe", "build", ROOT / "examples/digits/digits.onnx", "-o", cls.plan, "--buildBudget=0",
                "--target=cpu", *(f"--{which}Shapes=image:4x1x8x8" for which in ("min", "opt", "max")))
        cls.sources = cls.folder / "client"
        cls.sources.mkdir()
        for source in CLIENT:
            shutil.copy(source, cls.sources)

    def build(self, sources):
        told = configured(sources, self.prefix)
        self.assertEqual(told.returncode, 0, told.stderr)
        checked("cmake", "--build", sources / "built")

    def told(self, *words):
        return checked("pkg-config", *words, env=os.environ | {"PKG_CONFIG_PATH": f"{self.prefix}/lib/pkgconfig"})

    def link(self, client, package, *options):
        """As pkg-config says."""
        client_object = compiled(self.sources / "client.cpp", *self.told(package, "--cflags").split())
        checked("g++", client_object, *self.told(package, "--libs").split(), *options, "-o", client)

    def check_client(self, client, generation):
        out = self.folder / f"out_{client.name}"
        out.mkdir()
        self.assertTrue(checked(client, self.plan, self.given, out).startswith(generation))
        rows = np.fromfile(out / "probabilities", np.float32).reshape(4, 10)
        np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-5)
        return rows.tobytes()

    # S176, S177, S178.
    def test_components_hold_what_is_theirs(self):
        for component, library in (("full", "lathe"), ("lean", "lathe_lean"), ("dispatch", "lathe_dispatch"),
                                   ("wrapper", "lathe_wrapper")):
            prefix = self.folder / f"only_{component}"
            install(prefix, component)
            there = {path.name for path in (prefix / "lib").glob("*.so*")}
            self.assertEqual(there, {f"lib{library}{suffix}.so.{version}" for suffix in ("", "_10")
                                     for version in ("0", VERSION)})
            soname = checked("readelf", "-d", prefix / f"lib/lib{library}.so.{VERSION}")
            self.assertIn(f"Library soname: [lib{library}.so.0]", soname)
            self.assertFalse((prefix / "include").exists())

    def test_find_package(self):
        sources = self.folder / "finds"
        shutil.copytree(self.sources, sources)
        (sources / "CMakeLists.txt").write_text(PROJECT.format(version=VERSION, components=" ".join(COMPONENTS)))
        self.build(sources)
        answers = {self.check_client(sources / f"built/client_{component}", "10" if component.endswith("_10") else "11")
                   for component in COMPONENTS}
        self.assertEqual(len(answers), 1)

    # The wrapper goes with any runtime, by CMake and by pkg-config, and needs none of their functions.
    def test_wrapper(self):
        project = PROJECT.replace("client_${{component}} client.cpp", "client_${{component}} wrapper_client.cpp")
        project += """foreach(component full lean dispatch)
  target_link_libraries(client_${{component}} PRIVATE lathe::wrapper)
  target_link_libraries(client_${{component}}_10 PRIVATE lathe::wrapper_10)
endforeach()
"""
        project = project.replace("COMPONENTS {components})", "COMPONENTS {components} wrapper wrapper_10)")
        sources = self.folder / "wraps"
        shutil.copytree(self.sources, sources)
        (sources / "CMakeLists.txt").write_text(project.format(version=VERSION, components=" ".join(COMPONENTS)))
        self.build(sources)
        image = self.given / "image"
        told = {checked(sources / f"built/client_{component}", self.plan, image) for component in COMPONENTS}
        self.assertEqual(told, {"equal records, equal answers: 4 rows that sum up to 1\n"})
        flags = self.told("--cflags", "--libs", "lathe-wrapper", "lathe-lean").split()
        client = self.folder / "wraps_by_pkg_config"
        checked("g++", "-std=c++17", sources / "wrapper_client.cpp", *flags, f"-Wl,-rpath,{self.prefix}/lib", "-o", client)
        self.assertIn(checked(client, self.plan, image), told)
        undefined = checked("nm", "-D", "--undefined-only", self.prefix / "lib/liblathe_wrapper.so.0")
        self.assertNotRegex(undefined, "nvinfer|createInfer|lathe")

    def configure(self, prefix, components):
        sources = self.folder / f"asks_{components}_{prefix.name}"
        shutil.copytree(self.sources, sources)
        (sources / "CMakeLists.txt").write_text(PROJECT.format(version=VERSION, components=components))
        return configured(sources, prefix)

    def test_what_find_package_does_not_find(self):
        small = self.folder / "small"
        install(small, "lean", "dev")
        self.assertEqual(self.configure(small, "lean").returncode, 0)
        for prefix, component in ((small, "full"), (small, "dispatch"), (small, "wrapper"), (self.prefix, "leaner")):
            refused = self.configure(prefix, component)
            self.assertNotEqual(refused.returncode, 0)
            words = " ".join(refused.stderr.split())
            self.assertIn(f"not installed in '{prefix}/lib': {component}", words)

    def test_pkg_config(self):
        answers = set()
        for component, package in COMPONENTS.items():
            client = self.folder / f"by_pkg_config_{component}"
            self.assertEqual(self.told(package, "--modversion"), VERSION + "\n")
            self.link(client, package, f"-Wl,-rpath,{self.prefix}/lib")
            answers.add(self.check_client(client, "10" if component.endswith("_10") else "11"))
        self.assertEqual(len(answers), 1)

    def test_names_of_the_original(self):
        for name, generation in (("nvinfer", 11), ("nvinfer_lean", 11), ("nvinfer_dispatch", 11), ("nvinfer", 10)):
            compat = self.prefix / f"lib/compat/{generation}"
            client = self.folder / f"by_{name}_{generation}"
            client_object = compiled(self.sources / "client.cpp", f"-DLATHE_TENSORRT_MAJOR={generation}", f"-I{self.prefix}/include")
            checked("g++", client_object, f"-L{compat}", f"-l{name}", f"-Wl,-rpath,{compat}", "-o", client)
            self.assertIn(f"[lib{name}.so.{generation}]", checked("readelf", "-d", client))
            self.check_client(client, str(generation))

    def test_debian_packages(self):
        made, root = self.folder / "debian", self.folder / "root"
        checked("cpack", "-G", "DEB", "-B", made, "--config", BUILD / "CPackConfig.cmake", cwd=self.folder)
        root.mkdir()
        packages = {path.name.split("_")[0]: path for path in made.glob("*.deb")}
        self.assertEqual(packages.keys(), PACKAGES.keys())
        depends = {name: checked("dpkg-deb", "--field", path, "Depends") for name, path in packages.items()}
        self.assertIn(f"liblathe-lean0 (= {VERSION}", depends["liblathe0"])
        self.assertIn(f"liblathe0 (= {VERSION}", depends["lathe"])
        for name in ("liblathe0", "liblathe-lean0", "liblathe-dispatch0"):
            self.assertRegex(depends[name], r"libc6 \(>= [\d.]+\)")
            self.assertIn("libstdc++6 (>=", depends[name])
        for name in ("liblathe-lean0", "liblathe-dispatch0"):  # alone, without what the others bring
            self.check_in_root(packages, root / name, name)
        for name, path in packages.items():
            checked("dpkg-deb", "-x", path, root / "all")
            for file in PACKAGES[name]:
                self.assertTrue(os.path.lexists(root / "all" / file), file)  # a link may lead to a file of another package
        for file in sum(PACKAGES.values(), []):
            self.assertTrue((root / "all" / file).exists(), file)
        copy_needed(BUILD / "bin/lathe", root / "all")
        told = in_root(root / "all", "/usr/bin/lathe", "--version")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn(VERSION, told.stdout)

    def check_in_root(self, packages, root, name):
        for part in {name, "liblathe-lean0"}:  # to which the dispatching library hands plans
            checked("dpkg-deb", "-x", packages[part], root)
        library = name.removeprefix("lib").removesuffix("0")
        client = root / "client"
        self.link(client, library)
        copy_needed(self.prefix / f"lib/lib{library.replace('-', '_')}.so.0", root)
        shutil.copy(self.plan, root / "plan")
        shutil.copytree(self.given, root / "given")
        (root / "out").mkdir()
        done = in_root(root, "/client", "/plan", "/given", "/out")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = np.fromfile(root / "out/probabilities", np.float32).reshape(4, 10)
        np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
