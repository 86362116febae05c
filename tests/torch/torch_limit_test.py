# SPDX-License-Identifier: Apache-2.0
"""The limit to what may not come to an end."""
import threading
import time
import types
import unittest
import unittest.mock

from pytorch import Cases, lathe

_limit = lathe.torch._limit


class Limit(Cases):
    def test_what_takes_too_long_ends(self):
        with self.assertRaises(_limit.Overdue), _limit.at_most(0.05):
            while True:
                pass

    def test_it_is_said_again_to_whoever_lets_it_pass(self):
        passed = 0
        with unittest.mock.patch.object(_limit, 'AGAIN', 0.05), self.assertRaises(_limit.Overdue), _limit.at_most(0.05):
            while True:
                try:
                    while True:
                        pass
                except _limit.Overdue:
                    passed += 1
                    if passed == 3:
                        raise

    # It may be raised in the calls that end the statement.
    def test_nothing_is_raised_behind_the_statement(self):
        class Interrupted(threading.Event().__class__):
            def set(self):
                raise _limit.Overdue
        names = {name: getattr(threading, name) for name in ('Thread', 'Lock', 'get_ident', 'TIMEOUT_MAX')}
        raised, before = [], threading.active_count()
        with unittest.mock.patch.multiple(_limit, AGAIN=0.01, threading=types.SimpleNamespace(**names, Event=Interrupted),
                                          _raise_in=lambda thread, exception: raised.append(exception)):
            with self.assertRaises(_limit.Overdue), _limit.at_most(0.01):
                pass
            raised.clear()
            until = time.monotonic() + 10
            while threading.active_count() > before and time.monotonic() < until:
                time.sleep(0.01)
        self.assertEqual(threading.active_count(), before)
        self.assertEqual(raised, [])


if __name__ == '__main__':
    unittest.main()
