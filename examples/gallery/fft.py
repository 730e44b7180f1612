"""The discrete Fourier transform of rows by Stockham's algorithm, which leaves the results in order."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def fft(RE, IM, COS, SIN, OUT_RE, OUT_IM):
    row, i = xl.program_id(0) * 64, xl.arange(0, 64)
    re, im = xl.load(RE + row + i), xl.load(IM + row + i)
    for step in xl.static_range(6):
        ar, br = xl.split(xl.trans(re.reshape(2, 32)))
        ai, bi = xl.split(xl.trans(im.reshape(2, 32)))
        # Neighbours have the same factor: after each step twice as many.
        turn = xl.arange(0, 32) >> step << step
        c, s = xl.load(COS + turn), xl.load(SIN + turn)
        dr, di = ar - br, ai - bi
        pairs = (32 >> step, 1 << step)
        re = xl.join((ar + br).reshape(*pairs), (dr * c + di * s).reshape(*pairs)).permute(0, 2, 1).reshape(64)
        im = xl.join((ai + bi).reshape(*pairs), (di * c - dr * s).reshape(*pairs)).permute(0, 2, 1).reshape(64)
    xl.store(OUT_RE + row + i, re)
    xl.store(OUT_IM + row + i, im)


re, im = np.random.default_rng(0).standard_normal((2, 8, 64), np.float32)
angles = 2 * np.pi * np.arange(32) / 64
cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
arguments = re, im, cos, sin, np.zeros_like(re), np.zeros_like(im)
launch = fft[8]
launch(*arguments)
wanted = np.fft.fft(re + 1j * im)
print(f"largest difference from numpy: {abs(arguments[4] + 1j * arguments[5] - wanted).max():.1g}")
