"""Special functions of f64 beside those of MLIR: formulas of its arithmetic, as those of `double_functions`.

Coefficients are minimax fits of the named functions; docs/triton.md has the errors. Those of Bessel functions are
absolute, since they have zeros that no f64 number is.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence

from xegpu_py.numerics import double_functions as double
from xegpu_py.numerics.expansions import Number

_LGAMMA = (
    -3.085985478390577e-08, 6.472569840064724e-08, -9.558178101635195e-08, 2.0193835401136915e-07,
    -4.508168225446838e-07, 9.584207048594987e-07, -2.0389077825677104e-06, 4.374223481082048e-06,
    -9.439526202058818e-06, 2.0507291996563825e-05, -4.4926233820610826e-05, 9.94575066878814e-05,
    -0.00022315475858818615, 0.0005096695250241955, -0.0011927539116998527, 0.0028905103307344045,
    -0.007385551028674025, 0.02058080842778463, -0.06735230105319809, 0.3224670334241132, 0.42278433509846713,
)  # fmt: skip
"""lgamma(2 + t) / t for |t| up to 1/2."""

_GAMMA = (
    6.672088876290777e-07, -1.3343070017400827e-06, 1.792573008733643e-06, -3.5842818697056385e-06,
    7.658736710883484e-06, -1.530884712690297e-05, 3.044629718059869e-05, -6.077837214088268e-05,
    0.00012167470137306104, -0.00024094322543932877, 0.0004903883819460522, -0.000919573701078013,
    0.0021039333438764517, -0.002852645827513233, 0.011154045718050476, -0.0002669820685839899,
    0.07424901075351484, 0.08157691924708439, 0.4118403304264397, 0.42278433509846713, 1.0,
)  # fmt: skip
"""gamma(2 + t) for |t| up to 1/2."""

_STIRLING = (
    -0.02085581632116246, 0.006208136501150856, -0.0019149659059377068, 0.000841732526727762,
    -0.0005952380234286479, 0.0007936507935117266, -0.0027777777777776747, 0.08333333333333333,
)  # fmt: skip
"""y (lgamma(y) - (y - 1/2) ln(y) + y - ln(2 pi) / 2) as a polynomial of 1 / y^2 from 8 on."""

_J0 = (
    2.8777379277817493e-16, -1.1382224219729955e-14, 3.9908134608982205e-13, -1.2384637259799405e-11,
    3.363471859731152e-10, -7.915407738244705e-09, 1.59561088590422e-07, -2.717749145023612e-06,
    3.84731978573911e-05, -0.00044354592247272207, 0.00405807898914049, -0.028472718610869575,
    0.14598884856759273, -0.507468045847102, 1.0383794611437211, -0.808088807669687, -0.6484692830871837,
    0.9303012472958572, 0.04582966485981377,
)  # fmt: skip
"""J0(x) as a polynomial of x^2 / 32 - 1 up to 8."""

_J1 = (
    7.737468840824268e-18, -3.2382440004784723e-16, 1.2060729354963575e-14, -3.990810305586612e-13,
    1.1610655460712977e-11, -2.9430378824414127e-10, 6.431268732317326e-09, -1.1967081644236786e-07,
    1.8684525372339864e-06, -2.4045748660869658e-05, 0.0002494945813908964, -0.002029039494570245,
    0.01245681439225544, -0.054745818212847276, 0.15858376432721938, -0.2595948652859303, 0.15151665143806634,
    0.08105866038589796, -0.05814382795599107,
)  # fmt: skip
"""J1(x) / x."""

_Y0 = (
    -5.304162846217215e-16, 2.0557746254918658e-14, -7.049497934251464e-13, 2.135323763105295e-11,
    -5.646313668973253e-10, 1.2898223794696643e-08, -2.5144106576657724e-07, 4.122054206381837e-06,
    -5.581830462973175e-05, 0.0006104345644550033, -0.0052350276707980705, 0.03380285696397354,
    -0.15453679652310573, 0.448246044635635, -0.6193407826303358, -0.2124599944206597, 1.3609456599655456,
    -0.4179207423206952, -0.3620273432371452,
)  # fmt: skip
"""Y0(x) - 2 / pi ln(x / 2) J0(x)."""

_Y1 = (
    -1.4399572012217908e-17, 5.910117073257242e-16, -2.1549174540996468e-14, 6.967780481457397e-13,
    -1.9764212336629228e-11, 4.871064754403436e-10, -1.0315388726156829e-08, 1.8524201432356358e-07,
    -2.7765055806286415e-06, 3.4063633755322536e-05, -0.0003337225701114377, 0.002527134046682168,
    -0.014131923394248496, 0.0543901163079464, -0.12641995056569882, 0.12052035426888161, 0.09022750636730935,
    -0.20760857842830602, 0.04510266206869483,
)  # fmt: skip
"""(Y1(x) - 2 / pi (ln(x / 2) J1(x) - 1 / x)) / x."""

_P0 = (
    -9.295340680336959e-11, 7.407821550730064e-10, -2.7665222591965585e-09, 6.567405056125104e-09,
    -1.1558670493174414e-08, 1.7236183222716562e-08, -2.5395423253874335e-08, 4.3812694276885057e-08,
    -1.0239239880790091e-07, 3.6203309502079103e-07, -2.183919034207727e-06, 2.738088367210799e-05,
    -0.0010986328124996737, 1.0,
)  # fmt: skip
"""Hankel's P of order 0 as a polynomial of (8 / x)^2 from 8 on."""

