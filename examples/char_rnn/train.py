#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small LSTM, character by character, to say one sentence, and writes its weights as text: in some seconds,
with numpy alone. Each matrix is a line `name rows columns` and its numbers, row by row."""
import pathlib

import numpy as np

SENTENCE = ("the builder reads a network, times kernels on the target and writes a plan. "
            "the runtime loads the plan and runs it on a gpu or a cpu.\n")
HIDDEN, STEPS, RATE = 40, 1500, 0.01


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Lstm:
    """Gates are input, forget, cell and output, side by side."""

    def __init__(self, letters, hidden, random):
        def matrix(rows, columns):
            return random.standard_normal((rows, columns)) / np.sqrt(rows)
        self.letter = matrix(letters, 4 * hidden)  # a row for each letter: what it adds to the gates
        self.state = matrix(hidden, 4 * hidden)
        self.gates = np.zeros((1, 4 * hidden))
        self.gates[0, hidden:2 * hidden] = 1  # remember, at first
        self.next = matrix(hidden, letters)
        self.bias = np.zeros((1, letters))

    def weights(self):
        return vars(self)

    def forward(self, text):
        hidden = self.state.shape[0]
        h, c, steps = np.zeros(hidden), np.zeros(hidden), []
        for letter in text:
            i, f, g, o = np.split(self.letter[letter] + h @ self.state + self.gates[0], 4)
            i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
            before = h, c
            c = f * c + i * g
            h = o * np.tanh(c)
            steps.append((letter, before, (i, f, g, o), h, c))
        logits = np.stack([step[3] for step in steps]) @ self.next + self.bias
        return steps, logits

    def gradients(self, text, wanted):
        steps, logits = self.forward(text)
        likely = np.exp(logits - logits.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        loss = -np.log(likely[np.arange(len(wanted)), wanted]).mean()
        error = likely
        error[np.arange(len(wanted)), wanted] -= 1
        error /= len(wanted)
        found = {name: np.zeros_like(value) for name, value in self.weights().items()}
        found["next"] = np.stack([step[3] for step in steps]).T @ error
        found["bias"] = error.sum(axis=0, keepdims=True)
        dh, dc = np.zeros(self.state.shape[0]), np.zeros(self.state.shape[0])
        for (letter, (h, c), (i, f, g, o), _, after), of_logits in zip(reversed(steps), reversed(error)):
            dh = dh + self.next @ of_logits
            squashed = np.tanh(after)
            dc = dc + dh * o * (1 - squashed ** 2)
            gates = np.concatenate([dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g ** 2), dh * squashed * o * (1 - o)])
            found["letter"][letter] += gates
            found["state"] += np.outer(h, gates)
            found["gates"][0] += gates
            dh, dc = self.state @ gates, dc * f
        return loss, found


def train(model, text, wanted):
    """Adam (Kingma and Ba, 2014)."""
    mean = {name: np.zeros_like(value) for name, value in model.weights().items()}
    square = {name: np.zeros_like(value) for name, value in model.weights().items()}
    for step in range(1, STEPS + 1):
        loss, gradients = model.gradients(text, wanted)
        for name, gradient in gradients.items():
            mean[name] = 0.9 * mean[name] + 0.1 * gradient
            square[name] = 0.999 * square[name] + 0.001 * gradient ** 2
            rate = RATE * np.sqrt(1 - 0.999 ** step) / (1 - 0.9 ** step)
            model.weights()[name] -= rate * mean[name] / (np.sqrt(square[name]) + 1e-8)
        if step % 250 == 0:
            print(f"step {step}: loss {loss:.4f}")


def main():
    letters = sorted(set(SENTENCE))
    text = [letters.index(letter) for letter in SENTENCE]
    model = Lstm(len(letters), HIDDEN, np.random.default_rng(1))
    train(model, text, text[1:] + text[:1])
    with open(pathlib.Path(__file__).parent / "weights.txt", "w", encoding="ascii") as file:
        file.write(f"letters {len(letters)} 1\n" + " ".join(str(ord(letter)) for letter in letters) + "\n")
        for name, value in model.weights().items():
            file.write(f"{name} {value.shape[0]} {value.shape[1]}\n")
            for row in value:
                file.write(" ".join(f"{number:.3g}" for number in row) + "\n")


if __name__ == "__main__":
    main()
