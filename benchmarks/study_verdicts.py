"""How the weights of ``hybrid_ir/reasoning/studies.py`` were fitted, on PubMedQA's training half alone.

    python benchmarks/study_verdicts.py --data FOLDER

Multinomial logistic regression on standardised signs, with half a squared weight of RIDGE, then
MAYBE times the odds of ``maybe``, which is a ninth of the answers and would never be said.
Prints the weights and what ten-fold cross-validation gives on the same 500 questions.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hybrid_ir.evaluation.answers import accuracy, macro_f1
from hybrid_ir.evaluation.sets.datasets import pubmedqa_pairs
from hybrid_ir.reasoning.studies import SIGNS, VERDICTS, signs
from hybrid_ir.text import sentence_spans

RIDGE = 10.0
MAYBE = 2.5
FOLDS = 10
SEEDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    given = parser.parse_args()
    rows, labels = training(Path(given.data))
    for word, bias, weights in fit(rows, labels):
        print(f"{word}: {bias:.2f}", {sign: round(float(w), 2) for sign, w in zip(SIGNS, weights, strict=True)})
    correct, f1 = zip(*(cross_validated(rows, labels, seed) for seed in range(SEEDS)), strict=True)
    print(f"ten folds, mean of {SEEDS}: accuracy {np.mean(correct):.3f}, macro-F1 {np.mean(f1):.3f}")


def training(data: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(signs of shape (questions, signs), labels as places in VERDICTS) of the training half."""
    rows, labels = [], []
    for question, abstract in pubmedqa_pairs(data, "cv"):
        sentences = [abstract[start:end] for start, end in sentence_spans(abstract)]
        rows.append(signs(question.question, sentences))
        labels.append(VERDICTS.index(question.options[question.answer]))
    return np.array(rows), np.array(labels)


def fit(rows: NDArray[np.float64], labels: NDArray[np.int64]) -> list[tuple[str, float, NDArray[np.float64]]]:
    """(verdict, bias, weights of the raw signs) of ``no`` and ``maybe``, less those of ``yes``."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    x = (rows - mean) / spread
    wanted = np.eye(len(VERDICTS))[labels]

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        table = flat.reshape(len(VERDICTS), -1)
        scores = x @ table[:, 1:].T + table[:, 0]
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        apart = chances - wanted
        slope = np.column_stack([apart.sum(axis=0), apart.T @ x + RIDGE * table[:, 1:]])
        value = -np.log((chances * wanted).sum(axis=1)).sum() + RIDGE / 2 * (table[:, 1:] ** 2).sum()
        return float(value), slope.ravel()

    found = minimize(loss, np.zeros(len(VERDICTS) * (len(SIGNS) + 1)), jac=True, method="L-BFGS-B")
    table = np.asarray(found.x).reshape(len(VERDICTS), -1)
    table = table[1:] - table[0]
    fitted = []
    for word, (bias, *scaled) in zip(VERDICTS[1:], table, strict=True):
        weights = np.array(scaled) / spread
        extra = np.log(MAYBE) if word == "maybe" else 0.0
        fitted.append((word, float(bias - weights @ mean + extra), weights))
    return fitted


def cross_validated(rows: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> tuple[float, float]:
    """(accuracy, macro-F1) of predictions for each fold by what was fitted on the others."""
    fold = np.random.default_rng(seed).permutation(len(rows)) % FOLDS
    said = [""] * len(rows)
    for number in range(FOLDS):
        fitted = fit(rows[fold != number], labels[fold != number])
        for place in np.flatnonzero(fold == number):
            scores = [0.0, *(bias + float(weights @ rows[place]) for _, bias, weights in fitted)]
            said[int(place)] = VERDICTS[int(np.argmax(scores))]
    truth = [VERDICTS[int(label)] for label in labels]
    return accuracy(truth, said), macro_f1(truth, said)


if __name__ == "__main__":
    main()
