#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# rooms: trust
"""How far to trust a network, against torchmetrics, scikit-learn, SciPy, MAPIE and cleanlab: calibration error, Brier,
likelihood, temperature, conformal thresholds and sets (APS by its formula), label errors, distances of features, bootstrap intervals."""
import json
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import scipy.optimize
import scipy.stats
import torch
from cleanlab.count import compute_confident_joint
from cleanlab.rank import get_label_quality_scores
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import LedoitWolf
from sklearn.metrics import log_loss
from sklearn.neighbors import NearestNeighbors
from torchmetrics.functional.classification import multiclass_calibration_error

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build"))
COVERAGES = [0.8, 0.9, 0.95]
largest = {}


def compare(name, ours, theirs, tolerance=1e-6):
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    assert ours.shape == theirs.shape, (name, ours.shape, theirs.shape)
    gap = float(np.max(np.abs(ours - theirs) / np.maximum(1, np.abs(theirs)))) if ours.size else 0.0
    largest[name] = max(largest.get(name, 0), gap)
    assert gap <= tolerance, (name, gap)


def softmax(logits, temperature=1.0):
    return scipy.special.softmax(logits.astype(np.float64) / temperature, axis=1)


class Fitted(ClassifierMixin, BaseEstimator):
    """A classifier that was fitted before: its rows are logits."""

    def __init__(self, classes=2):
        self.classes = classes

    def fit(self, rows, labels):
        self.classes_ = np.arange(self.classes)
        self.fitted_ = True
        return self

    def predict_proba(self, rows):
        return softmax(rows)

    def predict(self, rows):
        return softmax(rows).argmax(axis=1)


def adaptive_error(top, right, bins):
    order = np.argsort(top, kind="stable")
    parts = np.array_split(order, bins)
    return sum(abs(np.sum(right[part]) - np.sum(top[part])) for part in parts) / len(top)


def draw(rng, rows, classes, noise):
    logits = (2 * rng.standard_normal((rows, classes))).astype(np.float32)
    labels = np.array([rng.choice(classes, p=row) for row in softmax(logits)])
    flipped = rng.random(rows) < noise
    labels[flipped] = rng.integers(classes, size=int(flipped.sum()))
    return (logits * np.float32(rng.uniform(0.5, 3))), labels


def check_classes(ours, logits, labels, others):
    shares = softmax(logits)
    top, right = shares.max(axis=1), shares.argmax(axis=1) == labels
    compare("ece", ours["ece"], multiclass_calibration_error(torch.tensor(shares), torch.tensor(labels),
                                                             num_classes=logits.shape[1], n_bins=15))
    compare("adaptive ece", ours["adaptive_ece"], adaptive_error(top, right, 15))
    compare("brier", ours["brier"], np.mean(np.sum((shares - np.eye(logits.shape[1])[labels]) ** 2, axis=1)))
    compare("nll", ours["nll"], log_loss(labels, shares, labels=np.arange(logits.shape[1])))
    nll = lambda log: log_loss(labels, softmax(logits, np.exp(log)), labels=np.arange(logits.shape[1]))
    best = scipy.optimize.minimize_scalar(nll, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10})
    compare("nll at the temperature", ours["calibrated_nll"], best.fun, 1e-9)
    # The likelihood is flat there; its slope by 1/T, E_p[z] - z_y, is not.
    wide = logits.astype(np.float64)
    slope = lambda inverse: np.mean(np.sum(softmax(wide, 1 / inverse) * wide, axis=1) - wide[np.arange(len(wide)), labels])
    compare("temperature", ours["temperature"], 1 / scipy.optimize.brentq(slope, np.exp(-3), np.exp(3), xtol=1e-13, rtol=1e-14))
    order = np.argsort(-top, kind="stable")
    compare("aurc", ours["aurc"], np.mean(np.cumsum(~right[order]) / np.arange(1, len(top) + 1)))
    compare("energy", ours["energy"], 2 * scipy.special.logsumexp(logits[0].astype(np.float64) / 2))

    network = Fitted(logits.shape[1]).fit(logits, labels)
    conformal = SplitConformalClassifier(network, confidence_level=COVERAGES, conformity_score="lac", prefit=True)
    conformal.conformalize(logits, labels)
    sets = conformal.predict_set(others)[1]  # [rows, classes, coverages]
    compare("lac thresholds", ours["thresholds"], conformal._mapie_classifier.conformity_score_function_.quantiles_)
    first = softmax(others).argmax(axis=1)
    for k in range(len(COVERAGES)):
        for i, own in enumerate(ours["sets"][k]):
            theirs = set(np.flatnonzero(sets[i, :, k])) or {first[i]}  # ours is never empty
            assert set(own) == theirs, (COVERAGES[k], i, own, theirs)

    check_adaptive_sets(ours["aps"], shares, labels, softmax(others))

    _, found = compute_confident_joint(labels, shares, return_indices_of_off_diagonals=True)
    assert sorted(ours["candidates"]) == sorted(int(i) for i in found), "label errors"
    quality = get_label_quality_scores(labels, shares, method="normalized_margin")
    compare("label quality", ours["candidate_scores"], np.sort(quality[found]))


