#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: task
"""KITTI's 2D object evaluation, written from its published protocol alone, and cases that can be checked by hand.

Run as an oracle it holds this implementation to the stated values; kitti_scores.py holds lockstep's to this one. Plain and
slow on purpose: lists, loops, the words of the protocol.
"""
import collections
import fractions
import sys

CLASSES = {  # class: (least overlap, neighbour class)
    "Car": (0.7, "van"),
    "Pedestrian": (0.5, "person_sitting"),
    "Cyclist": (0.5, None),
}
LEVELS = {  # level: (least height, most occlusion, most truncation)
    "easy": (40, 0, 0.15),
    "moderate": (25, 1, 0.30),
    "hard": (25, 2, 0.50),
}
POINTS = 41

Truth = collections.namedtuple("Truth", "type truncation occlusion box")
Detection = collections.namedtuple("Detection", "type box score")


def area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


def intersection(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def overlap_of_union(a, b):
    common = intersection(a, b)
    return common / (area(a) + area(b) - common) if common > 0 else 0.0


def overlap_of_first(a, b):
    common = intersection(a, b)
    return common / area(a) if common > 0 else 0.0


def truth_state(truth, name, level):
    """0 counts, 1 may be found without counting, -1 is none of this class's business."""
    least_height, most_occlusion, most_truncation = LEVELS[level]
    kind = truth.type.lower()
    if kind == CLASSES[name][1]:
        return 1
    if kind != name.lower():
        return -1
    beyond = (truth.box[3] - truth.box[1] < least_height or truth.occlusion > most_occlusion
              or truth.truncation > most_truncation)
    return 1 if beyond else 0


def detection_state(detection, name, level, low_rule):
    if low_rule and int(abs(detection.box[3] - detection.box[1])) < LEVELS[level][0]:
        return 1  # whatever its class
    return 0 if detection.type.lower() == name.lower() else -1


class Image:
    """One image as a class at a level sees it."""

    def __init__(self, truths, detections, name, level, low_rule):
        self.least = CLASSES[name][0]
        self.truths = [(t, truth_state(t, name, level)) for t in truths]
        self.regions = [t.box for t in truths if t.type.lower() == "dontcare"]
        self.detections = [(d, detection_state(d, name, level, low_rule)) for d in detections]

    def num_valid(self):
        return sum(state == 0 for _, state in self.truths)

    def candidates(self, truth, assigned, threshold):
        for index, (detection, state) in enumerate(self.detections):
            if state == -1 or index in assigned or (threshold is not None and detection.score < threshold):
                continue
            overlap = overlap_of_union(detection.box, truth.box)
            if overlap > self.least:
                yield index, detection, state, overlap

    def true_scores(self):
        """Pass A: each truth in the order of the file takes the candidate of the highest score, the first of equals."""
        scores, assigned = [], set()
        for truth, state in self.truths:
            if state == -1:
                continue
            best = None
            for candidate in self.candidates(truth, assigned, None):
                if best is None or candidate[1].score > best[1].score:
                    best = candidate
            if best is None:
                continue
            assigned.add(best[0])
            if state == 0 and best[2] == 0:
                scores.append(best[1].score)
        return scores

    def counts(self, threshold):
        """Pass B: true and false positives among the detections that score the threshold or more."""
        true_positives, assigned = 0, set()
        for truth, state in self.truths:
            if state == -1:
                continue
            best = None
            for candidate in self.candidates(truth, assigned, threshold):
                if candidate[2] == 0:
                    if best is None or best[2] == 1 or candidate[3] > best[3]:
                        best = candidate
                elif best is None:
                    best = candidate
            if best is None:
                continue
            assigned.add(best[0])
            if state == 0 and best[2] == 0:
                true_positives += 1
        false_positives = 0
        for index, (detection, state) in enumerate(self.detections):
            if state != 0 or index in assigned or detection.score < threshold:
                continue
            if any(overlap_of_first(detection.box, region) > self.least for region in self.regions):
                continue
            false_positives += 1
        return true_positives, false_positives


def thresholds_of(scores, num_valid):
    """The scores at which recall comes nearest to 0, 1/40, 2/40, ..."""
    kept, recall = [], 0.0
    scores = sorted(scores, reverse=True)
    for i, score in enumerate(scores):
        last = i == len(scores) - 1
        left = (i + 1) / num_valid
        right = left if last else (i + 2) / num_valid
        if right - recall < recall - left and not last:
            continue
        kept.append(score)
        recall += 1.0 / (POINTS - 1.0)
    return kept[:POINTS]


def score(images, name, level, low_rule=True):
    """[(truths, detections)] of all images -> (AP11, AP40, mean of 41, valid truths)."""
    images = [Image(truths, detections, name, level, low_rule) for truths, detections in images]
    num_valid = sum(image.num_valid() for image in images)
    thresholds = thresholds_of([s for image in images for s in image.true_scores()], num_valid)
    precision = [0.0] * POINTS
    for k, threshold in enumerate(thresholds):
        counts = [image.counts(threshold) for image in images]
        true_positives, false_positives = (sum(column) for column in zip(*counts))
        if true_positives + false_positives > 0:
            precision[k] = true_positives / (true_positives + false_positives)
    for k in range(POINTS - 2, -1, -1):
        precision[k] = max(precision[k], precision[k + 1])
    return sum(precision[0::4]) / 11, sum(precision[1:]) / 40, sum(precision) / 41, num_valid


def truth(box, type="Car", truncation=0.0, occlusion=0):
    return Truth(type, truncation, occlusion, tuple(map(float, box)))


def found(box, score=0.9, type="Car"):
    return Detection(type, tuple(map(float, box)), score)


def worked_images():
    """50 images with a near and a far car, a van, a region nobody labelled, and a detection of every sort."""
    images = []
    for k in range(50):
        e = k / 1000
        truths = [truth([100, 100, 200, 160]), truth([300, 100, 360, 130], truncation=0.2, occlusion=1),
                  truth([500, 100, 600, 160], "Van"), Truth("DontCare", -1, -1, (700.0, 100.0, 900.0, 200.0))]
        detections = [found([105, 100, 200, 160], 0.90 - e), found([300, 100, 360, 128], 0.80 - e),
                      found([500, 100, 600, 160], 0.95 - e), found([720, 110, 780, 160], 0.85 - e),
                      found([1000, 100, 1060, 160], 0.8805 - e), found([1100, 100, 1130, 120], 0.99 - e)]
        images.append((truths, detections))
    return images


WORKED = {  # (level, low_rule): AP11, AP40, mean of 41; what KITTI's own program gives
    ("easy", True): (0.837987, 0.833331, 0.837396),
    ("moderate", True): (0.765152, 0.751666, 0.757723),
    ("hard", True): (0.765152, 0.751666, 0.757723),
    ("easy", False): (0.384615, 0.384615, 0.384615),
    ("moderate", False): (0.5, 0.5, 0.5),
}

A, B = (100, 100, 200, 200), (400, 100, 500, 200)  # boxes of 100 x 100, far from each other
FAR = (800, 100, 900, 200)
NEAR_TALL, NEAR_LOW = (100, 100, 200, 150), (100, 100, 200, 139)  # overlap 39/50 = .78; the second is low for easy
# With fewer than 41 truths every true score is a threshold. So with precisions p0, p1, ... (the highest score first, each
# raised to the best behind it) AP11 = (p0 + p4 + ...)/11, AP40 = (p1 + p2 + ...)/40 and the mean is (p0 + p1 + ...)/41.
ONE = ("1/11", "0", "1/41")  # p = 1
HALF = ("1/22", "0", "1/82")  # p = 1/2: one true, one false
NONE = ("0", "0", "0")
BOTH = ("1/11", "1/40", "2/41")  # p = 1, 1


def perfect(count):
    boxes = [(20 * k, 100, 20 * k + 15, 150) for k in range(count)]
    return [truth(b) for b in boxes], [found(b, 0.9 - k / 1000) for k, b in enumerate(boxes)]


def cases():
    """(what, images, class, level, low_rule, (AP11, AP40, mean of 41) by hand)."""
    def case(what, truths, detections, expected, name="Car", level="easy", low_rule=True):
        return what, [(truths, detections)], name, level, low_rule, expected

    a = [truth(A)]
    yield case("a car that is found", a, [found(A)], ONE)
    yield case("overlap of exactly .7 is none", a, [found((100, 100, 200, 170))], NONE)
    yield case("overlap just above .7", a, [found((100, 100, 200, 170.01))], ONE)
    yield case("overlap of exactly .5 is none", [truth(A, "Pedestrian")], [found((100, 100, 200, 150), type="Pedestrian")],
               NONE, "Pedestrian")
    yield case("a pedestrian needs .5", [truth(A, "Pedestrian")], [found((100, 100, 200, 151), type="Pedestrian")], ONE,
               "Pedestrian")
    yield case("a cyclist needs .5", [truth(A, "Cyclist")], [found((100, 100, 200, 151), type="Cyclist")], ONE, "Cyclist")
    yield case("the same overlap is too little for a car", a, [found((100, 100, 200, 151))], NONE)
    yield case("no pixel is added to a side: 27.9/40 is not 28.9/41", [truth((100, 100, 140, 140))],
               [found((100, 100, 127.9, 140))], NONE)
    yield case("a false one of a higher score", a, [found(A, 0.8), found(FAR, 0.9)], HALF)
    yield case("a false one of a lower score does no harm", a, [found(A, 0.8), found(FAR, 0.7)], ONE)
    yield case("a false one of the same score counts", a, [found(A, 0.8), found(FAR, 0.8)], HALF)
    yield case("scores are on any scale", a, [found(A, -3.5), found(FAR, -3.25)], HALF)
    # Easy: t = .9 gives 1/2, t = .8 gives 2/3, which is raised to the left: p = 2/3, 2/3.
    yield case("precision is the best at this recall or a higher one", [truth(A), truth(B)],
               [found(FAR, 0.95), found(A, 0.9), found(B, 0.8)], ("2/33", "1/60", "4/123"))
    # p = 1 at .9; at .7 two are true and one false: 2/3.
    yield case("a second detection of one car is false", [truth(A), truth(B)],
               [found(A, 0.9), found((102, 100, 202, 200), 0.8), found(B, 0.7)], ("1/11", "1/60", "5/123"))
    yield case("a detection is used once", [truth(A), truth(A)], [found(A)], ONE)
    yield case("two of four are found", [truth(A), truth(B), truth(FAR), truth((800, 300, 900, 400))],
               [found(A, 0.9), found(B, 0.8)], BOTH)

    # Pass A takes by score: the first truth takes .9 and leaves .8 to the second: thresholds .9 and .8. Pass B takes by
    # overlap: at .8 the first truth takes the detection of .8 (98/102 > 90/110), the other reaches the second truth with
    # 80/120 only: one true, one false.
    yield case("thresholds by score, matches by overlap", [truth(A), truth((110, 100, 210, 200))],
               [found((90, 100, 190, 200), 0.9), found((102, 100, 202, 200), 0.8)], ("1/11", "1/80", "3/82"))
    tall = [truth(NEAR_TALL)]
    yield case("a low detection with the higher score takes the truth away", tall, [found(NEAR_LOW, 0.9), found(NEAR_TALL, 0.8)],
               NONE)
    yield case("a low detection of any class does", tall, [found(NEAR_LOW, 0.9, "Pedestrian"), found(NEAR_TALL, 0.8)], NONE)
    yield case("without the rule it is of another class", tall, [found(NEAR_LOW, 0.9, "Pedestrian"), found(NEAR_TALL, 0.8)],
               ONE, low_rule=False)
    yield case("of equal scores the first counts: the low one", tall, [found(NEAR_LOW, 0.8), found(NEAR_TALL, 0.8)], NONE)
    yield case("of equal scores the first counts: the other", tall, [found(NEAR_TALL, 0.8), found(NEAR_LOW, 0.8)], ONE)
    # At .5 the low one (.78) is met first and the other (50/68 = .735) replaces it all the same: p = 1, 1.
    yield case("a low detection gives way to any other", [truth(NEAR_TALL), truth(B)],
               [found(NEAR_LOW, 0.7), found((100, 100, 200, 168), 0.9), found(B, 0.5)], BOTH)
    yield case("a low detection is not a false one", a, [found(A, 0.8), found((800, 100, 900, 139), 0.9)], ONE)
    yield case("at another level it is", a, [found(A, 0.8), found((800, 100, 900, 139), 0.9)], HALF, level="moderate")
    yield case("without the rule it is too", a, [found(A, 0.8), found((800, 100, 900, 139), 0.9)], HALF, low_rule=False)
    yield case("a truth that meets a low detection alone is not found", tall, [found(NEAR_LOW)], NONE)
    yield case("but at a level where it is high enough", tall, [found(NEAR_LOW)], ONE, level="moderate")
    yield case("a detection's height is cut to a whole number", [truth((100, 100, 200, 145))], [found((100, 100, 200, 139.99))],
               NONE)
    yield case("40 is not low", [truth((100, 100, 200, 145))], [found((100, 100, 200, 140))], ONE)
    yield case("24.99 is low for moderate", [truth((100, 100, 200, 130))], [found((100, 100, 200, 124.99))], NONE,
               level="moderate")
    yield case("a truth's height is not cut: 39.99 is too low", [truth((100, 100, 200, 139.99))],
               [found((100, 100, 200, 140))], NONE)
    yield case("a truth of 40 counts", [truth((100, 100, 200, 140))], [found((100, 100, 200, 140))], ONE)

    for level, most in (("easy", 0), ("moderate", 1), ("hard", 2)):
        yield case(f"{level} takes occlusion {most}", [truth(A, occlusion=most)], [found(A)], ONE, level=level)
        yield case(f"{level} ignores occlusion {most + 1}", [truth(A, occlusion=most + 1)], [found(A)], NONE, level=level)
    for level, most in (("easy", 0.15), ("moderate", 0.30), ("hard", 0.50)):
        yield case(f"{level} takes truncation {most}", [truth(A, truncation=most)], [found(A)], ONE, level=level)
        yield case(f"{level} ignores truncation above {most}", [truth(A, truncation=most + 0.01)], [found(A)], NONE, level=level)
    yield case("a detection of an ignored truth is not false", [truth(A), truth(B, occlusion=3)],
               [found(A, 0.8), found(B, 0.9)], ONE)
    yield case("an ignored truth that comes first takes the detection", [truth(A, occlusion=3), truth(A)], [found(A)], NONE)
    yield case("one that comes later does not", [truth(A), truth(A, occlusion=3)], [found(A)], ONE)

    yield case("a van is a car's neighbour", [truth(A), truth(B, "Van")], [found(A, 0.8), found(B, 0.9)], ONE)
    yield case("a truck is not", [truth(A), truth(B, "Truck")], [found(A, 0.8), found(B, 0.9)], HALF)
    pedestrian, cyclist = truth(A, "Pedestrian"), truth(A, "Cyclist")
    yield case("a person sitting is a pedestrian's neighbour", [pedestrian, truth(B, "Person_sitting")],
               [found(A, 0.8, "Pedestrian"), found(B, 0.9, "Pedestrian")], ONE, "Pedestrian")
    yield case("a cyclist is not", [pedestrian, truth(B, "Cyclist")],
               [found(A, 0.8, "Pedestrian"), found(B, 0.9, "Pedestrian")], HALF, "Pedestrian")
    yield case("a cyclist has no neighbour", [cyclist, truth(B, "Person_sitting")],
               [found(A, 0.8, "Cyclist"), found(B, 0.9, "Cyclist")], HALF, "Cyclist")
    yield case("detections of other classes do not count", a, [found(A, 0.8), found(FAR, 0.9, "Pedestrian")], ONE)
    yield case("types are case-blind", [truth(A, "CAR"), truth(B, "vAN")], [found(A, 0.8, "car"), found(B, 0.9, "cAr")], ONE)

    region = Truth("DontCare", -1, -1, (630.0, 0.0, 1000.0, 400.0))
    yield case("a detection in a region of DontCare is not false", [truth(A), region], [found(A, 0.8), found(FAR, 0.9)], ONE)
    yield case("the share of the detection counts: .7 is too little", [truth(A), region],
               [found(A, 0.8), found((600, 100, 700, 200), 0.9)], HALF)
    yield case(".71 is enough", [truth(A), region], [found(A, 0.8), found((601, 100, 701, 200), 0.9)], ONE)
    yield case("two regions excuse one detection once", [truth(A), region, region],
               [found(A, 0.8), found(FAR, 0.9), found((400, 300, 500, 400), 0.9)], HALF)
    yield case("dontcare is case-blind", [truth(A), region._replace(type="dontcare")], [found(A, 0.8), found(FAR, 0.9)], ONE)

    yield case("nothing there, nothing found", [], [], NONE)
    yield case("nothing found", a, [], NONE)
    yield case("a detection where nothing is", [], [found(A)], NONE)
    yield ("a false one in an image without a label", [(a, [found(A, 0.8)]), ([], [found(FAR, 0.9)])], "Car", "easy", True, HALF)
    yield ("an image without a detection", [(a, [found(A, 0.8)]), ([truth(B)], [])], "Car", "easy", True, ONE)
    yield ("images are apart", [(a, [found(B)]), ([truth(B)], [found(A)])], "Car", "easy", True, NONE)
    # Fewer than 41 truths: n thresholds, p = 1 each.
    yield case("5 of 5", *perfect(5), ("2/11", "4/40", "5/41"))
    yield case("10 of 10", *perfect(10), ("3/11", "9/40", "10/41"))
    yield case("40 of 40", *perfect(40), ("10/11", "39/40", "40/41"))
    yield case("41 of 41", *perfect(41), ("1", "1", "1"))


def main():
    wrong = 0
    checked = list(cases())
    for what, images, name, level, low_rule, expected in checked:
        got = score(images, name, level, low_rule)
        if any(abs(ours - float(fractions.Fraction(hand))) > 1e-12 for ours, hand in zip(got, expected)):
            print(f"FAIL {what}: {got[:3]}, by hand {expected}")
            wrong += 1
    for (level, low_rule), expected in WORKED.items():
        got = score(worked_images(), "Car", level, low_rule)
        if any(abs(ours - theirs) > 1e-6 for ours, theirs in zip(got, expected)):
            print(f"FAIL worked case, {level}, low rule {low_rule}: {got[:3]}, expected {expected}")
            wrong += 1
    print(f"kitti_protocol: {len(checked)} cases by hand and {len(WORKED)} of KITTI's program, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
