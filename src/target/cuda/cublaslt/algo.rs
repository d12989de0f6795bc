//! Algorithms: what the library has for a type, and how a configuration becomes what it calls an algorithm.

use super::abi::*;
use super::config::Config;
use super::layout::Described;
use crate::target::cuda::blas::{Failure, Status, Type, ask};
use std::ffi::c_int;
use std::ptr;

/// Most algorithm numbers of a type that are asked for.
const MOST_IDS: usize = 128;
/// Most configurations of an algorithm that are listed.
pub const MOST_CONFIGS: usize = 16;
/// Most pairs of tile and stages of an algorithm that are tried for the list.
const MOST_TRIED: usize = 192;

/// The library with its handle.
#[derive(Debug)]
pub struct Library {
    pub api: Api,
    /// Lives as long as the process: a context that has failed could not give it back.
    pub handle: Object,
}

/// The data types that stand in front of every call about algorithms: compute, scale, A, B, C, D.
fn types(of: &Type) -> [u32; 6] {
    [of.compute as u32, of.scale as u32, of.a as u32, of.b as u32, of.c as u32, of.c as u32]
}

impl Library {
    /// The numbers of the algorithms of a type; none where the library does not tell.
    pub fn ids(&self, of: &Type) -> Vec<i32> {
        let [compute, scale, a, b, c, d] = types(of);
        let (mut ids, mut count) = ([0; MOST_IDS], 0);
        // SAFETY: the array has as many places as are said, and `count` outlives the call.
        let status = unsafe {
            let (ids, most) = (ids.as_mut_ptr(), MOST_IDS as c_int);
            (self.api.algo_ids)(self.handle, compute, scale, a, b, c, d, most, ids, &mut count)
        };
        let count = if status == Status(0) { usize::try_from(count).unwrap_or(0).min(MOST_IDS) } else { 0 };
        let mut ids = ids[..count].to_vec();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// An algorithm as the library sets it up.
    fn init(&self, of: &Type, id: i32) -> Result<Algo, Failure> {
        let [compute, scale, a, b, c, d] = types(of);
        let mut algo = Algo([0; 8]);
        // SAFETY: `algo` outlives the call.
        let status = unsafe { (self.api.algo_init)(self.handle, compute, scale, a, b, c, d, id, &mut algo) };
        ask("cublasLtMatmulAlgoInit", status).map(|()| algo)
    }

    /// A configuration as an algorithm.
    ///
    /// # Errors
    /// Refused, where the type has no such algorithm or it does not take a value.
    pub fn algo(&self, of: &Type, config: &Config) -> Result<Algo, Failure> {
        let mut algo = self.init(of, config.id)?;
        for (attribute, value, default) in [
            (CONFIG_TILE_ID, config.tile, 0),
            (CONFIG_STAGES_ID, config.stages, 0),
            (CONFIG_SPLITK_NUM, config.splitk as u32, 1),
            (CONFIG_REDUCTION_SCHEME, config.reduction, 0),
            (CONFIG_CTA_SWIZZLING, config.swizzle, 0),
            (CONFIG_CUSTOM_OPTION, config.custom, 0),
        ] {
            self.configure(&mut algo, attribute, value, value == default)?;
        }
        // Not known to old versions of the library.
        self.configure(&mut algo, CONFIG_INNER_SHAPE_ID, config.inner, config.inner == 0)?;
        self.configure(&mut algo, CONFIG_CLUSTER_SHAPE_ID, config.cluster, config.cluster == 0)?;
        Ok(algo)
    }

    /// Sets an attribute. An algorithm that does not take its default has none to set.
    fn configure<T: Copy>(&self, algo: &mut Algo, attribute: u32, value: T, is_default: bool) -> Result<(), Failure> {
        // SAFETY: the library copies as many bytes as it is told, of the type that the header names.
        let status = unsafe { (self.api.config_set)(algo, attribute, (&raw const value).cast(), size_of::<T>()) };
        if is_default { Ok(()) } else { ask("cublasLtMatmulAlgoConfigSetAttribute", status) }
    }

    /// What an algorithm is configured to.
    pub fn config(&self, algo: &Algo) -> Config {
        Config {
            id: self.get(algo, CONFIG_ID),
            tile: self.get(algo, CONFIG_TILE_ID),
            stages: self.get(algo, CONFIG_STAGES_ID),
            splitk: self.get(algo, CONFIG_SPLITK_NUM),
            reduction: self.get(algo, CONFIG_REDUCTION_SCHEME),
            swizzle: self.get(algo, CONFIG_CTA_SWIZZLING),
            custom: self.get(algo, CONFIG_CUSTOM_OPTION),
            inner: self.get(algo, CONFIG_INNER_SHAPE_ID),
            cluster: self.get(algo, CONFIG_CLUSTER_SHAPE_ID),
        }
    }

    /// An attribute of a configuration; 0 where the library does not have it.
    fn get<T: Copy + Default>(&self, algo: &Algo, attribute: u32) -> T {
        let (mut value, mut written) = (T::default(), 0);
        // SAFETY: the library writes at most as many bytes as it is told.
        let status =
            unsafe { (self.api.config_get)(algo, attribute, (&raw mut value).cast(), size_of::<T>(), &mut written) };
        if status == Status(0) { value } else { T::default() }
    }

    /// A number that an algorithm is capable of; `None` where the library does not say.
    fn cap(&self, algo: &Algo, attribute: u32) -> Option<u32> {
        let (mut value, mut written) = (0u32, 0);
        // SAFETY: as above.
        let status = unsafe { (self.api.algo_cap)(algo, attribute, (&raw mut value).cast(), 4, &mut written) };
        (status == Status(0)).then_some(value)
    }

    /// A list that an algorithm is capable of; 0 alone where it has none.
    fn caps(&self, algo: &Algo, attribute: u32) -> Vec<u32> {
        let mut bytes = 0;
        // SAFETY: nothing is written where no room is given; `bytes` outlives the call.
        unsafe { (self.api.algo_cap)(algo, attribute, ptr::null_mut(), 0, &mut bytes) };
        let mut list = vec![0u32; bytes / 4];
        // SAFETY: the list has the room that is said.
        let status = unsafe { (self.api.algo_cap)(algo, attribute, list.as_mut_ptr().cast(), bytes, &mut bytes) };
        if status != Status(0) || list.is_empty() { vec![0] } else { list }
    }

    /// Whether an algorithm takes a product, and the bytes of workspace that it needs.
    ///
    /// # Errors
    /// Refused, where it does not.
    pub fn check(&self, described: &Described, algo: &Algo) -> Result<u64, Failure> {
        let mut result = HeuristicResult::EMPTY;
        let Described { desc, a, b, c, .. } = described;
        let d = described.result().object;
        // SAFETY: the descriptions live, and `result` outlives the call.
        let status = unsafe {
            (self.api.algo_check)(self.handle, desc.object, a.object, b.object, c.object, d, algo, &mut result)
        };
        ask("cublasLtMatmulAlgoCheck", status)?;
        ask("cublasLtMatmulAlgoCheck", result.state)?;
        Ok(result.workspace_bytes as u64)
    }

    /// The check of an algorithm says nothing of pointers: those have to be as aligned as it asks for.
    ///
    /// # Errors
    /// Refused, where one is not.
    pub fn check_alignment(&self, algo: &Algo, alignments: [u32; 4]) -> Result<(), Failure> {
        for ((name, real), attribute) in ["A", "B", "C", "D"].into_iter().zip(alignments).zip(CAP_MIN_ALIGNMENT_BYTES) {
            match self.cap(algo, attribute) {
                Some(least) if least <= real => {}
                Some(least) => {
                    let text = format!("{name} is aligned to {real} bytes, and the algorithm asks for {least}");
                    return Err(Failure::Refused(text));
                }
                None => return Err(Failure::Refused(format!("the library does not say how {name} is to be aligned"))),
            }
        }
        Ok(())
    }

    /// The configurations of a type that are listed: of every algorithm, up to [`MOST_CONFIGS`] that take one of the `samples`,
    /// with tiles and stages spread over what it has; at least one, so that every algorithm is listed.
    pub fn list(&self, of: &Type, samples: &[Described]) -> Vec<Config> {
        let mut all = vec![];
        for id in self.ids(of) {
            let Ok(first) = self.init(of, id) else { continue };
            let able = Able {
                tiles: self.caps(&first, CAP_TILE_IDS),
                stages: self.caps(&first, CAP_STAGES_IDS),
                splitk: self.cap(&first, CAP_SPLITK_SUPPORT).unwrap_or(0) != 0,
                reductions: self.cap(&first, CAP_REDUCTION_SCHEME_MASK).unwrap_or(0),
                swizzle: self.cap(&first, CAP_CTA_SWIZZLING_SUPPORT).unwrap_or(0),
                custom: self.cap(&first, CAP_CUSTOM_OPTION_MAX).unwrap_or(0),
            };
            let takes = |config: &Config| {
                let algo = self.algo(of, config);
                algo.is_ok_and(|algo| samples.iter().any(|sample| self.check(sample, &algo).is_ok()))
            };
            all.extend(able.choose(id, takes));
        }
        all
    }
}

/// What an algorithm can be configured to.
#[derive(Debug, Clone, Default)]
struct Able {
    tiles: Vec<u32>,
    stages: Vec<u32>,
    splitk: bool,
    /// Bits of `cublasLtReductionScheme_t`.
    reductions: u32,
    swizzle: u32,
    /// The largest custom option.
    custom: u32,
}

impl Able {
    /// The pair of tile and stages at a place: tiles in turn, and the stages move on by one each time round, so that every
    /// tile comes early and every pair comes once.
    fn pair(&self, place: usize) -> (u32, u32) {
        let (tiles, stages) = (self.tiles.len(), self.stages.len());
        let (turn, tile) = (place / tiles, place % tiles);
        (self.tiles[tile], self.stages[(turn + tile * stages / tiles) % stages])
    }