def adaptive_scores(shares, draw):
    """Of each class: the mass of the more probable ones and its own, less a share of its own (Romano et al. 2020)."""
    return np.array([shares[shares > share].sum() + share - draw * share for share in shares])


def check_adaptive_sets(ours, shares, labels, others):
    draws, other_draws = np.array(ours["draws"]), np.array(ours["other_draws"])
    for each in (draws, other_draws):  # of each row its own, and uniform
        assert scipy.stats.kstest(each, "uniform").pvalue > 1e-4 and len(set(each)) == len(each), "draws"
    scores = np.sort([adaptive_scores(row, draw)[label] for row, draw, label in zip(shares, draws, labels)])
    compare("aps scores", ours["scores"], scores)
    for coverage, threshold, sets in zip(COVERAGES, ours["thresholds"], ours["sets"]):
        compare("aps thresholds", threshold, scores[int(np.ceil((len(scores) + 1) * coverage - 1e-9)) - 1])
        for row, draw, own in zip(others, other_draws, sets):
            theirs = set(np.flatnonzero(adaptive_scores(row, draw) <= threshold)) or {row.argmax()}
            assert set(own) == theirs, ("aps", coverage, own, theirs)


def check_features(ours, features, labels, others):
    means = np.stack([features[labels == k].mean(axis=0) for k in np.unique(labels)])
    rest = features - means[labels]
    precision = np.linalg.inv(LedoitWolf(assume_centered=True).fit(rest).covariance_)
    gaps = others[:, None, :] - means[None]
    compare("mahalanobis", ours["mahalanobis"], -np.einsum("ncd,de,nce->nc", gaps, precision, gaps).min(axis=1))
    unit = lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True)
    near = NearestNeighbors(n_neighbors=5).fit(unit(features))
    compare("neighbour", ours["neighbour"], -near.kneighbors(unit(others))[0][:, -1])


def check_interval(ours, values, resampled):
    class Before:
        bootstrap_distribution = resampled
    theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=0, method="BCa", bootstrap_result=Before,
                                   vectorized=False).confidence_interval
    compare("bca", ours, [theirs.low, theirs.high])


def main():
    warnings.filterwarnings("ignore")
    rng = np.random.default_rng(19)
    questions, checks = [], []
    for rows, classes, noise in ((60, 3, 0.0), (400, 5, 0.1), (1500, 20, 0.05)):
        logits, labels = draw(rng, rows, classes, noise)
        others = draw(rng, 100, classes, 0)[0]
        questions.append({"logits": logits.tolist(), "labels": labels.tolist(), "others": others.tolist()})
        checks.append(lambda ours, a=(logits, labels, others): check_classes(ours, *a))
    for rows, width in ((300, 6), (80, 40), (30, 64)):
        labels = np.arange(rows) % 3
        mix = rng.standard_normal((width, width))
        draw_features = lambda count: (rng.standard_normal((count, width)) @ mix).astype(np.float32).astype(np.float64)
        features, others = draw_features(rows) + labels[:, None], draw_features(20)
        features = features.astype(np.float32).astype(np.float64)
        questions.append({"features": features.tolist(), "labels": labels.tolist(), "others": others.tolist()})
        checks.append(lambda ours, a=(features, labels, others): check_features(ours, *a))
    for values in (rng.random(80), (rng.random(200) < 0.9).astype(float)):
        resampled = rng.choice(values, (2000, len(values))).mean(axis=1)
        left_out = (values.sum() - values) / (len(values) - 1)
        questions.append({"observed": values.mean(), "resampled": resampled.tolist(), "left_out": left_out.tolist()})
        checks.append(lambda ours, a=(values, resampled): check_interval(ours, *a))
    done = subprocess.run([BUILD / "bin/trust_probe"], input="".join(json.dumps(q) + "\n" for q in questions),
                          check=True, capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(checks)
    for check, answer in zip(checks, answers):
        check(answer)
    print("trust: " + ", ".join(f"{name} {gap:.1g}" for name, gap in largest.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