_Q0 = (
    9.990189764851481e-11, -7.890899361932915e-10, 2.9078974452671495e-09, -6.759960265890528e-09,
    1.1495627266512138e-08, -1.618445391518237e-08, 2.173247023688041e-08, -3.27423676700564e-08,
    6.41032166338217e-08, -1.816397740372318e-07, 8.238440108992726e-07, -6.9307861600098455e-06,
    0.00014305114746056069, -0.015624999999999998,
)  # fmt: skip
"""Hankel's Q of order 0 times x / 8."""

_P1 = (
    9.840756499431866e-11, -7.846662733002528e-10, 2.9327998226323423e-09, -6.971310277629876e-09,
    1.2297169766216205e-08, -1.841012886921994e-08, 2.731085050619818e-08, -4.76357579040279e-08,
    1.1317408747337888e-07, -4.103048087126009e-07, 2.5809952949795432e-06, -3.5203993297700576e-05,
    0.0018310546874996559, 1.0,
)  # fmt: skip
"""Hankel's P of order 1."""

_Q1 = (
    -1.0555459771825356e-10, 8.341275040772932e-10, -3.0760317969324958e-09, 7.158851501819853e-09,
    -1.2196959591362068e-08, 1.7228401331727245e-08, -2.3265886409893684e-08, 3.53750033843662e-08,
    -7.021176577155098e-08, 2.0300976785711877e-07, -9.505893103417263e-07, 8.470960866465057e-06,
    -0.0002002716064449158, 0.046875,
)  # fmt: skip
"""Hankel's Q of order 1 times x / 8."""

_I0 = (
    -7.470124308225188e-11, 3.043004558931688e-10, -6.06296219224003e-10, 2.188263125031253e-09,
    -9.749390380703055e-09, 3.396796972424401e-08, -1.0960760697381337e-07, 3.5213153112364e-07,
    -1.0942193555307138e-06, 3.2498437105714717e-06, -9.245958887727196e-06, 2.5183380992816474e-05,
    -6.55126191178084e-05, 0.000162417920911048, -0.0003829000571102176, 0.0008563093357265103,
    -0.0018118875472634746, 0.003617128473590754, -0.006792399673325518, 0.011960077419599882,
    -0.019682654727688778, 0.030177912103403717, -0.042985949450159, 0.056777032011258714, -0.0695411956175599,
    0.07927522590772465, -0.08496338091614662, 0.08734341617550408, -0.08904344136075996, 0.09451562853995128,
    -0.11300432688620549, 0.2070019212239867,
)  # fmt: skip
"""I0(x) exp(-x) as a polynomial of x / 4 - 1 up to 8."""

