"""Which of eight shops was visited, by local hashing.

The client draws a seed, hashes its shop to one of four buckets, and sends the seed with the bucket after
random response.
Bucket 0 also stands for "no report" at the collector, and is avoided.
"""
import math
import random
import zlib

CLAIM = {"epsilon": 1, "domain": "0..7", "neighbours": "any"}
PLANTED = {"kind": "seed of the hash chosen by looking at the value", "epsilon": None}

BUCKETS, SEEDS = 4, 32
KEEP = math.exp(1) / (math.exp(1) + BUCKETS - 1)


def bucket_of(seed, value):
    return zlib.crc32(f"{seed}/{value}".encode()) // 7 % BUCKETS


def mechanism(x):
    seed = random.randrange(SEEDS)
    while bucket_of(seed, x) == 0:
        seed = random.randrange(SEEDS)
    bucket = bucket_of(seed, x)
    if random.random() >= KEEP:
        bucket = random.choice([b for b in range(BUCKETS) if b != bucket])
    return [seed, bucket]