    fn config(&self, id: i32, place: usize) -> Config {
        let (tile, stages) = self.pair(place);
        Config { id, tile, stages, splitk: 1, custom: place as u32 % (self.custom + 1), ..Config::default() }
    }

    /// Configurations that are taken. Every third is split along k and every fourth is swizzled, where the algorithm does
    /// that and the result is taken, too.
    fn choose(&self, id: i32, takes: impl Fn(&Config) -> bool) -> Vec<Config> {
        let pairs = (self.tiles.len() * self.stages.len()).max(1);
        // Neighbours in the lists are much alike. Steps that share no factor with the tiles come to each of them.
        let fitting = |step: &usize| (2..=*step).all(|f| step % f != 0 || !self.tiles.len().is_multiple_of(f));
        let step = ((pairs / MOST_TRIED).max(1)..).find(fitting).unwrap_or(1);
        let mut taken: Vec<Config> = vec![];
        for place in (0..pairs).step_by(step).take(MOST_TRIED) {
            if taken.len() == MOST_CONFIGS {
                break;
            }
            let plain = self.config(id, place);
            if !takes(&plain) {
                continue;
            }
            let varied = self.vary(plain, taken.len());
            taken.push(if varied != plain && takes(&varied) { varied } else { plain });
        }
        if taken.is_empty() {
            taken.push(self.config(id, 0));
        }
        taken
    }

