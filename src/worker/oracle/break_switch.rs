//! A switch that disables one oracle, to prove that the self-test notices.

use std::fmt;

/// Names the oracle to disable: `guard`, `gap`, `canary` or `sentinel`. Only for testing the self-test: a worker started
/// with it misses real damage, says so on stderr, and must never be used for a real run.
pub const BREAK_VARIABLE: &str = "SHRINKFAULT_BREAK_ORACLE";

/// Value that disables the deadline of the supervisor, not an oracle of a worker.
pub const DEADLINE: &str = "deadline";

/// An oracle that is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenOracle {
    /// Neighbour pages of every range are mapped: an over-run does not fault.
    Guard,
    /// Pages between the rows of small operands are mapped: an access between them does not fault.
    Gap,
    /// Bytes outside the elements are not compared.
    Canary,
    /// An output element that was not written counts as right.
    Sentinel,
}

impl BrokenOracle {
    /// Reads the environment, and warns on stderr where an oracle is disabled.
    ///
    /// # Errors
    /// A sentence, where the variable names no oracle.
    pub fn from_env() -> Result<Option<BrokenOracle>, String> {
        let Some(word) = std::env::var_os(BREAK_VARIABLE) else { return Ok(None) };
        let word = word.to_string_lossy();
        if word == DEADLINE {
            // The supervisor's oracle: the worker has nothing to disable.
            return Ok(None);
        }
        let broken: BrokenOracle = word.parse()?;
        eprintln!("shrinkfault: WARNING: {BREAK_VARIABLE}={broken}: this oracle is DISABLED, this run proves nothing");
        Ok(Some(broken))
    }
}

impl std::str::FromStr for BrokenOracle {
    type Err = String;

    fn from_str(word: &str) -> Result<BrokenOracle, String> {
        match word {
            "guard" => Ok(BrokenOracle::Guard),
            "gap" => Ok(BrokenOracle::Gap),
            "canary" => Ok(BrokenOracle::Canary),
            "sentinel" => Ok(BrokenOracle::Sentinel),
            _ => Err(format!(
                "{BREAK_VARIABLE}={word} should be guard, gap, canary, sentinel or deadline, or not be set at all"
            )),
        }
    }
}

impl fmt::Display for BrokenOracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BrokenOracle::Guard => "guard",
            BrokenOracle::Gap => "gap",
            BrokenOracle::Canary => "canary",
            BrokenOracle::Sentinel => "sentinel",
        })
    }
}
