//! Configurations of an algorithm, as a value of a knob.

use std::fmt;
use std::str::FromStr;

/// An algorithm of cublasLt with everything that its library lets one choose. Written as numbers of cublasLt.h,
/// `id:tile:stages:splitk:reduction:swizzle:custom:inner:cluster`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Config {
    pub id: i32,
    /// `cublasLtMatmulTile_t`.
    pub tile: u32,
    /// `cublasLtMatmulStages_t`.
    pub stages: u32,
    pub splitk: i32,
    /// `cublasLtReductionScheme_t`.
    pub reduction: u32,
    pub swizzle: u32,
    pub custom: u32,
    /// `cublasLtMatmulInnerShape_t`.
    pub inner: u16,
    /// `cublasLtClusterShape_t`.
    pub cluster: u16,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { id, tile, stages, splitk, reduction, swizzle, custom, inner, cluster } = self;
        write!(f, "{id}:{tile}:{stages}:{splitk}:{reduction}:{swizzle}:{custom}:{inner}:{cluster}")
    }
}

impl FromStr for Config {
    type Err = String;

    fn from_str(text: &str) -> Result<Config, String> {
        let bad = || {
            format!(
                "algo={text} is no algorithm: write heuristic, #N, or id:tile:stages:splitk:reduction:swizzle:custom:inner:cluster"
            )
        };
        let parts: Vec<u32> = text.split(':').map(|p| p.parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
        let [id, tile, stages, splitk, reduction, swizzle, custom, inner, cluster] = parts[..] else {
            return Err(bad());
        };
        let int = |n: u32| i32::try_from(n).map_err(|_| bad());
        let short = |n: u32| u16::try_from(n).map_err(|_| bad());
        let (id, splitk, inner, cluster) = (int(id)?, int(splitk)?, short(inner)?, short(cluster)?);
        Ok(Config { id, tile, stages, splitk, reduction, swizzle, custom, inner, cluster })
    }
}

/// How the algorithm of a case is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// One of those that the heuristic proposes.
    Heuristic,
    /// By its place in the list of the case's type, counted round.
    Listed(u32),
    Named(Config),
}

pub const HEURISTIC: &str = "heuristic";

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        match (text, text.strip_prefix('#').map(str::parse)) {
            (HEURISTIC, _) => Ok(Choice::Heuristic),
            (_, Some(Ok(place))) => Ok(Choice::Listed(place)),
            _ => text.parse().map(Choice::Named),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_configuration_reads_back_as_written(
            id in 0..i32::MAX, splitk in 0..i32::MAX, long in any::<[u32; 5]>(), inner in any::<u16>(), cluster in any::<u16>()
        ) {
            let [tile, stages, reduction, swizzle, custom] = long;
            let config = Config { id, tile, stages, splitk, reduction, swizzle, custom, inner, cluster };
            prop_assert_eq!(config.to_string().parse::<Choice>(), Ok(Choice::Named(config)));
        }

        #[test]
        fn any_text_is_a_choice_or_one_sentence(text in "[#0-9:a-z-]{0,24}") {
            if let Err(why) = text.parse::<Choice>() {
                prop_assert!(why.contains("no algorithm") && !why.contains('\n'));
            }
        }
    }

    #[test]
    fn a_choice_is_the_heuristic_a_place_or_all_nine_numbers() {
        assert_eq!("heuristic".parse(), Ok(Choice::Heuristic));
        assert_eq!("#17".parse(), Ok(Choice::Listed(17)));
        let wanted = Config { id: 66, tile: 20, stages: 36, splitk: 1, cluster: 3, ..Config::default() };
        assert_eq!("66:20:36:1:0:0:0:0:3".parse(), Ok(Choice::Named(wanted)));
        for text in [
            "",
            "#",
            "#x",
            "66",
            "66:20:36:1:0:0:0:0",
            "66:20:36:1:0:0:0:0:3:4",
            "66:-1:36:1:0:0:0:0:3",
            "66:20:36:1:0:0:0:0:65536",
        ] {
            assert!(text.parse::<Choice>().is_err(), "{text}");
        }
    }
}