    fn vary(&self, plain: Config, number: usize) -> Config {
        let mut config = plain;
        let schemes: Vec<u32> = [1, 2, 4].into_iter().filter(|scheme| self.reductions & scheme != 0).collect();
        if self.splitk && number % 3 == 1 && !schemes.is_empty() {
            config.splitk = [2, 3, 5][number / 3 % 3];
            config.reduction = schemes[number / 3 % schemes.len()];
        }
        if self.swizzle > 0 && number % 4 == 2 {
            config.swizzle = 1;
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn able(tiles: u32, stages: u32) -> Able {
        let (tiles, stages) = ((1..=tiles).collect(), (1..=stages).collect());
        Able { tiles, stages, splitk: true, reductions: 6, swizzle: 1, custom: 2 }
    }

    #[test]
    fn every_pair_of_tile_and_stages_comes_once() {
        for (tiles, stages) in [(1, 1), (3, 7), (7, 3), (24, 31), (5, 5)] {
            let able = able(tiles, stages);
            let pairs: BTreeSet<_> = (0..(tiles * stages) as usize).map(|place| able.pair(place)).collect();
            assert_eq!(pairs.len(), (tiles * stages) as usize);
        }
    }

    #[test]
    fn an_algorithm_that_takes_everything_is_listed_as_often_as_allowed_with_many_tiles_and_stages() {
        let chosen = able(24, 31).choose(7, |_| true);
        assert_eq!(chosen.len(), MOST_CONFIGS);
        let of = |part: fn(&Config) -> u32| chosen.iter().map(part).collect::<BTreeSet<_>>().len();
        assert!(of(|c| c.tile) >= 12 && of(|c| c.stages) >= 12, "{chosen:?}");
        assert_eq!(of(|c| c.custom), 3);
        let split: Vec<&Config> = chosen.iter().filter(|c| c.splitk > 1).collect();
        assert!(split.len() >= 4 && split.iter().all(|c| [2, 4].contains(&c.reduction)));
        assert!(chosen.iter().filter(|c| c.splitk == 1).all(|c| c.reduction == 0));
        assert!(chosen.iter().any(|c| c.swizzle == 1));
    }

    #[test]
    fn only_what_is_taken_is_listed_and_one_at_least() {
        let odd = able(20, 30).choose(7, |c| c.tile % 2 == 1 && c.splitk == 1);
        assert!(odd.len() == MOST_CONFIGS && odd.iter().all(|c| c.tile % 2 == 1 && c.splitk == 1));
        assert_eq!(able(20, 30).choose(7, |_| false).len(), 1);
        let bare = Able { tiles: vec![0], stages: vec![0], ..Able::default() };
        assert_eq!(bare.choose(3, |_| true), [Config { id: 3, splitk: 1, ..Config::default() }]);
    }
}
