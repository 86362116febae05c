# SPDX-License-Identifier: Apache-2.0
"""Polygraphy, unchanged, on `lathe.tensorrt` and engines for the CPU, where its memory is that of lathe.host_cuda, and for an
emulated GPU."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ['LATHE_BUILD_DIR']).resolve()
PACKAGES = BUILD / 'python'
MODEL = pathlib.Path(__file__).resolve().parents[2] / 'examples' / 'digits' / 'digits.onnx'
ENVIRONMENT = os.environ | {'PYTHONPATH': f'{PACKAGES}:{PACKAGES}/compat', 'LD_LIBRARY_PATH': f'{PACKAGES}/lathe/host_cuda'}
ON_GPU = ENVIRONMENT | {'LD_LIBRARY_PATH': f'{BUILD}/fake_cuda/cudart', 'LATHE_CUDA_DRIVER': f'{BUILD}/fake_cuda/libfake_cuda_driver.so',
                        'LATHE_NVRTC': f'{BUILD}/fake_cuda/libnvrtc.so', 'LATHE_TARGET': 'cuda'}
SHAPES = [f'--trt-{which}-shapes=image:[{batch},1,8,8]' for which, batch in (('min', 1), ('opt', 2), ('max', 8))]


class Polygraphy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def polygraphy(self, *arguments, environment=ENVIRONMENT):
        main = 'import sys; from polygraphy.tools import main; sys.exit(main())'
        ran = subprocess.run([sys.executable, '-c', main, *map(str, arguments)], cwd=self.folder, env=environment | {'LATHE_CACHE_DIR': str(self.folder)},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        return ran.stdout

    def test_network_with_attributes_of_layers(self):
        told = self.polygraphy('inspect', 'model', MODEL, '--display-as=trt', '--show', 'layers', 'attrs', 'weights')
        for line in (r'\[Op: LayerType.CONVOLUTION\]', r'num_output_maps = 16', r'\[Op: ActivationType.RELU\]',
                     r'alpha = 0.0', r'\[Op: PoolingType.MAX\]', r'window_size_nd = \(2, 2\)', r'axes = 2'):
            self.assertRegex(told, line)

    def test_results_are_those_of_onnx_runtime(self):
        told = self.polygraphy('run', MODEL, '--trt', '--onnxrt', *SHAPES, '--input-shapes=image:[5,1,8,8]')
        self.assertIn('Passed: 1/1 iterations', told)

    def test_convert_inspect_and_run_an_engine(self):
        self.polygraphy('convert', MODEL, '-o', 'digits.engine', *SHAPES)
        told = self.polygraphy('inspect', 'model', 'digits.engine', '--show', 'layers', 'attrs')
        self.assertRegex(told, r'probabilities \[dtype=float32, shape=\(-1, 10\)\]')
        self.assertRegex(told, r'Tactic = 0x')
        self.assertIn('PASSED', self.polygraphy('run', 'digits.engine', '--trt'))

    def test_settings(self):
        told = self.polygraphy('run', MODEL, '--trt', '--tf32', '--version-compatible', '--save-timing-cache=times',
                               '--allocation-strategy=runtime', '--pool-limit=workspace:64M', '--mark-debug', 'relu1_out')
        self.assertRegex(told, r'Flags +\| \[.*TF32.*VERSION_COMPATIBLE|Flags +\| \[.*VERSION_COMPATIBLE.*TF32')
        self.assertRegex(told, r'WORKSPACE: 64.00 MiB')
        self.assertRegex(told, r'relu1_out \[dtype=float32, shape=\(1, 16, 8, 8\)\]')
        self.assertGreater((self.folder / 'times').stat().st_size, 0)

    def test_data_of_other_runs(self):
        self.polygraphy('run', MODEL, '--trt', '--save-inputs', 'in.json', '--save-outputs', 'out.json', *SHAPES)
        told = self.polygraphy('run', MODEL, '--trt', '--load-inputs', 'in.json', '--load-outputs', 'out.json', *SHAPES)
        self.assertIn('Passed: 1/1 iterations', told)

    def test_scripts_that_it_writes(self):
        self.polygraphy('template', 'trt-network', MODEL, '-o', 'network.py')
        self.polygraphy('template', 'trt-config', '-o', 'config.py', *SHAPES)
        told = self.polygraphy('run', 'network.py', '--model-type=trt-network-script', '--trt', '--trt-config-script=config.py')
        self.assertIn('PASSED', told)

    def test_an_engine_for_a_gpu(self):
        told = self.polygraphy('run', MODEL, '--trt', '--onnxrt', '--builder-optimization-level=0', *SHAPES,
                               '--input-shapes=image:[5,1,8,8]', environment=ON_GPU)
        self.assertIn('Passed: 1/1 iterations', told)

    def test_capability(self):
        self.assertIn('fully supported', self.polygraphy('inspect', 'capability', MODEL))


if __name__ == '__main__':
    unittest.main()
