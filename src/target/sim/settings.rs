//! Settings of a model: `operand=B,tile=64x32,unroll=8,bits=31,rate=0.3`, and `seed=N`, which draws those not given.

use super::gemm::models::Operand;
use super::gemm::shape::Tile;
use super::registry::{GemmKind, Kind, ModelInfo};
use crate::problem::contents::mix;
use std::collections::BTreeMap;

/// Sides of drawn tiles, depths of drawn unrolls.
const SIDES: [i64; 7] = [16, 32, 48, 64, 96, 128, 192];
const UNROLLS: [i64; 6] = [4, 8, 12, 16, 32, 64];
/// Of a model that fails from 65,536 steps of the unroll on: with longer ones, no case within the default work gets there.
const SHORT_UNROLLS: [i64; 2] = [4, 8];
const RATES: [f64; 5] = [0.2, 0.3, 0.5, 0.7, 0.9];

/// A model with every setting resolved.
#[derive(Debug, Clone)]
pub struct Settings {
    pub model: &'static ModelInfo,
    pub operand: Operand,
    /// For allgather `m` are rows and `n` columns; `unroll` is not used.
    pub tile: Tile,
    pub bits: u32,
    /// Share of launches that wrap, above 0 and at most 1.
    pub rate: f64,
}

impl Settings {
    /// Reads what a target's name says.
    ///
    /// # Errors
    /// A sentence, where a setting is not one of the model or a value is out of its range.
    pub fn read(model: &'static ModelInfo, given: &BTreeMap<String, String>) -> Result<Settings, String> {
        let names = names(model);
        if let Some(unknown) = given.keys().find(|k| !names.contains(&k.as_str())) {
            return Err(format!("sim:{} has no setting '{unknown}'; it has {}", model.name, names.join(", ")));
        }
        let text = |name: &str| given.get(name).map(String::as_str);
        let mut settings = match text("seed") {
            None => Settings::plain(model),
            Some(seed) => {
                Settings::drawn(model, seed.parse().map_err(|_| wrong("seed", seed, "an integer from 0 on"))?)
            }
        };
        if let Some(t) = text("operand") {
            let list = model.operands.iter().map(|o| format!("{o:?}")).collect::<Vec<_>>().join(" or ");
            let found = model.operands.iter().find(|o| format!("{o:?}") == t);
            settings.operand = *found.ok_or_else(|| wrong("operand", t, &list))?;
        }
        if let Some(t) = text("tile") {
            let sides = t.split_once('x').and_then(|(m, n)| Some((within(m, 8, 256)?, within(n, 8, 256)?)));
            (settings.tile.m, settings.tile.n) =
                sides.ok_or_else(|| wrong("tile", t, "two sides of 8 to 256, like 64x32"))?;
        }
        if let Some(t) = text("unroll") {
            settings.tile.unroll = within(t, 1, 256).ok_or_else(|| wrong("unroll", t, "a number from 1 to 256"))?;
        }
        if let Some(t) = text("bits") {
            let list = model.bits.iter().map(u32::to_string).collect::<Vec<_>>().join(" or ");
            let found = model.bits.iter().find(|b| b.to_string() == t);
            settings.bits = *found.ok_or_else(|| wrong("bits", t, &list))?;
        }
        if let Some(t) = text("rate") {
            let rate = t.parse().ok().filter(|r| *r > 0.0 && *r <= 1.0);
            settings.rate = rate.ok_or_else(|| wrong("rate", t, "a share above 0 and at most 1, like 0.3"))?;
        }
        Ok(settings)
    }

    fn plain(model: &'static ModelInfo) -> Settings {
        let tile = match model.kind {
            Kind::Gemm(_) => Tile { m: 64, n: 64, unroll: 16 },
            Kind::AllGather { .. } => Tile { m: 64, n: 128, unroll: 1 },
        };
        Settings {
            model,
            operand: model.operands.first().copied().unwrap_or(Operand::A),
            tile,
            bits: model.bits.first().copied().unwrap_or(64),
            rate: 0.3,
        }
    }

    fn drawn(model: &'static ModelInfo, seed: u64) -> Settings {
        fn one<T: Copy>(list: &[T], seed: u64, which: u64) -> Option<T> {
            let index = mix(seed, which) % list.len().max(1) as u64;
            list.get(index as usize).copied()
        }
        let plain = Settings::plain(model);
        let side = |which, otherwise| one(&SIDES, seed, which).unwrap_or(otherwise);
        let unrolls = if model.kind == Kind::Gemm(GemmKind::Hang) { &SHORT_UNROLLS[..] } else { &UNROLLS };
        let tile = Tile {
            m: side(1, plain.tile.m),
            n: side(2, plain.tile.n),
            unroll: one(unrolls, seed, 3).unwrap_or(plain.tile.unroll),
        };
        Settings {
            model,
            operand: one(model.operands, seed, 0).unwrap_or(plain.operand),
            tile,
            bits: one(model.bits, seed, 4).unwrap_or(plain.bits),
            rate: one(&RATES, seed, 5).unwrap_or(plain.rate),
        }
    }

