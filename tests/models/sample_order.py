#!/usr/bin/env python3
"""Writes the expected orders of batches_test.cc: sample_order.py SEED EPOCH SAMPLES

An implementation of its own: SplitMix64 (OOPSLA 2014) as a keyed counter, bounded numbers after Lemire (2019),
Fisher-Yates after Durstenfeld (CACM algorithm 235).
"""
import sys

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15
SAMPLE_ORDER = 1


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def numbers(seed, purpose, index):
    state = mix(mix(mix(seed + GAMMA & MASK) + purpose & MASK) + index & MASK)
    while True:
        state = state + GAMMA & MASK
        yield mix(state)


def below(source, bound):
    # Of the 2^64 values those are taken back whose low half falls into the first 2^64 mod bound.
    while True:
        product = next(source) * bound
        if product & MASK >= 2**64 % bound:
            return product >> 64


def order(seed, epoch, samples):
    source = numbers(seed, SAMPLE_ORDER, epoch)
    places = list(range(samples))
    for i in range(samples, 1, -1):
        j = below(source, i)
        places[i - 1], places[j] = places[j], places[i - 1]
    return places


print(*order(*map(int, sys.argv[1:4])), sep=", ")