_I1 = (
    -5.569735366905358e-12, 2.350708556034099e-11, -5.190294158149172e-11, 1.9654216751903217e-10,
    -8.787840300538333e-10, 3.1982297265542376e-09, -1.0908822573192138e-08, 3.6836128409817914e-08,
    -1.2037821195533036e-07, 3.775207046443834e-07, -1.1377300236842814e-06, 3.2924355468944774e-06,
    -9.132074358863496e-06, 2.423471871395591e-05, -6.142640521535543e-05, 0.00014842078455454727,
    -0.00034117478062035245, 0.0007445125009128511, -0.0015388749547793816, 0.0030057623821240515,
    -0.005534567762007116, 0.009583962156944402, -0.015571309256417825, 0.02368601695706069,
    -0.03367135551995052, 0.04467457262129802, -0.055280039227050236, 0.06376740371340574, -0.0684826062058255,
    0.06805759990951162, -0.06112433802966629, 0.044687709875608835,
)  # fmt: skip
"""I1(x) exp(-x) / x."""

_I0_FAR = (
    -2.450479063795916e-11, 9.118805124678376e-11, 1.774404425780705e-10, -6.496733377787778e-10,
    -6.338985560071447e-10, 2.164170576131736e-09, 1.6100081168695155e-09, -4.5312017631234925e-09,
    -3.587590608108499e-09, 6.522768920932243e-09, 7.6009866363302e-09, -5.0178524411298585e-09,
    -1.3427779877468502e-08, -6.856399597826492e-09, 7.559427186122421e-09, 2.1567789377160627e-08,
    3.93251141664098e-08, 8.872014792919072e-08, 2.9735992156596496e-07, 1.4838476779656742e-06,
    1.1143033788425403e-05, 0.00013621607438951764, 0.0033605519836678913, 0.4021765094450081,
)  # fmt: skip
"""I0(x) exp(-x) sqrt(x) as a polynomial of 16 / x - 1 from 8 on."""

_I1_FAR = (
    2.2506836881647293e-11, -9.495993020544917e-11, -1.6330498471647934e-10, 6.774920690579385e-10,
    5.882054642259619e-10, -2.26293640508994e-09, -1.5233850963982506e-09, 4.764419799557193e-09,
    3.503111409375055e-09, -6.9449299300273845e-09, -7.688005937325226e-09, 5.572280524491222e-09,
    1.4052023820420303e-08, 6.8474921245085465e-09, -8.432234125126343e-09, -2.3394105322401808e-08,
    -4.3128488678986876e-08, -1.0001075256519489e-07, -3.4838563538724394e-07, -1.8349102492705733e-06,
    -1.5038547198194426e-05, -0.00021923576383138082, -0.009749577193235765, 0.38939845902587233,
)  # fmt: skip
"""I1(x) exp(-x) sqrt(x)."""

_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)

_PI = (math.pi, 1.2246467991473532e-16)

_ROOT_HALF = (0.7071067811865476, -4.833646656726457e-17)


def _half_turns(x: Number) -> tuple[Number, Number]:
    """The sine and the cosine of pi |x|."""
    # Greater numbers are even.
    size = (abs(x) < 2.0**54).choose(abs(x), 0.0)
    quarters = (size * 2.0).of("math.roundeven")
    sine, cosine = double.sin_cos_of(double.times((quarters.of("math.fma", -0.5, size), size * 0.0), *_PI))
    turn = quarters - (quarters * 0.25).of("math.trunc") * 4.0
    swapped = turn.same(1.0) | turn.same(3.0)
    sine, cosine = swapped.choose(cosine, sine), swapped.choose(sine, cosine)
    sine = (turn >= 2.0).choose(0.0 - sine, sine)
    cosine = (turn.same(1.0) | turn.same(2.0)).choose(0.0 - cosine, cosine)
    finite = abs(x) < math.inf
    return finite.choose(sine, math.nan), finite.choose(cosine, math.nan)


def sinpi(x: Number) -> Number:
    """sin(pi x); of whole numbers a zero with the sign of x."""
    sine = _half_turns(x)[0]
    return sine.same(0.0).choose(x * 0.0, sine * x.after("math.copysign", 1.0))