    /// Name of the kernel with everything that tells it from others: `sim:i32-sum/B/64x64x16`.
    pub fn kernel(&self) -> String {
        let mut name = format!("sim:{}", self.model.name);
        if !self.model.operands.is_empty() {
            name.push_str(&format!("/{:?}", self.operand));
        }
        if !self.model.bits.is_empty() {
            name.push_str(&format!("/{}bit", self.bits));
        }
        if takes_rate(self.model) {
            name.push_str(&format!("/{}", self.rate));
        }
        name.push_str(&format!("/{}x{}", self.tile.m, self.tile.n));
        if matches!(self.model.kind, Kind::Gemm(_)) {
            name.push_str(&format!("x{}", self.tile.unroll));
        }
        name
    }
}

fn takes_rate(model: &ModelInfo) -> bool {
    model.kind == Kind::Gemm(GemmKind::Flaky)
}

/// Settings that a model has.
pub fn names(model: &ModelInfo) -> Vec<&'static str> {
    let all = [
        ("operand", !model.operands.is_empty()),
        ("tile", true),
        ("unroll", matches!(model.kind, Kind::Gemm(_))),
        ("bits", !model.bits.is_empty()),
        ("rate", takes_rate(model)),
        ("seed", true),
    ];
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

fn within(text: &str, least: i64, most: i64) -> Option<i64> {
    text.parse().ok().filter(|v| (least..=most).contains(v))
}

fn wrong(name: &str, value: &str, allowed: &str) -> String {
    format!("{name}={value}: {name} is {allowed}")
}

#[cfg(test)]
mod tests {
    use super::super::registry::{find, models};
    use super::*;

    fn read(model: &str, given: &[(&str, &str)]) -> Result<Settings, String> {
        let given = given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Settings::read(find("gemm", model).unwrap(), &given)
    }

    #[test]
    fn the_kernel_name_says_what_was_set() {
        assert_eq!(read("i32-sum", &[]).unwrap().kernel(), "sim:i32-sum/B/64x64x16");
        let s = read("i32-term", &[("operand", "C"), ("tile", "128x192"), ("unroll", "8")]).unwrap();
        assert_eq!(s.kernel(), "sim:i32-term/C/128x192x8");
        assert_eq!(read("u32-bytes-drop", &[("bits", "31")]).unwrap().kernel(), "sim:u32-bytes-drop/31bit/64x64x16");
        assert_eq!(read("flaky", &[("rate", "0.25")]).unwrap().kernel(), "sim:flaky/B/0.25/64x64x16");
        let gather = Settings::read(find("allgather", "").unwrap(), &BTreeMap::new()).unwrap();
        assert_eq!(gather.kernel(), "sim:persistent-i32/64x128");
    }

    #[test]
    fn a_bad_setting_is_one_sentence() {
        for (model, name, value) in [
            ("clean", "operand", "A"),
            ("edge-overread", "operand", "C"),
            ("i32-sum", "tile", "64"),
            ("i32-sum", "tile", "64x4096"),
            ("i32-sum", "unroll", "0"),
            ("u32-bytes-drop", "bits", "30"),
            ("flaky", "rate", "nan"),
            ("flaky", "rate", "0"),
            ("i32-sum", "rate", "0.3"),
            ("clean", "seed", "x"),
        ] {
            let error = read(model, &[(name, value)]).unwrap_err();
            assert!(error.contains(name) && !error.contains('\n'), "{error}");
        }
        assert!(find("gemm", "nope").unwrap_err().contains("i32-sum, i32-term"));
        assert!(find("trsm", "").is_err());
    }

    #[test]
    fn a_seed_draws_what_is_not_given_and_nothing_else() {
        let mut kernels = std::collections::BTreeSet::new();
        for seed in 0..50 {
            let seed = seed.to_string();
            let drawn = read("i32-sum", &[("seed", &seed)]).unwrap();
            assert_eq!(drawn.kernel(), read("i32-sum", &[("seed", &seed)]).unwrap().kernel());
            let pinned = read("i32-sum", &[("seed", &seed), ("operand", "C"), ("unroll", "5")]).unwrap();
            assert_eq!((pinned.operand, pinned.tile.unroll), (Operand::C, 5));
            assert_eq!((pinned.tile.m, pinned.tile.n), (drawn.tile.m, drawn.tile.n));
            kernels.insert(drawn.kernel());
        }
        assert!(kernels.len() > 30);
        for model in models("gemm") {
            let s = Settings::read(model, &BTreeMap::from([("seed".to_owned(), "9".to_owned())])).unwrap();
            assert!(model.operands.is_empty() || model.operands.contains(&s.operand));
        }
    }
}
