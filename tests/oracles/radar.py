#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: sources task
"""Real radar files through our readers and our grid, beside MetPy, and the baselines of nowcasting on a real sequence.

The files lie in Python packages (scripts/deps.sh radar): two whole volumes of KDMX (2024-05-21), the first rays of KATX
(2013), KLOT with messages 1 (2003), and the DX frames of two German sites (2008-06-02). The figures of the volumes were
found by Py-ART and MetPy alike; those of the sequence by pysteps 1.21.5 (its dense_lucaskanade and extrapolation).
"""
import bz2
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build"))
PROBE, LOCKSTEP = BUILD / "bin/radar_probe", BUILD / "bin/lockstep"
RADAR = ROOT / ".deps/radar"
METPY = """
import json, sys, numpy
from metpy.io import Level2File
volume = Level2File(sys.argv[1])
sweep = volume.sweeps[int(sys.argv[2])]
for ray in sweep:
    moments = ray[-1]
    header, data = moments.get(b"REF") or moments["REF"]  # of messages 31 and 1
    print(f"{ray[0].az_angle:.6f}", *(f"{value:g}" for value in numpy.asarray(data)))
"""
checks = wrong = 0


def check(good, what):
    global checks, wrong
    checks += 1
    if not good:
        wrong += 1
        print(f"wrong: {what}")


