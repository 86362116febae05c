# SPDX-License-Identifier: Apache-2.0
"""CUDA's runtime on the host's memory: what it does and what it refuses."""
import ctypes
import os
import pathlib
import subprocess
import sys
import time
import unittest

PACKAGES = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve() / 'python'
LIBRARY = ctypes.CDLL(str(PACKAGES / 'lathe' / 'host_cuda' / 'libcudart.so'))
LIBRARY.cudaGetErrorString.restype = ctypes.c_char_p
INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE = 1, 2, 100


def made(function, *arguments):
    handle = ctypes.c_void_p()
    error = function(ctypes.byref(handle), *arguments)
    return error, handle


class HostCuda(unittest.TestCase):
    def test_memory(self):
        error, memory = made(LIBRARY.cudaMalloc, ctypes.c_size_t(1000))
        self.assertEqual((error, memory.value % 256), (0, 0))
        self.assertEqual(LIBRARY.cudaMemset(memory, 7, ctypes.c_size_t(1000)), 0)
        back = ctypes.create_string_buffer(1000)
        self.assertEqual(LIBRARY.cudaMemcpyAsync(back, memory, ctypes.c_size_t(1000), 2, None), 0)
        self.assertEqual(back.raw, bytes([7] * 1000))
        self.assertEqual(LIBRARY.cudaFree(memory), 0)
        self.assertEqual(made(LIBRARY.cudaMalloc, ctypes.c_size_t(0))[1].value, None)

    def test_refusals(self):
        self.assertEqual(made(LIBRARY.cudaMalloc, ctypes.c_size_t(2**64 - 1))[0], OUT_OF_MEMORY)
        self.assertEqual(LIBRARY.cudaMemcpy(None, None, ctypes.c_size_t(1), 0), INVALID_VALUE)
        self.assertEqual(LIBRARY.cudaGetLastError(), INVALID_VALUE)
        self.assertEqual(LIBRARY.cudaGetLastError(), 0)
        self.assertEqual(LIBRARY.cudaEventRecord(None, None), INVALID_VALUE)
        self.assertEqual(LIBRARY.cudaStreamCreate(None), INVALID_VALUE)

    def test_there_is_no_device(self):
        count = ctypes.c_int(-1)
        self.assertEqual((LIBRARY.cudaGetDeviceCount(ctypes.byref(count)), count.value), (NO_DEVICE, 0))
        self.assertIn(b'no CUDA-capable device', LIBRARY.cudaGetErrorString(NO_DEVICE))

    def test_events_are_times(self):
        (_, stream), (_, begin), (_, end) = map(made, (LIBRARY.cudaStreamCreate, LIBRARY.cudaEventCreate,
                                                       LIBRARY.cudaEventCreate))
        self.assertEqual(LIBRARY.cudaEventRecord(begin, stream), 0)
        time.sleep(0.02)
        self.assertEqual(LIBRARY.cudaEventRecord(end, stream), 0)
        milliseconds = ctypes.c_float()
        self.assertEqual(LIBRARY.cudaEventElapsedTime(ctypes.byref(milliseconds), begin, end), 0)
        self.assertGreaterEqual(milliseconds.value, 20)
        for destroy, handle in ((LIBRARY.cudaEventDestroy, begin), (LIBRARY.cudaEventDestroy, end),
                                (LIBRARY.cudaStreamDestroy, stream)):
            self.assertEqual(destroy(handle), 0)

    def test_where_it_is(self):
        told = subprocess.run([sys.executable, '-m', 'lathe.host_cuda'], capture_output=True, text=True,
                              env=os.environ | {'PYTHONPATH': str(PACKAGES)})
        self.assertEqual(told.stdout.strip(), str(PACKAGES / 'lathe' / 'host_cuda'), told.stderr)


if __name__ == '__main__':
    unittest.main()
