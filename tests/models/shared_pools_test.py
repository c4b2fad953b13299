"""The example of sessions that share a pool gives the sums that are known beforehand.

Usage: shared_pools_test.py SHARED_POOLS
"""
import subprocess
import sys
import unittest

SHARED_POOLS = sys.argv[1]


class SharedPools(unittest.TestCase):
    def test_gives_the_same_sums_on_every_pool(self):
        result = subprocess.run([SHARED_POOLS, "200"], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        expected = f"2 threads, sum {200 * 201 // 2}\n"
        self.assertEqual(
            result.stdout,
            f'session 0 shares "workers": {expected}session 1 shares "workers": {expected}session 2 has its own: {expected}',
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