def cospi(x: Number) -> Number:
    """cos(pi x)."""
    cosine = _half_turns(x)[1]
    return cosine.same(0.0).choose(0.0, cosine)


# The gamma function.


def _lowered(y: Number) -> tuple[Number, Number]:
    """A number t + 2 from 3/2 to 5/2, and the product p of numbers, so that gamma(y) = gamma(t + 2) p from 3/2 to 8."""
    step, product = y, y * 0.0 + 1.0
    for _ in range(6):
        again = (step >= 2.5) & (y < 8.0)
        product = again.choose(product * (step - 1.0), product)
        step = again.choose(step - 1.0, step)
    return step - 2.0, product


def _stirling(y: Number) -> Number:
    """The series behind the logarithms in Stirling's formula."""
    inverse = 1.0 / y
    return inverse * (inverse * inverse).polynomial(_STIRLING)


def _lgamma_of(y: Number) -> Number:
    """ln(gamma(y)) from 1/2 on."""
    t, product = _lowered(y)
    small = y < 1.5
    t = small.choose(y - 1.0, t)
    logarithm = small.choose(y, product).of("math.log")
    near = t * t.polynomial(_LGAMMA) + small.choose(0.0 - logarithm, logarithm)
    far = (y - 0.5) * (y.of("math.log") - 1.0) + (_stirling(y) + (_HALF_LOG_2_PI - 0.5))
    return (y < 8.0).choose(near, far)


def lgamma(x: Number) -> Number:
    """ln(|gamma(x)|): a polynomial from 1/2 to 5/2, by the recurrence up to 8, by Stirling's formula from there on, and
    by reflection below 1/2."""
    reflected = x < 0.5
    positive = _lgamma_of(reflected.choose(1.0 - x, x))
    sine = abs(_half_turns(x)[0])
    below = (0.0 - (sine * (1 / math.pi)).of("math.log")) - positive
    below = (abs(x) < 1e-20).choose(0.0 - abs(x).of("math.log"), sine.same(0.0).choose(math.inf, below))
    return abs(x).same(math.inf).choose(math.inf, reflected.choose(below, positive))


def _tgamma_of(y: Number) -> tuple[Number, Number]:
    """gamma(y) from 1/2 on, as the product of two numbers."""
    t, product = _lowered(y)
    small = y < 1.5
    near = small.choose(y - 1.0, t).polynomial(_GAMMA) * product
    near = small.choose(near / y, near)
    bounded = y.of("arith.minimumf", 190.0)
    power = bounded.of("math.powf", bounded * 0.5 - 0.25)
    series = _stirling(bounded).of("math.exp") * math.sqrt(2 * math.pi)
    far = ((0.0 - bounded).of("math.exp") * power) * series
    return (y < 8.0).choose(near, far), (y < 8.0).choose(1.0, power)


def tgamma(x: Number) -> Number:
    """The gamma function, by the polynomial, recurrence, formula and reflection of `lgamma`."""
    reflected = x < 0.5
    one, other = _tgamma_of(reflected.choose(1.0 - x, x))
    below = (math.pi / (sinpi(x) * one)) / other
    undefined = (x < 0.0) & x.of("math.trunc").same(x)
    return undefined.choose(math.nan, reflected.choose(below, one * other))


# Error functions.


def erfcx(x: Number) -> Number:
    """exp(x^2) erfc(x): a quotient of polynomials from 1/2 to 27.5, and the asymptotic series above."""
    inverse = 1.0 / (x * x)
    terms = tuple((-0.5) ** n * math.prod(range(1, 2 * n, 2)) for n in range(9))
    far = (1 / math.sqrt(math.pi)) / x * inverse.polynomial(terms[::-1])
    square, error = double.product(x, x)
    power = square.of("math.exp")
    power = (square < 700.0).choose(power + power * error, power)
    below = power * x.of("math.erfc")
    return (x < 0.5).choose(below, (x < 27.5).choose(double.scaled_erfc(x), far))


_WINITZKI = 0.147