def probe(*words):
    done = subprocess.run([str(PROBE), *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"radar_probe {words[0]} {words[1]}: {done.stderr}")
    return done.stdout


def numbers(text):
    return [[float(word) for word in line.split()] for line in text.splitlines()]


def unpack(folder):
    with tarfile.open(RADAR / "archives/pynexrad-0.0.33.tar.gz") as archive:
        for member in archive:
            if "/KDMX" in member.name:
                (folder / pathlib.Path(member.name).name).write_bytes(archive.extractfile(member).read())
    with tarfile.open(RADAR / "archives/wradlib-0.8.0.tar.gz") as archive:
        inner = archive.extractfile("wradlib-0.8.0/examples/data/recipe1_data.zip").read()
        for name in ("20130429043000.rad.bewid.pvol.dbzh.scan1.hdf", "knmi_polar_volume.h5"):
            (folder / name).write_bytes(archive.extractfile(f"wradlib-0.8.0/examples/data/{name}").read())
    with zipfile.ZipFile(io.BytesIO(inner)) as archive:
        for name in archive.namelist():
            (folder / pathlib.Path(name).name).write_bytes(archive.read(name))
    with zipfile.ZipFile(next(RADAR.glob("archives/arm_pyart*.whl"))) as archive:
        data = "pyart/testing/data/example_nexrad_archive_"
        (folder / "KATX_compressed").write_bytes(archive.read(f"{data}msg31_compressed.ar2v"))
        (folder / "KATX_plain").write_bytes(bz2.decompress(archive.read(f"{data}msg31.bz2")))
        (folder / "KLOT").write_bytes(bz2.decompress(archive.read(f"{data}msg1.bz2")))


def check_volumes(folder):
    golden = {
        "KDMX20240521_215236_V06": ({"rays": 720, "gates": 1832, "valid": 467938, "zero": 851102, "raw_sum": 47464855, "max": 66.0},
                                    {"valid": 80972, "from20": 36132, "from35": 8440, "from50": 1219}),
        "KDMX20240521_224629_V06": ({"rays": 720, "gates": 1832, "valid": 486369, "max": 65.0},
                                    {"valid": 92780, "from20": 46472, "from35": 13698, "from50": 2036}),
    }
    for name, (sweep, grid) in golden.items():
        volume = json.loads(probe("sweeps", folder / name))
        first = volume["sweeps"][0]
        for key, value in sweep.items():
            check(first[key] == value, f"{name}: {key} is {first[key]}, not {value}")
        check(volume["fault"] == "" and volume["site"] == "KDMX", f"{name}: {volume['fault']}")
        found = json.loads(probe("grid", folder / name, 460, 1000))
        for key, value in grid.items():
            check(found[key] == value, f"{name}: on the grid {key} is {found[key]}, not {value}")
    first = json.loads(probe("sweeps", folder / "KDMX20240521_215236_V06"))["sweeps"][0]
    check(abs(first["mean"] - 17.7170) < 5e-5, f"mean {first['mean']}")
    check(abs(first["first_azimuth"] - 81.2494) < 5e-5, f"first azimuth {first['first_azimuth']}")


def check_against_metpy(folder, name, sweeps):
    for number in sweeps:
        theirs = subprocess.run([str(RADAR / "bin/python"), "-c", METPY, str(folder / name), str(number)], capture_output=True, text=True)
        if theirs.returncode:
            sys.exit(f"MetPy on {name}: {theirs.stderr[-600:]}")
        ours, wanted = numbers(probe("values", folder / name, number)), numbers(theirs.stdout)
        check(len(ours) == len(wanted), f"{name} sweep {number}: {len(ours)} rays, MetPy has {len(wanted)}")
        same = 0
        for a, b in zip(ours, wanted):
            # MetPy marks what is below the threshold and what is range folded alike.
            plain = [value if abs(value) < 1e30 and value == value else None for value in a[1:]]
            other = [value if abs(value) < 1e30 and value == value else None for value in b[1:]]
            same += abs(a[0] - b[0]) < 1e-4 and len(plain) == len(other) and all(
                (x is None and y is None) or (x is not None and y is not None and abs(x - y) < 1e-3) for x, y in zip(plain, other))
        check(same == len(wanted), f"{name} sweep {number}: {same} of {len(wanted)} rays are MetPy's")


def check_baselines(folder):
    golden = {"tur": ([.597, .346, .202, .127], [.647, .400, .244, .176]), "fbg": ([.597, .365, .221, .119], [.686, .452, .291, .187])}
    for site, (persistence, flow) in golden.items():
        files = sorted(folder.glob(f"raa00-dx_*-{site}---bin"))
        check(len(files) == 25, f"{site}: {len(files)} frames")
        found = json.loads(probe("baselines", *files))
        print(site, {key: [round(value, 3) for value in values] for key, values in found.items()})
        for got, want in zip(found["persistence"], persistence):
            check(abs(got - want) < 0.01, f"{site}: persistence {got:.3f}, pysteps' grid {want}")
        for got, want in zip(found["flow"], flow):
            check(abs(got - want) < 0.01, f"{site}: flow {got:.3f}, pysteps {want}")
        for got, still in zip(found["flow"], found["persistence"]):
            check(got > still + 0.02, f"{site}: flow {got:.3f} is no better than persistence {still:.3f}")


def check_other_files(folder):
    katx = json.loads(probe("sweeps", folder / "KATX_compressed"))
    check(katx["site"] == "KATX" and katx["sweeps"][0]["rays"] == 120, f"KATX: {katx['sweeps'][0]}")
    check("cut off" in katx["fault"], f"KATX is cut off: {katx['fault']!r}")
    plain = json.loads(probe("sweeps", folder / "KATX_plain"))
    rays = [sweep["rays"] for sweep in plain["sweeps"]]  # of all 16 cuts, the lower two angles twice in half degrees
    check(rays == [720] * 4 + [360] * 12 and plain["fault"] == "", f"KATX, plain: sweeps of {rays} rays, {plain['fault']!r}")
    klot = json.loads(probe("sweeps", folder / "KLOT"))
    check([sweep["rays"] for sweep in klot["sweeps"]] == [367, 368, 366, 366, 366] and klot["fault"] == "", f"KLOT: {klot}")
    belgian = json.loads(probe("sweeps", folder / "20130429043000.rad.bewid.pvol.dbzh.scan1.hdf"))
    check(belgian["sweeps"][0]["rays"] == 360 and abs(belgian["latitude"] - 49.9) < 0.1, f"Wideumont: {belgian}")
    # A volume of which the lowest sweep is in part goes into no sequence, and prep says why.
    broken = folder / "broken"
    broken.mkdir()
    for number in range(3):
        (broken / f"KATX{number}").write_bytes((folder / "KATX_compressed").read_bytes())
    done = subprocess.run([str(LOCKSTEP), "prep", str(broken), "--to", str(folder / "out"), "--frames", "1", "--validate", "0"], capture_output=True, text=True)
    check(done.returncode == 2 and "its lowest sweep is missing or in part: 120 rays" in done.stderr + done.stdout, f"broken volume: {done.stderr}")


def check_our_writer(folder):
    """What the synthetic radar writes is a volume for MetPy and for h5py."""
    for kind in ("radar", "odim"):
        done = subprocess.run([str(LOCKSTEP), "prep", "--synthesize", kind, "--count", "2", "--to", str(folder / kind)], capture_output=True, text=True)
        check(done.returncode == 0, f"synthesize {kind}: {done.stderr}")
    volume = sorted((folder / "radar").glob("KSYN*"))[1]
    check_against_metpy(volume.parent, volume.name, [0])
    look = "import h5py, sys; f = h5py.File(sys.argv[1]); print(f.attrs['Conventions'].decode(), f['dataset1/data1/data'].shape, f['dataset1/where'].attrs['nbins'])"
    done = subprocess.run([str(RADAR / "bin/python"), "-c", look, str(sorted((folder / "odim").glob("*.h5"))[1])], capture_output=True, text=True)
    check("ODIM_H5/V2_3 (360, 92) 92" in done.stdout, f"h5py sees {done.stdout} {done.stderr}")


def main():
    if not (RADAR / "wheels").exists():
        sys.exit("no radar files: scripts/deps.sh radar")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        unpack(folder)
        check_volumes(folder)
        check_against_metpy(folder, "KATX_compressed", [0])
        check_against_metpy(folder, "KLOT", [0])
        if "all" in sys.argv[1:]:  # MetPy takes 20 s of processor time for a whole volume
            check_against_metpy(folder, "KDMX20240521_215236_V06", [0])
        check_other_files(folder)
        check_our_writer(folder)
        check_baselines(folder)
    print(f"radar: {checks} checks, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
