#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tones that one chart uses are told apart by every eye: in light and in dark, as they are and as people without red,
green or blue cones see them, any two are at least so far apart (CIEDE2000; about 1 is just seen side by side). Which tones
meet in a chart is read from the pages' own lists; the tones of the pages from their style sheets.

tones.py [--show]: also prints the closest pairs.
"""
import itertools
import math
import pathlib
import re
import sys

WEB = pathlib.Path(__file__).resolve().parent.parent.parent / "lockstep" / "web"
LEAST = 10.0  # between the tones of a chart; a list of more than eight has a lower bound of its own
LEAST_OF_MANY = 8.0  # layers and parts whose names stand beside them in their order
# Machado, Oliveira and Fernandes 2009, "A physiologically-based model for simulation of color vision deficiency", IEEE
# TVCG 15(6), table 1, severity 1.0: of linear RGB.
SEEN_AS = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900))}
TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))  # sRGB, D65
WHITE = (0.95047, 1.0, 1.08883)


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def linear(tone):
    parts = [int(tone[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def lab(rgb):
    shares = [value / white for value, white in zip(times(TO_XYZ, rgb), WHITE)]
    x, y, z = (share ** (1 / 3) if share > 216 / 24389 else (24389 / 27 * share + 16) / 116 for share in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one, other):
    """CIEDE2000, as Sharma, Wu and Dalal 2005 have it."""
    (light_1, a_1, b_1), (light_2, a_2, b_2) = one, other
    chroma = (math.hypot(a_1, b_1) + math.hypot(a_2, b_2)) / 2
    stretch = 1 + (1 - math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7))) / 2
    chroma_1, chroma_2 = math.hypot(stretch * a_1, b_1), math.hypot(stretch * a_2, b_2)
    hue_1, hue_2 = (math.degrees(math.atan2(b, stretch * a)) % 360 for a, b in ((a_1, b_1), (a_2, b_2)))
    is_grey = chroma_1 * chroma_2 == 0
    turn = 0 if is_grey else (hue_2 - hue_1 + 180) % 360 - 180
    hue = hue_1 + hue_2 if is_grey else (hue_1 + turn / 2) % 360
    d_light, d_chroma = light_2 - light_1, chroma_2 - chroma_1
    d_hue = 2 * math.sqrt(chroma_1 * chroma_2) * math.sin(math.radians(turn / 2))
    light, chroma = (light_1 + light_2) / 2, (chroma_1 + chroma_2) / 2
    wave = (1 - 0.17 * math.cos(math.radians(hue - 30)) + 0.24 * math.cos(math.radians(2 * hue))
            + 0.32 * math.cos(math.radians(3 * hue + 6)) - 0.20 * math.cos(math.radians(4 * hue - 63)))
    by_light = d_light / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2))
    by_chroma, by_hue = d_chroma / (1 + 0.045 * chroma), d_hue / (1 + 0.015 * chroma * wave)
    rotation = (-2 * math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7))
                * math.sin(math.radians(60 * math.exp(-((hue - 275) / 25) ** 2))))
    return math.sqrt(by_light ** 2 + by_chroma ** 2 + by_hue ** 2 + rotation * by_chroma * by_hue)


def check_difference():
    """Pairs of Sharma's test data, the third of them across 0 degrees of hue."""
    for one, other, known in (((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425), ((50, 2.5, 0), (73, 25, -18), 27.1492),
                              ((50, -1, 2), (50, 0, 0), 2.3669), ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082)):
        assert abs(difference(one, other) - known) < 1e-4, (one, other, difference(one, other), known)


def seen(tone, matrix):
    return lab([min(1.0, max(0.0, value)) for value in times(matrix, linear(tone))])


def tones_of(scheme, *files):
    tones = {}
    for file in files:
        light, _, dark = file.read_text().partition("@media (prefers-color-scheme: dark)")
        tones |= dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", light if scheme == "light" else dark))
    return tones


def charts():
    """The lists of tones that pages draw with: name, tones in order."""
    for file in sorted(WEB.rglob("*.js")):
        source = file.read_text()
        for match in re.finditer(r"const (\w*[tT]ones) = (\[[^\]]*\]|\{[^}]*\})", source):
            found = re.findall(r'"(\w+)"(?=\s*[,\]}])', match[2])
            yield f"{file.parent.name}/{file.name} {match[1]}", list(dict.fromkeys(found))


def main():
    check_difference()
    sheets = [WEB / "shared" / "page.css", WEB / "plan" / "own.css"]
    lists, wrong = list(charts()), []
    assert len(lists) >= 7, ("lists of tones were found", lists)
    for scheme in ("light", "dark"):
        tones = tones_of(scheme, *sheets)
        for name, used in lists:
            least = LEAST_OF_MANY if len(used) > 8 else LEAST
            pairs = sorted((difference(seen(tones[one], matrix), seen(tones[other], matrix)), eye, one, other)
                           for one, other in itertools.combinations(used, 2) for eye, matrix in SEEN_AS.items())
            wrong += [f"{scheme}, {name}: {one} and {other} are {apart:.1f} apart with {eye}, not {least:.1f}"
                      for apart, eye, one, other in pairs if apart < least]
            if "--show" in sys.argv:
                print(scheme, name, len(used), *(f"{one}/{other} {apart:.1f} {eye}" for apart, eye, one, other in pairs[:3]), sep="; ")
    assert not wrong, "\n".join(wrong)
    print(f"tones.py: {len(lists)} lists of tones, light and dark, are told apart by {len(SEEN_AS)} kinds of eyes")


if __name__ == "__main__":
    main()
