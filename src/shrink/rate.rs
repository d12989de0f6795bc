//! How often a case fails, and how many passes it takes to believe one.

use serde::{Deserialize, Serialize};

/// The 95% Jeffreys interval of a failure rate: the 2.5% and 97.5% quantiles of Beta(bad + 1/2, good + 1/2), closed at 0
/// where nothing failed and at 1 where everything did. Source: Brown, Cai and DasGupta, "Interval estimation for a
/// binomial proportion", Statistical Science 16 (2001).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub bad: u32,
    pub runs: u32,
    pub low: f64,
    pub high: f64,
}

impl Rate {
    pub fn of(bad: u32, runs: u32) -> Rate {
        let (a, b) = (f64::from(bad) + 0.5, f64::from(runs - bad.min(runs)) + 0.5);
        let low = if bad == 0 { 0.0 } else { beta_quantile(0.025, a, b) };
        let high = if bad >= runs { 1.0 } else { beta_quantile(0.975, a, b) };
        Rate { bad, runs, low, high }
    }

    /// Width of the interval, between 0 and 1.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Some runs failed and some did not.
    pub fn is_flaky(&self) -> bool {
        self.bad > 0 && self.bad < self.runs
    }

    /// Passes in a row after which a case that failed at this rate would have failed with 99% probability; 1 where
    /// every run failed.
    pub fn repeats(&self) -> u32 {
        if !self.is_flaky() || self.low <= 0.0 {
            return 1;
        }
        (0.01f64.ln() / (-self.low).ln_1p()).ceil().clamp(1.0, 1e6) as u32
    }
}

/// Value at which the regularised incomplete beta function is `p`: bisection on a monotone function, to 1e-12.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while high - low > 1e-12 {
        let middle = (low + high) / 2.0;
        if incomplete_beta(middle, a, b) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (Abramowitz and Stegun 26.5.8).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    front / fraction(x, a, b)
}

/// `1 + d1/(1 + d2/(1 + ...))`, evaluated from the inside out; 400 terms are far more than these arguments need.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let mut value = 1.0;
    for i in (1..=400u32).rev() {
        let m = f64::from(i / 2);
        let d = if i % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        value = 1.0 + d / value;
    }
    value
}

/// Logarithm of the gamma function for x > 0: Stirling's series after shifting the argument above 10.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn the_incomplete_beta_function_has_its_closed_forms() {
        for x in [0.01, 0.2, 0.5, 0.77, 0.999] {
            assert!(near(incomplete_beta(x, 1.0, 1.0), x));
            assert!(near(incomplete_beta(x, 3.0, 1.0), x.powi(3)));
            assert!(near(incomplete_beta(x, 1.0, 4.0), 1.0 - (1.0 - x).powi(4)));
            assert!(near(incomplete_beta(x, 0.5, 0.5), 2.0 / std::f64::consts::PI * x.sqrt().asin()));
            assert!(near(incomplete_beta(x, 2.0, 3.0), x * x * (6.0 - 8.0 * x + 3.0 * x * x)));
        }
    }

    #[test]
    fn gamma_is_the_factorial_and_its_half() {
        assert!(near(ln_gamma(5.0), 24f64.ln()));
        assert!(near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln()));
        assert!(near(ln_gamma(30.5), 72.953_471_184_169_4));
    }

    #[test]
    fn the_interval_is_symmetric_and_closes_at_the_ends() {
        let (r, mirrored) = (Rate::of(3, 20), Rate::of(17, 20));
        assert!(near(r.low, 1.0 - mirrored.high) && near(r.high, 1.0 - mirrored.low));
        assert_eq!((Rate::of(0, 5).low, Rate::of(5, 5).high), (0.0, 1.0));
        // I_x(a, b) with b = 1/2 and a whole and a half has no short form; the quantile must invert it.
        let r = Rate::of(7, 31);
        assert!(near(incomplete_beta(r.low, 7.5, 24.5), 0.025) && near(incomplete_beta(r.high, 7.5, 24.5), 0.975));
    }

    #[test]
    fn sixty_runs_narrow_any_rate_to_a_quarter() {
        for bad in 0..=60 {
            assert!(Rate::of(bad, 60).width() <= 0.25, "{bad} of 60");
        }
    }

    #[test]
    fn at_least_95_of_100_intervals_hold_the_rate_on_average() {
        // Exact coverage of 40 runs, averaged over rates: the property that makes the Jeffreys interval the choice.
        let (mut covered, mut rates) = (0.0, 0);
        for step in 1..100 {
            let p = f64::from(step) / 100.0;
            rates += 1;
            for bad in 0..=40u32 {
                let r = Rate::of(bad, 40);
                if r.low <= p && p <= r.high {
                    let choose = ln_gamma(41.0) - ln_gamma(f64::from(bad) + 1.0) - ln_gamma(41.0 - f64::from(bad));
                    covered += (choose + f64::from(bad) * p.ln() + f64::from(40 - bad) * (-p).ln_1p()).exp();
                }
            }
        }
        let mean = covered / f64::from(rates);
        assert!((0.945..0.965).contains(&mean), "{mean}");
    }

    #[test]
    fn a_pass_of_a_flaky_case_counts_only_after_repeats() {
        assert_eq!(Rate::of(3, 3).repeats(), 1);
        let half = Rate::of(30, 60);
        assert!((9..=10).contains(&half.repeats()), "{half:?} {}", half.repeats());
        assert!((1.0 - half.low).powi(half.repeats() as i32) <= 0.01);
    }
}