def _start(log: Number) -> Number:
    """Winitzki's estimate of the inverse of erf by ln(1 - x^2); its error is below a hundredth."""
    half = log * 0.5 + 2 / (math.pi * _WINITZKI)
    return ((half * half - log * (1 / _WINITZKI)).of("math.sqrt") - half).of("math.sqrt")


def _tail(q: Number) -> Number:
    """y with erfc(y) = q up to 1/2: three steps of Halley's method."""
    y = _start((q * (2.0 - q)).of("math.log"))
    log = q.of("math.log")
    for _ in range(3):
        step = ((y * y + log).of("math.exp") - erfcx(y)) * (math.sqrt(math.pi) / 2)
        y = y - step / (step * y + 1.0)
    return (q > 0.0).choose(y, q.same(0.0).choose(math.inf, math.nan))


def _middle(x: Number) -> Number:
    """y with erf(y) = x up to 1/2: two steps of Halley's method."""
    y = _start((1.0 - x * x).of("math.log")).signed(x)
    for _ in range(2):
        step = (y.of("math.erf") - x) * ((y * y).of("math.exp") * (math.sqrt(math.pi) / 2))
        y = y - step / (step * y + 1.0)
    # Below, the estimate is lost, and the series has one term.
    return (abs(x) < 1e-8).choose(x * (math.sqrt(math.pi) / 2), y)


def erfinv(x: Number) -> Number:
    """The inverse of erf."""
    size = abs(x)
    return (size < 0.5).choose(_middle(x), _tail(1.0 - size).signed(x))


def erfcinv(q: Number) -> Number:
    """The inverse of erfc."""
    is_high = q > 1.0
    tail = _tail(is_high.choose(2.0 - q, q))
    return (abs(1.0 - q) < 0.5).choose(_middle(1.0 - q), is_high.choose(0.0 - tail, tail))


def normcdf(x: Number) -> Number:
    """erfc(-x / sqrt(2)) / 2, with that quotient in two numbers."""
    bounded = x.of("arith.maximumf", -50.0).of("arith.minimumf", 50.0)
    high, low = double.times((0.0 - bounded, bounded * 0.0), *_ROOT_HALF)
    slope = (0.0 - high * high).of("math.exp") * (2 / math.sqrt(math.pi))
    return (high.of("math.erfc") - slope * low) * 0.5


def normcdfinv(p: Number) -> Number:
    """-sqrt(2) erfcinv(2 p)."""
    return 0.0 - erfcinv(p * 2.0) * math.sqrt(2)


# Bessel functions, by polynomials up to 8 and Hankel's asymptotic formulas above.


def _hankel(size: Number, order: int) -> tuple[Number, Number]:
    """J and Y of order 0 or 1 from 8 on."""
    inverse = 8.0 / size
    square = inverse * inverse
    p, q = (square.polynomial(c) for c in ((_P0, _Q0), (_P1, _Q1))[order])
    q = q * inverse
    sine, cosine = double.sin_cos(size)
    root = (1.0 / size).of("math.sqrt") * (1 / math.sqrt(math.pi))
    # sqrt(2) times the cosine and the sine of x - pi/4 or x - 3/4 pi.
    along, across = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, 0.0 - (sine + cosine))
    infinite = size.same(math.inf)
    return (
        infinite.choose(0.0, root * (p * along - q * across)),
        infinite.choose(0.0, root * (p * across + q * along)),
    )


def _square(size: Number) -> Number:
    return (size * size).of("math.fma", 1 / 32, -1.0)


def j0(x: Number) -> Number:
    """The Bessel function of the first kind of order 0."""
    size = abs(x)
    return (size < 8.0).choose(_square(size).polynomial(_J0), _hankel(size, 0)[0])


def j1(x: Number) -> Number:
    """The Bessel function of the first kind of order 1."""
    size = abs(x)
    found = (size < 8.0).choose(size * _square(size).polynomial(_J1), _hankel(size, 1)[0])
    return found * x.after("math.copysign", 1.0)


def _of_second_kind(x: Number, near: Number, far: Number) -> Number:
    found = x.same(0.0).choose(-math.inf, (x < 8.0).choose(near, far))
    return (x < 0.0).choose(math.nan, found)


def y0(x: Number) -> Number:
    """The Bessel function of the second kind of order 0."""
    square = _square(x)
    near = square.polynomial(_Y0) + ((x * 0.5).of("math.log") * (2 / math.pi)) * square.polynomial(_J0)
    return _of_second_kind(x, near, _hankel(x, 0)[1])


def y1(x: Number) -> Number:
    """The Bessel function of the second kind of order 1."""
    square = _square(x)
    products = (x * 0.5).of("math.log") * (x * square.polynomial(_J1)) - 1.0 / x
    near = x * square.polynomial(_Y1) + products * (2 / math.pi)
    return _of_second_kind(x, near, _hankel(x, 1)[1])


def _modified(size: Number, near: Number, far: tuple[float, ...]) -> Number:
    """I0 or I1 of a number by the polynomials of it times exp(-x)."""
    bounded = size.of("arith.minimumf", 730.0)
    root = (bounded * 0.5).of("math.exp")
    scaled = (16.0 / bounded - 1.0).polynomial(far) / bounded.of("math.sqrt")
    return (size < 8.0).choose(near * size.of("math.exp"), (scaled * root) * root)


def cyl_bessel_i0(x: Number) -> Number:
    """The modified Bessel function of the first kind of order 0."""
    size = abs(x)
    return _modified(size, (size * 0.25 - 1.0).polynomial(_I0), _I0_FAR)


def cyl_bessel_i1(x: Number) -> Number:
    """The modified Bessel function of the first kind of order 1."""
    size = abs(x)
    found = _modified(size, size * (size * 0.25 - 1.0).polynomial(_I1), _I1_FAR)
    return found * x.after("math.copysign", 1.0)


# Lengths and powers.


def hypot(x: Number, y: Number) -> Number:
    """m sqrt(1 + (n / m)^2) with the greater m and the lesser n of |x| and |y|; infinite if either is."""
    a, b = abs(x), abs(y)
    most, least = a.of("arith.maximumf", b), a.of("arith.minimumf", b)
    ratio = least / most
    found = most.same(0.0).choose(0.0, most * (ratio * ratio + 1.0).of("math.sqrt"))
    return (a.same(math.inf) | b.same(math.inf)).choose(math.inf, found)


def norm3d(x: Number, y: Number, z: Number) -> Number:
    """The length of three coordinates."""
    return hypot(hypot(x, y), z)


def norm4d(x: Number, y: Number, z: Number, w: Number) -> Number:
    """The length of four coordinates."""
    return hypot(hypot(x, y), hypot(z, w))


def _inverse(function: Callable[..., Number], name: str) -> Callable[..., Number]:
    @functools.wraps(function)
    def apply(*numbers: Number) -> Number:
        return 1.0 / function(*numbers)

    apply.__name__ = name
    return apply


def rcbrt(x: Number) -> Number:
    """The reciprocal of the cube root."""
    return 1.0 / x.of("math.cbrt")


SPECIAL_FUNCTIONS: dict[str, Callable[..., Number]] = {
    f.__name__: f
    for f in (
        sinpi, cospi, lgamma, tgamma, erfcx, erfinv, erfcinv, normcdf, normcdfinv, j0, j1, y0, y1, cyl_bessel_i0,
        cyl_bessel_i1, hypot, norm3d, norm4d, rcbrt, _inverse(hypot, "rhypot"), _inverse(norm3d, "rnorm3d"),
        _inverse(norm4d, "rnorm4d"),
    )
}  # fmt: skip
"""The formulas by the names that CUDA's Math API gives the functions."""


def formula_of(name: str, types: Sequence[str]) -> Callable[..., Number] | None:
    """The formula of which a call has the name, with or without a suffix after a dot.

    Args:
        types: the element types of the call's operands.

    Returns:
        None if there is no such function of f64, or if it has another number of operands.
    """
    formula = SPECIAL_FUNCTIONS.get(name.partition(".")[0])
    count = len(inspect.signature(formula).parameters) if formula else 0
    return formula if list(types) == ["f64"] * count else None
